"""Snapshots: a guest that has booted and waits for its job, kept in the cache, from which later guests go on.

What a guest does until then depends on the machine, the kernel and ``init.sh``, and on nothing else of the host: no
file of it is open. A snapshot is a file of the guest's memory, which later guests map privately, and one of the state
of its CPU and devices.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mininet_tests.lab import qemu
from mininet_tests.lab.image import Image, initramfs, locked

Say = Callable[[str], None]

UNUSED_S = 7 * 86400
"""A snapshot that no lab has started from for so long is deleted."""
READY = b"ready\n"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A guest to go on from."""

    folder: Path
    memory_mib: int

    @property
    def memory(self) -> qemu.Memory:
        """Its memory, to be read only."""
        return qemu.Memory(self.folder / "memory", self.memory_mib, shared=False)

    @property
    def devices(self) -> Path:
        """The state of its CPU and devices."""
        return self.folder / "devices"

    @property
    def initramfs(self) -> Path:
        """What it has booted from: a part of the machine."""
        return self.folder / "initramfs"


def taken(image: Image, dilation: int, memory_mib: int, say: Say) -> Snapshot:
    """Return the snapshot of a machine, which is booted if there is none yet.

    Raises:
        MachineError: if the machine stops before it is ready.
    """
    first_files = initramfs(image)
    options = qemu.machine_options(dilation, memory_mib)
    program = Path(shutil.which("qemu-system-x86_64") or "/").stat()
    machine = repr((options, program.st_size, program.st_mtime_ns)).encode()
    name = f"booted-{dilation}-{memory_mib}-{hashlib.sha256(first_files + machine).hexdigest()[:16]}"
    snapshot = Snapshot(image.folder / name, memory_mib)
    with locked(image.folder / "lock", say):
        if not snapshot.folder.exists():
            _forget_unused(image.folder)
            say(f"booting Linux {image.version}, dilation {dilation}; later runs go on from here")
            _make(snapshot, image, dilation, first_files)
        os.utime(snapshot.folder)
    return snapshot


def _forget_unused(folder: Path) -> None:
    for path in folder.glob("booted-*"):
        if time.time() - path.stat().st_mtime > UNUSED_S:
            shutil.rmtree(path)


def _make(snapshot: Snapshot, image: Image, dilation: int, first_files: bytes) -> None:
    part = Snapshot(snapshot.folder.with_suffix(".part"), snapshot.memory_mib)
    shutil.rmtree(part.folder, ignore_errors=True)
    part.folder.mkdir()
    part.initramfs.write_bytes(first_files)
    console, messages = part.folder / "console", part.folder / "qemu"
    memory = qemu.Memory(part.memory.file, part.memory_mib, shared=True)
    command = qemu.qemu_command((image.kernel, part.initramfs), dilation, memory, console, None)
    with qemu.started(command, messages) as ends:
        told = b""
        while not told.endswith(READY):
            data = ends["job"].recv(64)
            if not data:
                raise qemu.stopped_early(qemu.last_words(console, messages))
            told += data
        monitor = qemu.Monitor(ends[qemu.MONITOR])
        monitor.does("stop")
        monitor.migrated("migrate -d", f"exec:cat >{shlex.quote(str(part.devices))}")
    part.folder.rename(snapshot.folder)
