"""QEMU as the lab starts it: its command line, its process, its monitor, and what is left to read when it dies."""

from __future__ import annotations

import ctypes
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

PR_SET_PDEATHSIG = 1
"""Source: linux/prctl.h."""
KERNEL_FAULT = re.compile(r"BUG: |Oops: |general protection fault|-\[ cut here \]-|Kernel panic")
LAST_LINES = 15
TSC_KHZ = 1_000_000
"""``-icount shift=0`` makes one instruction 1 ns long: 1e9 cycles a second of virtual time."""
POLL_S = 0.02
MIGRATED_WITHIN_S = 60.0  # 65 kB; a file that was cut short has QEMU wait for more

MACHINE = "microvm,acpi=on,rtc=on,pit=off,pic=off,pcie=off,memory-backend=memory"
"""Not a PC: that one has timers (HPET, PM timer) that do not know of the dilation. The kernel believes them, and sets
its own timer K times too short: at K=4 a transfer took 17 times the interrupts, and twice the real time."""
CPU = "max,-erms,-fsrm"
"""Without these two the kernel copies 8 bytes by an instruction, not 1: 13% of the CPU for 1 Gbit/s at K=1, not 34%."""
PORTS = ("job", "out", "err")
"""Between guest and launcher: the job goes in, the command's two outputs come out. Always all, in this order: a guest
that goes on from a snapshot finds the devices it had."""
MONITOR = "monitor"
PROMPT = b"(qemu) "


class MachineError(Exception):
    """The machine did not start, or stopped before the command did."""


class KernelDiedError(MachineError):
    """The machine stopped because its kernel died; the text has the kernel's trace."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The guest's memory: a file, which is written if ``shared`` and else only read."""

    file: Path
    mib: int
    shared: bool


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


def machine_options(dilation: int, mib: int) -> dict[str, str]:
    """Return QEMU's options that make the machine what it is; a snapshot goes on only in the same machine."""
    return {
        "-name": "headway-lab",
        "-machine": MACHINE,
        "-accel": "tcg",
        "-cpu": CPU,
        "-smp": "1",
        "-m": f"{mib}M",
        "-icount": "shift=0,sleep=off",
        "-rtc": "base=utc,clock=vm",
        "-seed": "1",
        "-append": kernel_arguments(dilation),
        "-serial": "chardev:console",
        "-display": "none",
    }


def qemu_command(
    kernel: tuple[Path, Path], dilation: int, memory: Memory, console: Path, out_dir: Path | None
) -> list[str]:
    """Return QEMU's command line, without the descriptors of ``PORTS``.

    Args:
        kernel: the kernel and its first root file system.
        dilation: of the guest's clock.
        memory: of the guest.
        console: file for the kernel's messages.
        out_dir: the folder that the guest may write to; None for an unwritable one.
    """
    options = machine_options(dilation, memory.mib)
    options |= {"-kernel": str(kernel[0]), "-initrd": str(kernel[1])}
    options["-chardev"] = f"file,id=console,path={_escaped(console)}"
    share = "on" if memory.shared else "off"
    options["-object"] = (
        f"memory-backend-file,id=memory,size={memory.mib}M,mem-path={_escaped(memory.file)},share={share}"
    )
    command = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot"]
    command += [*chain.from_iterable(options.items()), *_folder("host", Path("/"), "readonly=on")]
    command += _folder("out", out_dir or console.parent, "readonly=off" if out_dir else "readonly=on")
    return [*command, "-device", "virtio-serial-device"]


def _folder(tag: str, folder: Path, access: str) -> list[str]:
    return [
        "-fsdev",
        f"local,id={tag},path={_escaped(folder)},security_model=none,multidevs=remap,{access}",
        "-device",
        f"virtio-9p-device,fsdev={tag},mount_tag={tag}",
    ]


def _escaped(path: Path) -> str:
    return str(path).replace(",", ",,")  # QEMU's way to write a comma in a value


def _quoted(word: str) -> str:
    r"""Return a word for QEMU's monitor.

    >>> print(_quoted('exec:cat "x"'))
    "exec:cat \"x\""
    """
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class Monitor:
    """QEMU's monitor for people, one command at a time.

    Not that for programs (QMP): it has a thread of its own, which each timer of the guest would wake.
    """

    def __init__(self, end: socket.socket) -> None:
        """Wait for its prompt."""
        self._end = end
        self._said()

    def ask(self, command: str) -> str:
        """Return what a command says; nothing if it has nothing to say.

        Raises:
            MachineError: QEMU has ended.
        """
        with suppress(ConnectionError):
            self._end.sendall(f"{command}\n".encode())
        said = self._said(command)
        _, _, answer = said.partition("\n")  # the first line is the command, as it was typed
        return answer.replace("\r", "").strip()

    def does(self, command: str) -> None:
        """Give a command that has nothing to say.

        Raises:
            MachineError: it says why not, or QEMU has ended.
        """
        if answer := self.ask(command):
            raise MachineError(f"QEMU: {command}: {answer}")

    def migrated(self, command: str, uri: str) -> None:
        """Save the state to, or load it from, ``uri``; the memory's file is not part of it."""
        self.does("migrate_set_capability x-ignore-shared on")
        self.does(f"{command} {_quoted(uri)}")
        deadline_s = time.monotonic() + MIGRATED_WITHIN_S
        while "Migration status: completed" not in (status := self.ask("info migrate")):
            if "Migration status: failed" in status or time.monotonic() > deadline_s:
                raise MachineError(f"QEMU: {command} failed")
            time.sleep(POLL_S)

    def _said(self, command: str = "") -> str:
        said = b""
        while not said.endswith(PROMPT):
            with suppress(ConnectionError):
                if data := self._end.recv(4096):
                    said += data
                    continue
            raise MachineError(f"QEMU ended at {command}")
        return said.removesuffix(PROMPT).decode(errors="replace")


@contextmanager
def started(command: list[str], messages: Path) -> Iterator[dict[str, socket.socket]]:
    """Start QEMU, yield our ends of its ports and monitor, and stop it however the block is left."""
    pairs = {name: socket.socketpair() for name in (*PORTS, MONITOR)}
    ports: list[str] = []
    for name in PORTS:
        ports += ["-chardev", f"socket,id={name},fd={pairs[name][1].fileno()}"]
        ports += ["-device", f"virtserialport,chardev={name},name=headway.{name}"]
    ports += ["-chardev", f"socket,id={MONITOR},fd={pairs[MONITOR][1].fileno()}"]
    ports += ["-mon", f"chardev={MONITOR},mode=readline"]
    prctl = ctypes.CDLL(None).prctl

    def die_with_launcher() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    with messages.open("wb") as log:
        process = subprocess.Popen(
            [*command, *ports],
            pass_fds=tuple(pair[1].fileno() for pair in pairs.values()),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
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


def stopped_early(words: str) -> MachineError:
    """Return the error for a machine that stopped before the command did."""
    kind = KernelDiedError if KERNEL_FAULT.search(words) else MachineError
    return kind(f"the machine stopped before the command did; its last words:\n{words}")


def last_words(console: Path, messages: Path) -> str:
    """Return the last lines of QEMU's own messages and of the kernel's console; of a dying kernel all it said."""
    texts: Iterable[str] = (path.read_text(errors="replace") for path in (messages, console) if path.exists())
    return "\n".join("\n".join(_last_lines(text.splitlines())) for text in texts).strip() or "(none)"


def _last_lines(lines: list[str]) -> list[str]:
    """Return the last few lines, and all from a kernel's first fault on: what follows it may be its consequence."""
    fault = next((n for n, line in enumerate(lines) if KERNEL_FAULT.search(line)), len(lines))
    return lines[max(0, min(fault, len(lines) - LAST_LINES)) :]
