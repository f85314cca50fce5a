"""One run of the lab's virtual machine: the job handed to it, its output brought back live."""

from __future__ import annotations

import os
import selectors
import shlex
import signal
import socket
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from mininet_tests.lab import qemu, snapshot
from mininet_tests.lab.image import Image

Say = Callable[[str], None]

CHECKOUT = Path(__file__).resolve().parents[2]
EXIT_TIMEOUT = 124
"""As timeout(1)."""
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "TERM", "COLUMNS", "VIRTUAL_ENV")
KEPT_PREFIXES = ("HEADWAY_", "LC_", "PYTHON")
BESIDE = ("guest.sh", "brake.py")
"""What the guest needs beside the job itself."""


@dataclass(frozen=True, slots=True)
class Job:
    """One command and the machine it wants. ``out_dir`` is the only folder whose changes outlive the run."""

    command: tuple[str, ...]
    cwd: Path
    environment: dict[str, str]
    dilation: int
    memory_mib: int
    out_dir: Path | None
    timeout_s: int | None


def guest_environment(environment: dict[str, str], dilation: int) -> dict[str, str]:
    """Return the variables that the command sees: a few of the host's, and how to know that this is the lab.

    Not all of the host's: their number and length would change what runs in the guest from user to user.
    """
    kept = {
        name: value for name, value in environment.items() if name in KEPT_VARIABLES or name.startswith(KEPT_PREFIXES)
    }
    # Output is a pipe in the guest; without this Python programs would show their progress only at the end.
    return {**kept, "PYTHONUNBUFFERED": "1", "HEADWAY_LAB": "1", "HEADWAY_DILATION": str(dilation)}


def command_script(job: Job) -> str:
    """Return the shell script that becomes the command, in its folder and environment."""
    exports = [f"export {name}={shlex.quote(value)}" for name, value in sorted(job.environment.items())]
    return "\n".join([*exports, f"cd {shlex.quote(str(job.cwd))} || exit 125", f"exec {shlex.join(job.command)}", ""])


def job_files(job: Job, image: Image, token: str) -> dict[str, str]:
    """Return the job as files, by name.

    ``kept`` is the folder that stays visible even if it lies where the guest has folders of its own (/tmp, ...).
    """
    files = {
        "kept": str(CHECKOUT if job.cwd.is_relative_to(CHECKOUT) else job.cwd),
        "modules": str(image.modules.resolve()),
        "python": sys.executable,
        "token": token,
        "command.sh": command_script(job),
    }
    if job.out_dir is not None:
        files["out"] = str(job.out_dir)
    return files | {name: (Path(__file__).parent / name).read_text() for name in BESIDE}


@dataclass(slots=True)
class OutputStream:
    """Output of the guest's command on its way to ours; ends with the token, and what follows it in one line."""

    token: bytes
    held: bytes = b""
    ended: bool = False

    def released(self, data: bytes) -> bytes:
        """Return what can be shown after ``data`` has come: all but what may be the beginning of the token."""
        self.held += data
        if self.ended:  # the exit code, on its way in pieces
            return b""
        before, token, after = self.held.partition(self.token)
        if token:
            self.ended, self.held = True, after
            return before
        keep = next((n for n in range(min(len(self.token), len(before)), 0, -1) if before.endswith(self.token[:n])), 0)
        self.held = before[len(before) - keep :]
        return before[: len(before) - keep]


def run(job: Job, image: Image, say: Say) -> int:
    """Return the exit code of the command, run in a new machine; its output goes to our stdout and stderr, live.

    Raises:
        KernelDiedError: if its kernel dies before the command ends.
        MachineError: if the machine stops before the command ends for another reason.
    """
    if job.out_dir is not None:
        job.out_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="headway-lab-") as name, _terminating_signals_raise():
        token = f"\x01{uuid.uuid4().hex}\x01"  # rarely printed; a shell drops NUL
        folder = Path(name)
        (folder / "job").mkdir()
        for file, text in job_files(job, image, token).items():
            (folder / "job" / file).write_text(text)
        began_from = snapshot.taken(image, job.dilation, job.memory_mib, say)
        say(f"Linux {image.version}, dilation {job.dilation}")
        with _going_on(began_from, job, image, folder) as sockets:
            return _followed(sockets, token.encode(), job.timeout_s, folder, say)


@contextmanager
def _going_on(
    began_from: snapshot.Snapshot, job: Job, image: Image, folder: Path
) -> Iterator[dict[str, socket.socket]]:
    """Let a guest go on from a snapshot, tell it its job, and yield our ends of the command's output."""
    kernel = image.kernel, began_from.initramfs
    command = qemu.qemu_command(kernel, job.dilation, began_from.memory, folder / "console", job.out_dir)
    with qemu.started([*command, "-incoming", "defer"], folder / "qemu") as ends:
        ends["job"].sendall(f"{time.time():.0f} {folder / 'job'}\n".encode())
        try:
            monitor = qemu.Monitor(ends[qemu.MONITOR])
            monitor.migrated("migrate_incoming", f"exec:cat {shlex.quote(str(began_from.devices))}")
            monitor.does("cont")
        except qemu.MachineError as error:
            words = qemu.last_words(folder / "console", folder / "qemu")
            raise qemu.MachineError(
                f"{error}; delete {began_from.folder} to boot anew; last words:\n{words}"
            ) from error
        yield {name: ends[name] for name in ("out", "err")}


@contextmanager
def _terminating_signals_raise() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into SystemExit, so that the machine is stopped on the way out."""

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _followed(sockets: dict[str, socket.socket], token: bytes, timeout_s: int | None, folder: Path, say: Say) -> int:
    deadline_s = time.monotonic() + timeout_s if timeout_s else None
    streams = {name: OutputStream(token) for name in sockets}
    targets = {"out": sys.stdout.fileno(), "err": sys.stderr.fileno()}
    with selectors.DefaultSelector() as selector:
        for name, end in sockets.items():
            selector.register(end, selectors.EVENT_READ, name)
        while not _finished(streams):
            left_s = max(0.0, deadline_s - time.monotonic()) if deadline_s else None
            ready = selector.select(left_s)
            if not ready and left_s is not None:
                say(f"stopped after {timeout_s} s of wall time (--timeout)")
                return EXIT_TIMEOUT
            for key, _ in ready:
                data = sockets[key.data].recv(65536)
                if not data:
                    raise qemu.stopped_early(qemu.last_words(folder / "console", folder / "qemu"))
                _write_all(targets[key.data], streams[key.data].released(data))
    return int(streams["out"].held)


def _finished(streams: dict[str, OutputStream]) -> bool:
    return all(stream.ended for stream in streams.values()) and streams["out"].held.endswith(b"\n")


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
