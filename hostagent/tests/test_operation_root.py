"""The agent as systemd runs it: no root, three capabilities, a service manager that hears it and keeps its maps."""

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from contextlib import ExitStack
from pathlib import Path

import pytest

from hostagent.agent import status_socket
from hostagent.agent.status import AgentState, AgentStatus
from hostagent.kernel.image import object_image
from hostagent.kernel.leftovers import CONNECTIONS_MAP
from hostagent.kernel.loader import BpfObject, Libbpf
from hostagent.tests.rig import Bulk, FakeController, allocation, halted
from hostagent.tests.service import NOBODY, OUT_OF_REACH, Manager, unit, within_reach
from mininet_tests.testing.eventually import eventually
from topology.protocol import Allocations

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF")]

HEADWAY = str(Path(sys.executable).parent / "headway")
PLAN = allocation("10.77.0.2/32", 100)


@pytest.fixture
def folder(cleanup: ExitStack) -> Path:
    """A run directory of the agent's user; pytest's own are root's."""
    path = Path(tempfile.mkdtemp(prefix="headway-"))
    cleanup.callback(shutil.rmtree, path)
    os.chown(path, NOBODY, NOBODY)
    return path


@pytest.fixture
def controller(folder: Path, cleanup: ExitStack) -> FakeController:
    fake = FakeController(folder / "c.sock")
    (folder / "c.sock").chmod(0o777)
    cleanup.callback(fake.stop)
    return fake


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@pytest.fixture
def service(hosts, folder: Path, controller: FakeController, port: int, cleanup: ExitStack) -> Manager:
    """The agent, started and ready."""
    if not within_reach():
        pytest.skip(OUT_OF_REACH)
    config = folder / "agent.yaml"
    settings = {"host": "left", "controllers": [controller.address], "run_dir": str(folder)}
    config.write_text(json.dumps(settings | {"metrics": f"127.0.0.1:{port}"}))
    manager = Manager(hosts[0], folder, config)
    manager.start()
    cleanup.callback(manager.close)
    eventually(lambda: ready(manager), within_s=30, what="READY=1")
    return manager


def ready(manager: Manager) -> bool:
    assert manager.process.poll() is None, manager.log
    return any(message.startswith("READY=1") for message in manager.heard)


def stands(folder: Path) -> AgentStatus:
    (path,) = folder.glob("status-*.sock")
    return status_socket.asked_status(path)


def obey(controller: FakeController, message: Allocations) -> None:
    controller.send(message)
    eventually(lambda: controller.applied(message.epoch), within_s=10, what=f"epoch {message.epoch} in force")


def test_without_root_the_agent_holds_a_plan_and_opens_the_windows(hosts, service, controller, cleanup):
    before = hosts[0].sysctl("tcp_rmem")
    obey(controller, Allocations(1, 60_000, (PLAN,), receive_window_bytes=40_000_000))
    bulk = Bulk(*hosts).start()
    cleanup.callback(bulk.close)
    eventually(lambda: bulk.algorithm.startswith("headway"), within_s=3, what="held")
    assert hosts[0].sysctl("tcp_rmem").split()[1:] == ["80000000", "80000000"]
    service.process.terminate()
    assert service.process.wait(timeout=20) == 0, service.log
    assert hosts[0].sysctl("tcp_rmem") == before
    assert not bulk.algorithm.startswith("headway")
    assert service.heard[-1].startswith("FDSTOREREMOVE")
    assert "STOPPING=1" in service.heard
    assert service.kept == {}


def test_the_memory_that_windows_may_take_follows_the_mtu_as_it_is_now(hosts, service, controller, folder):
    obey(controller, Allocations(1, 60_000, (PLAN,)))
    before = eventually(lambda: stands(folder).buffers_may_take_bytes, within_s=5, what="the next look")
    hosts[0].ip("link", "set", hosts[0].interface, "mtu", "9000")
    obey(controller, Allocations(2, 60_000, (PLAN,)))
    eventually(lambda: stands(folder).buffers_may_take_bytes > 3 * before, within_s=5, what="room for larger segments")


def test_the_service_manager_hears_that_it_lives_and_how_it_stands(service, controller):
    obey(controller, Allocations(3, 60_000, (PLAN,)))
    said = f"WATCHDOG=1\nSTATUS=holding: epoch 3, 1 allocations; attached to {controller.address}"
    eventually(lambda: said in service.heard, within_s=5, what="WATCHDOG=1 with the status")
    assert set(service.kept) == {"headway-ops", "headway-conns"}


def test_an_agent_that_hangs_is_not_said_to_live(service):
    def alive() -> int:
        return sum(message.startswith("WATCHDOG=1") for message in service.heard)

    eventually(lambda: alive() >= 2, within_s=5, what="a sign of life each second")
    halted(service.process.pid)
    before = alive()
    try:
        with pytest.raises(AssertionError):
            eventually(lambda: alive() > before, within_s=2.5, what="nothing")
    finally:
        service.process.send_signal(signal.SIGCONT)


def test_after_kill_minus_9_the_next_agent_finds_the_maps_without_being_root(hosts, service, controller, cleanup):
    bulk = Bulk(*hosts)
    bulk.algorithm = "reno"
    bulk.start()
    cleanup.callback(bulk.close)
    obey(controller, Allocations(1, 60_000, (PLAN,)))
    assert bulk.algorithm.startswith("headway")
    service.process.kill()
    service.process.wait()
    assert bulk.algorithm.startswith("headway"), "the lease still runs"
    service.heard.clear()
    controller.heard.clear()
    service.start()
    eventually(lambda: ready(service), within_s=30, what="ready again")
    eventually(lambda: controller.applied(1), within_s=10, what="the plan in force again")
    assert bulk.algorithm.startswith("headway")
    obey(controller, Allocations(2, 60_000, ()))
    assert bulk.algorithm == "reno", "what the socket had before was in the kept map"


def test_after_kill_minus_9_an_agent_of_another_version_starts_without_the_records_of_the_one_before(
    hosts, service, controller, cleanup
):
    obey(controller, Allocations(1, 60_000, (PLAN,)))
    service.process.kill()
    service.process.wait()
    older = BpfObject(Libbpf(), object_image().replace(CONNECTIONS_MAP, b"hw_conns_0"))
    cleanup.callback(older.close)
    older.load()
    os.dup2(older.map("hw_conns_0").fd, service.kept["headway-conns"], inheritable=False)
    service.heard.clear()
    controller.heard.clear()
    service.start()
    eventually(lambda: ready(service), within_s=30, what="ready again")
    eventually(lambda: controller.applied(1), within_s=10, what="the plan in force again")


def test_the_operator_and_prometheus_see_the_rate_that_is_delivered(hosts, service, controller, folder, port, cleanup):
    obey(controller, Allocations(1, 60_000, (PLAN,), receive_window_bytes=1_000_000))
    bulk = Bulk(*hosts).start()
    cleanup.callback(bulk.close)
    planned_bps = PLAN.rate_bps

    def full() -> AgentStatus | None:
        now = stands(folder)
        return now if now.entries and now.entries[0].delivered_bps > 0.9 * planned_bps else None

    now = eventually(full, within_s=15, what="the planned rate in the status")
    assert now.state is AgentState.HOLDING
    assert now.entries[0].delivered_bps < 1.1 * planned_bps
    assert (now.entries[0].connections, now.entries[0].active) == (1, 1)
    assert now.entries[0].rtt_us > 0
    assert now.buffers["tcp_rmem"] == hosts[0].sysctl("tcp_rmem")
    text = hosts[0].inside(lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read())
    assert b'headway_agent_planned_bytes_per_second{class="urgent",dest="10.77.0.2/32"' in text


def test_the_command_shows_the_status_and_its_exit_code_says_whether_a_plan_is_held(hosts, service, controller, folder):
    command = ["nsenter", f"--net=/run/netns/{hosts[0].name}", HEADWAY, "agent", "status", "--run-dir", str(folder)]

    def asked(*more: str) -> "subprocess.CompletedProcess[str]":
        wide = os.environ | {"COLUMNS": "200"}
        return subprocess.run([*command, *more], env=wide, capture_output=True, text=True, check=False)

    none_yet = asked()
    assert none_yet.returncode == 1
    assert "no plan" in none_yet.stdout
    obey(controller, Allocations(5, 60_000, (PLAN,)))
    eventually(lambda: stands(folder).epoch == 5, within_s=5, what="the next look")
    held = asked()
    assert held.returncode == 0, held.stderr
    assert "left: holding; attached to unix:" in held.stdout
    assert "0.0% of 100 Mbit/s" in held.stdout
    assert json.loads(asked("--json").stdout)["epoch"] == 5
    command = command[2:]
    elsewhere = asked()
    assert elsewhere.returncode == 1
    assert "no agent answers" in elsewhere.stderr
    assert f"--namespace {stands(folder).identity.namespace}" in elsewhere.stderr


def test_the_oneshot_unit_sets_what_is_needed_and_puts_it_back(hosts, tmp_path):
    oneshot = unit("headway-agent-sysctl.service")
    environment = os.environ | dict(word.split("=") for word in shlex.split(oneshot["Environment"]))

    def done(line: str) -> None:
        command = shlex.split(line.replace("$$", "$"))
        inside = ["nsenter", f"--net=/run/netns/{hosts[0].name}", *command]
        subprocess.run(inside, cwd=tmp_path, env=environment, check=True, capture_output=True)

    names = ("tcp_rmem", "tcp_wmem", "tcp_no_metrics_save")
    before = [hosts[0].sysctl(name) for name in names]
    done(oneshot["ExecStart"])
    assert int(hosts[0].sysctl("tcp_rmem").split()[2]) > 1_200_000_000
    assert hosts[0].sysctl("tcp_no_metrics_save") == "1"
    done(oneshot["ExecStop"])
    assert [hosts[0].sysctl(name) for name in names] == before


def test_systemd_finds_nothing_wrong_with_the_units(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze: Debian's package systemd has it")
    subprocess.run([HEADWAY, "agent", "units", "--rate", "10Gbps", "--rtt", "180ms", "--root", tmp_path], check=True)
    files = sorted(str(path) for path in (tmp_path / "etc/systemd/system").iterdir())
    command = ["systemd-analyze", "verify", "--man=no", *files]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    wrong = [line for line in told.stderr.splitlines() if "headway-agent" in line]
    assert (told.returncode, wrong) == (0, []), told.stderr


@pytest.mark.parametrize("path", ["/proc/sys/net/ipv4/tcp_mem", "/proc/sys/net/core/rmem_max"])
def test_net_admin_alone_may_write_the_kernels_limits_in_its_first_namespace(path):
    if not Path("/proc/sys/net/ipv4/tcp_mem").exists():
        pytest.skip("this is not the kernel's first network namespace: tcp_mem is not shown")
    write = ["sh", "-c", f"now=$(cat {path}) && echo $now >{path}"]  # what is there already

    def written(*capabilities: str) -> bool:
        held = ",".join(("-all", *capabilities))
        caps = (f"--bounding-set={held}", f"--inh-caps={held}", f"--ambient-caps={held}")
        user = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
        return subprocess.run(["setpriv", *user, *caps, *write], capture_output=True, check=False).returncode == 0

    assert not written()
    assert written("+net_admin")
