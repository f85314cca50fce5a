"""Controller and agents by fork(2) from one process that has loaded their modules.

In the lab, where each instruction is emulated, Python's imports are most of what the start of a site costs. They are
made once: by a process that was forked itself, from the scenario with all that it has loaded.
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from apps import agent, main
from mininet_tests.site.command import HEADWAY
from mininet_tests.site.wiring import enter

PR_SET_CHILD_SUBREAPER = 36
"""Source: linux/prctl.h; prctl(2)."""
LOOK_S = 0.02
_COMMANDS = {"controller": (str(HEADWAY), "controller"), "agent": (f"{HEADWAY}-agent",)}
_MAINS = {"controller": main.main, "agent": agent.main}
_REQUEST_BYTES = 65_536


def unit_command(program: str, config: Path) -> list[str]:
    """Return how its unit starts a controller or an agent."""
    return [*_COMMANDS[program], "--config", str(config)]


@dataclass(slots=True)
class Forked:
    """A process that another has forked for us: its end is ours to wait for, as a ``subprocess.Popen``'s."""

    pid: int
    returncode: int | None = None

    def poll(self) -> int | None:
        """Return how it ended, -N by signal N; None while it runs."""
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if ended else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return how it ended.

        Raises:
            subprocess.TimeoutExpired: it has not within so many seconds.
        """
        until_s = time.monotonic() + timeout if timeout is not None else float("inf")
        while (code := self.poll()) is None:
            if time.monotonic() > until_s:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            time.sleep(LOOK_S)
        return code

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """The process that forks; ``fork_server`` starts it."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def start(self, program: str, config: Path, log: Path, inside: int | None = None) -> Forked:
        """Start a controller or an agent as its unit does.

        Args:
            program: ``controller`` or ``agent``.
            config: its file.
            log: what its output is added to.
            inside: a process whose network and mounts it has; without one it has ours.

        Raises:
            RuntimeError: nothing was started.
        """
        self._end.send(json.dumps((program, str(config), str(log), inside)).encode())
        if not (pid := self._end.recv(_REQUEST_BYTES)):
            raise RuntimeError(f"the process that forks has ended, so no {program} was started")
        return Forked(int(pid))


@contextmanager
def fork_server() -> Iterator[ForkServer]:
    """Give a process that forks others; those it has forked go on when it ends.

    What they are forked for must not have other threads yet: it is copied as it is.
    """
    # Who has forked them ends at once, so that they are ours to wait for.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sys.stdout.flush()
    sys.stderr.flush()  # else each of them would say it, too
    server = os.fork()
    if not server:
        ours.close()
        _left_by(_serve, its)
    its.close()
    try:
        yield ForkServer(ours)
    finally:
        ours.close()
        os.waitpid(server, 0)


def _serve(end: socket.socket) -> None:
    """Fork a process for each request until there are none."""
    main.load_reader()
    main.load_runner()
    agent.load()
    while asked := end.recv(_REQUEST_BYTES):
        reader, writer = os.pipe()
        between = os.fork()
        if not between:
            if forked := os.fork():
                os.write(writer, str(forked).encode())
                os._exit(0)
            for descriptor in (end.fileno(), reader, writer):
                os.close(descriptor)
            _left_by(_become, *json.loads(asked))
        os.close(writer)
        os.waitpid(between, 0)
        end.send(os.read(reader, _REQUEST_BYTES))
        os.close(reader)


def _become(program: str, config: str, log: str, inside: int | None) -> None:
    """Be a controller or an agent, on its configuration."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), output, output)):
        os.dup2(file, number)
    if inside is not None:
        folder = Path.cwd()
        enter(inside, "net", "mnt")  # as Mininet's mnexec -a does
        os.chdir(folder)
    sys.argv = unit_command(program, Path(config))
    _MAINS[program]()


def _left_by(act: Callable[..., None], *args: object) -> NoReturn:
    """Do something as the last thing of a process; what it was forked from is not for it to end."""
    code: int | str | None = 1
    try:
        act(*args)
        code = 0
    except SystemExit as left:
        code = left.code
    except BaseException:  # noqa: BLE001  whatever it was, it must not get to what this process was forked from
        traceback.print_exc()
    finally:
        if isinstance(code, str):  # as Python does
            print(code, file=sys.stderr)
            code = 1
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code or 0)
