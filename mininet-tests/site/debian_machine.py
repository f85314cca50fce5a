"""A machine with Debian's own systemd as its first process, on this kernel: systemd-nspawn over a cached root.

It has namespaces, files and a boot_id of its own at each boot; the kernel, its BPF programs and its clock are this
machine's. Run inside ``isolated.sh``, so that nothing of it outlives us.
"""

import os
import re
import secrets
import shlex
import signal
import subprocess
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from mininet_tests.site.machines import CabledMachine
from mininet_tests.testing.eventually import eventually

NSPAWN = (
    *("systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", "--console=pipe", "--link-journal=no"),
    *("--capability=all", "--system-call-filter=bpf perf_event_open"),
)
"""What systemd does not let containers do and a host's agent needs: BPF."""
JOINED = (
    'for group in "$@"; do [ "$group" != -- ] || break; echo $$ >"$group/cgroup.procs"; shift; done; shift; exec "$@"'
)
"""Shell: go into some control groups, then be another program. Two machines in one group would see each other's."""
CGROUPS = Path("/sys/fs/cgroup")
BOOTS_WITHIN_S, ENDS_WITHIN_S, COMMAND_WITHIN_S = 120.0, 120.0, 600.0


class DebianMachine:
    """One machine; what is written to its files stays when it is booted again."""

    def __init__(self, root: Path, folder: Path, name: str = "debian", cable: CabledMachine | None = None) -> None:
        """Put a layer over the root, in memory.

        Args:
            root: Debian's files, only read.
            folder: for the mounts and the log.
            name: of the machine, as it knows itself.
            cable: whose network it has; None for one of its own, without a way to anybody.
        """
        at = f"--network-namespace-path=/run/netns/{cable.name}" if cable else "--private-network"
        self._named = f"--machine={name}", at
        self._log = folder / "machine.log"
        layers, self.files = folder / "layers", folder / "root"
        for path in (layers, self.files):
            path.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "layers", layers], check=True)
        for layer in ("upper", "work"):
            (layers / layer).mkdir()
        options = f"lowerdir={root},upperdir={layers}/upper,workdir={layers}/work"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, self.files], check=True)
        (self.files / "etc/hostname").write_text(f"{name}\n")
        above = [path for path in (CGROUPS / "systemd", CGROUPS / "unified") if path.exists()] or [CGROUPS]
        self._cgroups = [path / f"headway-{secrets.token_hex(4)}" for path in above]
        self._nspawn: subprocess.Popen[bytes] | None = None
        self._first = 0

    def __enter__(self) -> Self:
        """Boot; of one that does not come up nothing stays."""
        try:
            self.boot()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """See :meth:`end`."""
        self.end()

    def end(self) -> None:
        """Take its power."""
        if self._nspawn is not None:
            with suppress(ProcessLookupError):
                os.kill(self._first or self._nspawn.pid, signal.SIGKILL)  # with the first end all that it started
            self._nspawn.wait(ENDS_WITHIN_S)
        for group in self._cgroups:
            eventually(partial(_removed, group), within_s=ENDS_WITHIN_S, what="the machine's processes have ended")

    def boot(self) -> None:
        """Start systemd, and wait until it has started what it starts."""
        with self._log.open("ab") as log:
            for group in self._cgroups:
                group.mkdir(exist_ok=True)
            joined = ["sh", "-ec", JOINED, "sh", *map(str, self._cgroups), "--"]
            command = [*joined, *NSPAWN, *self._named, f"--directory={self.files}"]
            self._nspawn = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._first = eventually(partial(_first, self._nspawn.pid), within_s=30, what="the first process")
        states = {"running", "degraded"}
        eventually(
            lambda: self.tried("systemctl", "is-system-running").stdout.strip() in states,
            within_s=BOOTS_WITHIN_S,
            what="Debian has booted",
        )

    def power_off(self) -> None:
        """End it as an operator does, by systemd."""
        assert self._nspawn is not None  # noqa: S101 it was booted
        self.tried("systemctl", "poweroff")
        self._nspawn.wait(ENDS_WITHIN_S)

    def tried(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """Run a command inside, as root in ``/root``; return how it ended."""
        inside = ["nsenter", f"--target={self._first}", "--all", "--wdns=/root"]
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        environment = ["env", "-i", path, "HOME=/root", "LANG=C.UTF-8", "COLUMNS=80", "DEBIAN_FRONTEND=noninteractive"]
        return subprocess.run(
            [*inside, *environment, *command], capture_output=True, text=True, check=False, timeout=COMMAND_WITHIN_S
        )

    def done(self, *command: str) -> str:
        """Return what a command printed.

        Raises:
            RuntimeError: it failed.
        """
        done = self.tried(*command)
        if done.returncode:
            raise RuntimeError(f"{shlex.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout.strip()

    def unit(self, name: str, what: str) -> str:
        """Return a property of a unit."""
        return self.done("systemctl", "show", "--property", what, "--value", name)


def _first(nspawn: int) -> int | None:
    """Return the process that is the first in a process namespace below ours; nspawn has another child before it."""
    with suppress(OSError):
        for child in Path(f"/proc/{nspawn}/task/{nspawn}/children").read_text().split():
            known = re.search(r"^NSpid:.*\t1$", Path(f"/proc/{child}/status").read_text(), re.MULTILINE)
            if known and Path(f"/proc/{child}/comm").read_text() == "systemd\n":
                return int(child)
    return None


def _removed(group: Path) -> bool:
    """Remove a control group with all below it; return whether it is gone, which needs its processes to be."""
    for path in (*sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True), group):
        try:
            path.rmdir()
        except OSError:
            return not group.exists()
    return True
