"""The units under systemd itself, in namespaces of its own: what the document says to type, a kill, a hang, a stop."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostagent.tests.rig import REPOSITORY
from hostagent.tests.service import OUT_OF_REACH, within_reach
from mininet_tests.testing.eventually import eventually

SYSTEMD = Path("/lib/systemd/systemd")
MACHINE = Path(__file__).with_name("machine.sh")
HEADWAY = str(Path(sys.executable).parent / "headway")

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF"),
    pytest.mark.skipif(not SYSTEMD.exists(), reason=f"no {SYSTEMD}: Debian's package systemd has it"),
    pytest.mark.skipif(os.geteuid() == 0 and not within_reach(), reason=OUT_OF_REACH),
    pytest.mark.skipif(
        "\toverlay\n" not in Path("/proc/filesystems").read_text(), reason="the kernel has no overlayfs"
    ),
]


class Machine:
    """systemd as the first process of its own world."""

    def __init__(self, folder: Path) -> None:
        own = [f"--{namespace}" for namespace in ("pid", "mount", "uts", "ipc", "net", "cgroup")]
        script = ["bash", str(MACHINE), str(folder), str(REPOSITORY), sys.prefix]
        command = ["unshare", *own, "--fork", "--kill-child", "--mount-proc", *script]
        with (folder.parent / "systemd.log").open("wb") as log:
            self._unshare = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        children = Path(f"/proc/{self._unshare.pid}/task/{self._unshare.pid}/children")
        self._first = eventually(lambda: children.read_text().split(), within_s=10, what="the first process")[0]
        eventually(lambda: self.tried("systemctl", "list-units").returncode == 0, within_s=30, what="systemd answers")

    def tried(self, *command: str) -> "subprocess.CompletedProcess[str]":
        inside = ["nsenter", f"--target={self._first}", "--pid", "--mount", "--uts", "--ipc", "--net", "--cgroup"]
        return subprocess.run([*inside, *command], capture_output=True, text=True, check=False, timeout=60)

    def done(self, *command: str) -> str:
        """Run a command inside; return what it printed."""
        done = self.tried(*command)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}{self.agent('StatusText')}"
        return done.stdout.strip()

    def shown_below_a_private_tmp(self, unit: str) -> None:
        """Let a unit whose /tmp is its own see a checkout that is there."""
        drop_in = f"[Service]\nBindReadOnlyPaths={REPOSITORY} {sys.prefix}\n"
        folder = f"/etc/systemd/system/{unit}.service.d"
        if Path("/tmp") in REPOSITORY.parents:  # noqa: S108
            self.done("sh", "-c", f"mkdir {folder} && printf '{drop_in}' > {folder}/checkout.conf")

    def agent(self, what: str) -> str:
        """A property of the agent's unit."""
        return self.tried("systemctl", "show", "--property", what, "--value", "headway-agent").stdout.strip()

    def restarted(self, times: int) -> bool:
        return (self.agent("NRestarts"), self.agent("ActiveState")) == (str(times), "active")

    def is_another(self, process: str) -> bool:
        return self.agent("MainPID") != process and self.agent("ActiveState") == "active"

    def close(self) -> None:
        self._unshare.kill()
        self._unshare.wait()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    folder = tmp_path / "machine"
    folder.mkdir()
    running = Machine(folder)
    try:
        yield running
    finally:
        running.close()


def test_the_units_run_the_agent_under_systemd_without_root(machine):
    machine.done("mkdir", "-p", "/etc/headway")
    machine.done("sh", "-c", "echo '{host: a, controllers: [\"127.0.0.1:1\"]}' > /etc/headway/agent.yaml")
    machine.done(HEADWAY, "agent", "units", "--rate", "10Gbps", "--rtt", "180ms", "--root", "/")
    machine.shown_below_a_private_tmp("headway-agent")
    machine.shown_below_a_private_tmp("headway-agent-sysctl")
    machine.done("systemd-sysusers")
    machine.done("systemctl", "daemon-reload")
    before = machine.done("cat", "/proc/sys/net/ipv4/tcp_rmem")
    machine.done("systemctl", "enable", "--now", "headway-agent-sysctl", "headway-agent")
    assert machine.agent("StatusText") == "no plan: epoch 0, 0 allocations; no controller"
    assert machine.agent("NFileDescriptorStore") == "2"
    assert machine.done("cat", "/proc/sys/net/ipv4/tcp_rmem").split()[2] == "1271001300"
    process = machine.done("sh", "-c", "cat /proc/$(systemctl show -P MainPID headway-agent)/status")
    fields = dict(line.split(":\t") for line in process.splitlines() if ":\t" in line)
    assert fields["Uid"].split()[0] != "0"
    assert fields["CapEff"] == fields["CapBnd"] == f"{1 << 12 | 1 << 38 | 1 << 39:016x}"
    machine.done("systemctl", "kill", "--signal=KILL", "headway-agent")
    eventually(lambda: machine.restarted(1), within_s=20, what="started again after kill -9")
    machine.done("systemctl", "kill", "--signal=STOP", "headway-agent")
    eventually(lambda: machine.restarted(2), within_s=40, what="started again after it hung: no sign of life for 10 s")
    assert machine.agent("NFileDescriptorStore") == "2"
    machine.done(
        "sh", "-c", "mv /etc/headway/agent.yaml /etc/headway/right.yaml; echo '{host: 1}' > /etc/headway/agent.yaml"
    )
    machine.done("systemctl", "kill", "--signal=KILL", "headway-agent")
    eventually(
        lambda: int(machine.agent("NRestarts")) >= 9, within_s=40, what="tried again, more than five times in a row"
    )
    machine.done("mv", "/etc/headway/right.yaml", "/etc/headway/agent.yaml")
    eventually(lambda: machine.agent("ActiveState") == "active", within_s=20, what="up once it has what it needs")
    first = machine.agent("MainPID")
    machine.done("systemctl", "restart", "headway-agent-sysctl")
    eventually(lambda: machine.is_another(first), within_s=20, what="started again with its settings")
    machine.done("systemctl", "stop", "headway-agent", "headway-agent-sysctl")
    assert machine.agent("Result") == "success"
    assert machine.done("cat", "/proc/sys/net/ipv4/tcp_rmem") == before
