"""One run of the lab's virtual machine: QEMU's command line, the job handed to it, its output brought back live."""

from __future__ import annotations

import ctypes
import os
import re
import selectors
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import FrameType

from mininet_tests.lab.image import Image, archive, program

Say = Callable[[str], None]

CHECKOUT = Path(__file__).resolve().parents[2]
EXIT_TIMEOUT = 124
"""As timeout(1)."""
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "TERM", "COLUMNS", "VIRTUAL_ENV")
KEPT_PREFIXES = ("HEADWAY_", "LC_", "PYTHON")
PR_SET_PDEATHSIG = 1
"""Source: linux/prctl.h."""
KERNEL_FAULT = re.compile(r"BUG: |Oops: |general protection fault|-\[ cut here \]-|Kernel panic")
LAST_LINES = 15
TSC_KHZ = 1_000_000
"""``-icount shift=0`` makes one instruction 1 ns long: 1e9 cycles a second of virtual time."""

MACHINE = "microvm,acpi=on,rtc=on,pit=off,pic=off,pcie=off"
"""Not a PC: that one has timers (HPET, PM timer) that do not know of the dilation. The kernel believes them, and sets
its own timer K times too short: at K=4 a transfer took 17 times the interrupts, and twice the real time."""
CPU = "max,-erms,-fsrm"
"""Without these two the kernel copies 8 bytes by an instruction, not 1: 13% of the CPU for 1 Gbit/s at K=1, not 34%."""


class MachineError(Exception):
    """The machine did not start, or stopped before the command did."""


class KernelDiedError(MachineError):
    """The machine stopped because its kernel died; the text has the kernel's trace."""


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


def job_archive(job: Job, image: Image, token: str) -> bytes:
    """Return the job as an archive that is joined to the first root file system.

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
    return archive(program(f"job/{name}", text.encode(), mode=0o100644) for name, text in files.items())


def kernel_arguments(dilation: int) -> str:
    """Return the kernel's command line.

    ``tsc_early_khz`` is the time dilation: the guest takes K * 1e9 cycles for one second. ``nokaslr``: addresses, and
    by them hash orders, are the same in each run. ``panic`` and ``reboot``: a kernel that dies ends the machine at
    once, by a triple fault; other ways to restart can hang it. The spared instructions are those of measures against
    attackers and of zeroing each allocated page: the CPU is there for the experiment.
    """
    clock = f"tsc_early_khz={TSC_KHZ * dilation} tsc=reliable clocksource=tsc"
    spare = "mitigations=off init_on_alloc=0 hardened_usercopy=off audit=0 nowatchdog apparmor=0"
    return f"console=ttyS0 quiet loglevel=4 panic=-1 reboot=t nokaslr random.trust_cpu=on {clock} {spare}"


def qemu_command(job: Job, image: Image, initramfs: Path, console: Path, streams: dict[str, int]) -> list[str]:
    """Return QEMU's command line.

    Args:
        job: gives the memory, the dilation and the shared folder.
        image: the kernel.
        initramfs: the first root file system with the job.
        console: file for the kernel's messages.
        streams: name of the guest's port -> file descriptor of our socket.
    """
    options = {
        "-name": "headway-lab",
        "-machine": MACHINE,
        "-accel": "tcg",
        "-cpu": CPU,
        "-smp": "1",
        "-m": f"{job.memory_mib}M",
        "-icount": "shift=0,sleep=off",
        "-rtc": "base=utc,clock=vm",
        "-seed": "1",
        "-kernel": str(image.kernel),
        "-initrd": str(initramfs),
        "-append": kernel_arguments(job.dilation),
        "-chardev": f"file,id=console,path={console}",
        "-serial": "chardev:console",
        "-display": "none",
    }
    command = [
        "qemu-system-x86_64",
        "-nodefaults",
        "-no-user-config",
        "-no-reboot",
        *chain.from_iterable(options.items()),
    ]
    command += [*_shared("host", Path("/"), "readonly=on"), "-device", "virtio-serial-device"]
    if job.out_dir is not None:
        command += _shared("out", job.out_dir, "readonly=off")
    for name, descriptor in streams.items():
        command += ["-chardev", f"socket,id={name},fd={descriptor}"]
        command += ["-device", f"virtserialport,chardev={name},name=headway.{name}"]
    return command


def _shared(tag: str, folder: Path, access: str) -> list[str]:
    path = str(folder).replace(",", ",,")  # QEMU's way to write a comma in a value
    return [
        "-fsdev",
        f"local,id={tag},path={path},security_model=none,multidevs=remap,{access}",
        "-device",
        f"virtio-9p-device,fsdev={tag},mount_tag={tag}",
    ]


@dataclass(slots=True)
class Stream:
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
    with tempfile.TemporaryDirectory(prefix="headway-lab-") as folder, _terminating_signals_raise():
        token = f"\x01{uuid.uuid4().hex}\x01"  # rarely printed; a shell drops NUL
        initramfs, console = Path(folder) / "initramfs", Path(folder) / "console"
        initramfs.write_bytes(image.initramfs.read_bytes() + job_archive(job, image, token))
        say(f"booting Linux {image.version}, dilation {job.dilation}")
        with _qemu(job, image, initramfs, console) as sockets:
            return _followed(sockets, token.encode(), job.timeout_s, console, say)


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


@contextmanager
def _qemu(job: Job, image: Image, initramfs: Path, console: Path) -> Iterator[dict[str, socket.socket]]:
    """Start QEMU, yield our ends of the command's output, and stop QEMU however the block is left."""
    pairs = {name: socket.socketpair() for name in ("out", "err")}
    theirs = {name: pair[1].fileno() for name, pair in pairs.items()}
    prctl = ctypes.CDLL(None).prctl

    def die_with_launcher() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    log = console.with_name("qemu")
    with log.open("wb") as messages:
        process = subprocess.Popen(
            qemu_command(job, image, initramfs, console, theirs),
            pass_fds=tuple(theirs.values()),
            stdin=subprocess.DEVNULL,
            stdout=messages,
            stderr=messages,
            start_new_session=True,
            preexec_fn=die_with_launcher,  # noqa: PLW1509 (there is one thread here)
        )
    for pair in pairs.values():
        pair[1].close()
    try:
        yield {name: pair[0] for name, pair in pairs.items()}
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
        process.kill()
        process.wait()


def _followed(sockets: dict[str, socket.socket], token: bytes, timeout_s: int | None, console: Path, say: Say) -> int:
    deadline_s = time.monotonic() + timeout_s if timeout_s else None
    streams = {name: Stream(token) for name in sockets}
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
                    raise _stopped_early(last_words(console))
                _write_all(targets[key.data], streams[key.data].released(data))
    return int(streams["out"].held)


def _stopped_early(words: str) -> MachineError:
    """Return the error for a machine that stopped before the command did."""
    kind = KernelDiedError if KERNEL_FAULT.search(words) else MachineError
    return kind(f"the machine stopped before the command did; its last words:\n{words}")


def _finished(streams: dict[str, Stream]) -> bool:
    return all(stream.ended for stream in streams.values()) and streams["out"].held.endswith(b"\n")


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def last_words(console: Path) -> str:
    """Return the last lines of QEMU's own messages and of the kernel's console; of a dying kernel all it said."""
    texts: Iterable[str] = (
        path.read_text(errors="replace") for path in (console.with_name("qemu"), console) if path.exists()
    )
    return "\n".join("\n".join(_last_lines(text.splitlines())) for text in texts).strip() or "(none)"


def _last_lines(lines: list[str]) -> list[str]:
    """Return the last few lines, and all from a kernel's first fault on: what follows it may be its consequence."""
    fault = next((n for n, line in enumerate(lines) if KERNEL_FAULT.search(line)), len(lines))
    return lines[max(0, min(fault, len(lines) - LAST_LINES)) :]
