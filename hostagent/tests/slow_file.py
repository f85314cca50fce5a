"""A disk that takes so many bits a second on any kernel with FUSE: a loop device on a file whose server waits.

The kernel sees a disk like any other: busy while something waits for it, and written to as fast as the server answers.
What it holds is kept in memory. A throttle of a cgroup would not do: what waits in it does not make a disk busy.

Source: linux/include/uapi/linux/fuse.h.
"""

import argparse
import ctypes
import mmap
import os
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mininet_tests.testing.eventually import eventually

FUSE = Path("/dev/fuse")
LOOKUP, FORGET, GETATTR, OPEN, READ, WRITE, STATFS, RELEASE, FSYNC = 1, 2, 3, 14, 15, 16, 17, 18, 20
FLUSH, INIT, OPENDIR, RELEASEDIR, INTERRUPT, DESTROY, BATCH_FORGET = 25, 26, 27, 29, 36, 38, 42
SILENT = {FORGET, INTERRUPT, BATCH_FORGET}
HEAD, ANSWER, RANGE = struct.Struct("<IIQQIIIHH"), struct.Struct("<IiQ"), struct.Struct("<QQIIQII")
ATTRIBUTES = struct.Struct("<6Q10I")
MAJOR, MINOR, BIG_WRITES, MAX_PAGES, DIRECT_IO = 7, 31, 1 << 5, 1 << 22, 1
MOST_BYTES, PAGE_BYTES = 1 << 17, 4096
FOLDER, FILE, NAME = 1, 2, "disk"
ENOENT, ENOSYS = 2, 38
LATE_S = 0.1  # what it may catch up of, where a busy machine has kept it waiting; not the time in which it was idle
UP_WITHIN_S = 20.0


class SlowFile:
    """The one file of a file system; answers no faster than its rate."""

    def __init__(self, size_bytes: int, rate_bps: int) -> None:
        """Make it; ``answer`` serves."""
        self._data, self._rate_bps, self._due_s = mmap.mmap(-1, size_bytes), rate_bps, time.monotonic()
        opened = struct.pack("<QIi", 1, DIRECT_IO, 0)
        pages = MOST_BYTES // PAGE_BYTES
        limits = struct.pack(
            "<4I2H2I2H", MAJOR, MINOR, MOST_BYTES, BIG_WRITES | MAX_PAGES, 12, 9, MOST_BYTES, 1, pages, 0
        )
        self._answers: dict[int, Callable[[int, memoryview], bytes]] = {
            INIT: lambda _, __: limits + bytes(64 - len(limits)),
            LOOKUP: lambda _, name: self._found(bytes(name).rstrip(b"\0").decode()),
            GETATTR: lambda node, _: struct.pack("<QII", 1, 0, 0) + self._attributes(node),
            OPEN: lambda _, __: opened,
            OPENDIR: lambda _, __: opened,
            STATFS: lambda _, __: bytes(80),
            READ: lambda _, asked: self._read(asked),
            WRITE: lambda _, asked: self._write(asked),
        }

    def answer(self, kind: int, node: int, body: memoryview) -> bytes:
        """Return the answer to a request.

        Raises:
            OSError: what the kernel is to be told.
        """
        if kind in (RELEASE, RELEASEDIR, FSYNC, FLUSH, DESTROY):
            return b""
        if kind not in self._answers:
            raise OSError(ENOSYS, "no such request")
        return self._answers[kind](node, body)

    def _found(self, name: str) -> bytes:
        if name != NAME:
            raise OSError(ENOENT, name)
        return struct.pack("<QQQQII", FILE, 0, 1, 1, 0, 0) + self._attributes(FILE)

    def _attributes(self, node: int) -> bytes:
        mode, size = (stat.S_IFDIR | 0o700, 0) if node == FOLDER else (stat.S_IFREG | 0o600, len(self._data))
        return ATTRIBUTES.pack(node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, PAGE_BYTES, 0)

    def _read(self, asked: memoryview) -> bytes:
        _, at, count, *_ = RANGE.unpack_from(asked)
        self._wait(count)
        return self._data[at : at + count]

    def _write(self, asked: memoryview) -> bytes:
        _, at, count, *_ = RANGE.unpack_from(asked)
        self._data[at : at + count] = asked[RANGE.size : RANGE.size + count]
        self._wait(count)
        return struct.pack("<II", count, 0)

    def _wait(self, count: int) -> None:
        self._due_s = max(self._due_s, time.monotonic() - LATE_S) + count * 8 / self._rate_bps
        time.sleep(max(0.0, self._due_s - time.monotonic()))


def serve(file: SlowFile, device: int) -> None:
    """Answer what the kernel asks until the file system is unmounted."""
    while True:
        try:
            request = memoryview(os.read(device, MOST_BYTES + PAGE_BYTES))
        except OSError:  # ENODEV: unmounted
            return
        _, kind, unique, node, *_ = HEAD.unpack_from(request)
        if kind in SILENT:
            continue
        try:
            body, error = file.answer(kind, node, request[HEAD.size :]), 0
        except OSError as why:
            body, error = b"", -(why.errno or ENOSYS)
        os.write(device, ANSWER.pack(ANSWER.size + len(body), error, unique) + body)


@contextmanager
def slow_disk(folder: Path, rate_bps: int, size_bytes: int) -> Iterator[Path]:
    """Give a folder on a mounted disk, as root.

    Args:
        folder: an empty one, for it and for what it is made of.
        rate_bps: what it takes.
        size_bytes: of it.
    """
    below, above = folder / "below", folder / "data"
    below.mkdir()
    above.mkdir()
    with ExitStack() as undo:
        command = [sys.executable, "-m", __name__, "--rate", str(rate_bps), "--size", str(size_bytes), str(below)]
        process = subprocess.Popen(command)
        undo.callback(process.wait)
        undo.callback(process.terminate)
        undo.callback(_done, "umount", "-l", below)
        eventually((below / NAME).exists, within_s=UP_WITHIN_S, what="the disk is there")
        said = subprocess.run(["losetup", "--find", "--show", below / NAME], capture_output=True, text=True, check=True)
        device = said.stdout.strip()
        undo.callback(_done, "losetup", "--detach", device)
        options = ["-q", "-F", "-m", "0", "-O", "^has_journal", "-E", "lazy_itable_init=1,nodiscard"]
        subprocess.run(["mkfs.ext4", *options, device], check=True)
        subprocess.run(["mount", "-o", "noatime,noinit_itable", device, above], check=True)
        undo.callback(_done, "umount", above)
        yield above


def _done(*command: str | Path) -> None:
    subprocess.run(command, check=False)


def main() -> None:
    """Mount a file system with a slow file, and serve it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    device = os.open(FUSE, os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    if ctypes.CDLL(None, use_errno=True).mount(b"slow", os.fsencode(args.folder), b"fuse", 0, options):
        raise OSError(ctypes.get_errno(), f"mount {args.folder}")
    serve(SlowFile(args.size, args.rate), device)


if __name__ == "__main__":
    main()
