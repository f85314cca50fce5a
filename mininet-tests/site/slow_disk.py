"""A disk that takes so many bits a second, in virtual time too: a network block device (NBD) whose server waits.

The kernel sees a disk like any other: busy while something waits for it, and written to as fast as its server answers.
Its rate can be changed while it is written to. What it holds is kept in memory.

Source: linux/Documentation/admin-guide/blockdev/nbd.rst, include/uapi/linux/nbd.h.
"""

import argparse
import fcntl
import mmap
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

from mininet_tests.testing.eventually import eventually

DEVICE, COUNTED = Path("/dev/nbd0"), Path("/sys/block/nbd0/stat")
SECTOR_BYTES = 512  # in what the kernel counts, whatever the device's are
BLOCK_BYTES = 4096
SET_SOCK, SET_BLKSIZE, DO_IT, CLEAR_SOCK, SET_SIZE_BLOCKS, DISCONNECT, SET_FLAGS = (
    0xAB00, 0xAB01, 0xAB03, 0xAB04, 0xAB07, 0xAB08, 0xAB0A,
)  # fmt: skip
HAS_FLAGS, SEND_FLUSH = 1, 1 << 2
READ, WRITE, DISC, FLUSH = range(4)
REQUEST, REPLY = struct.Struct(">IHHQQI"), struct.Struct(">IIQ")
REPLY_MAGIC = 0x67446698
LATE_S = 0.01  # what it may catch up of: a disk does not save up the time in which nothing was asked of it
UP_WITHIN_S = 20.0
WRITTEN_AFTER_S = 0.01  # what is dirty is written at once, so that the disk never idles while something waits
MOUNTED = "noatime,noinit_itable,dioread_lock"
"""Else what was written is marked so afterwards, and an inode is locked while a block of its tree waits for that."""
SHARP = 16  # writers are held up in the last sixteenth of what may be dirty, and not before


class BlockServer:
    """Answers what the kernel asks of the disk, writes no faster than its rate.

    What is to be written waits here and not in the socket: a kernel that cannot hand it over keeps the pages and the
    inode locked meanwhile, and holds up who writes to the file by that. No read waits for it, as by any elevator.
    """

    def __init__(self, end: socket.socket, size_bytes: int, rate_bps: int) -> None:
        """Make it; ``run`` serves."""
        self.rate_bps = rate_bps
        self._end, self._data = end, mmap.mmap(-1, size_bytes)
        self._due_s = time.monotonic()
        self._writes: SimpleQueue[tuple[int, int] | None] = SimpleQueue()
        self._answers = threading.Lock()

    def run(self) -> None:
        """Serve until the kernel disconnects."""
        writing = threading.Thread(target=self._write, daemon=True)
        writing.start()
        head = bytearray(REQUEST.size)
        while self._took(memoryview(head)):
            _, _, kind, handle, at, count = REQUEST.unpack(head)
            if kind == DISC:
                break
            if kind == READ:
                self._answer(handle, self._data[at : at + count])
                continue
            if kind == WRITE and not self._took(memoryview(self._data)[at : at + count]):
                break
            self._writes.put((handle, count if kind == WRITE else 0))
        self._writes.put(None)
        writing.join()

    def _write(self) -> None:
        """Answer what is to be written, and flushes, in turn, each when the disk has had the time for it."""
        while (one := self._writes.get()) is not None:
            handle, count = one
            self._wait(count)
            self._answer(handle)

    def _answer(self, handle: int, data: bytes = b"") -> None:
        with self._answers:
            self._end.sendall(REPLY.pack(REPLY_MAGIC, 0, handle) + data)

    def _took(self, room: memoryview) -> bool:
        """Fill some memory with what comes; return whether that came."""
        while room:
            got = self._end.recv_into(room)
            if not got:
                return False
            room = room[got:]
        return True

    def _wait(self, count: int) -> None:
        self._due_s = max(self._due_s, time.monotonic() - LATE_S) + count * 8 / self.rate_bps
        time.sleep(max(0.0, self._due_s - time.monotonic()))


class SlowDisk:
    """A disk with a file system on it, mounted.

    Attributes:
        path: where.
    """

    def __init__(self, path: Path, process: "subprocess.Popen[str]") -> None:
        self.path, self._process = path, process

    def change(self, rate_bps: int) -> None:
        """Give it another rate from now on, bit/s."""
        assert self._process.stdin is not None  # noqa: S101 it is a pipe
        self._process.stdin.write(f"{rate_bps}\n")
        self._process.stdin.flush()

    @property
    def written_bytes(self) -> int:
        """What has been written to it so far. Source: linux/Documentation/block/stat.rst, the seventh number."""
        return int(COUNTED.read_text().split()[6]) * SECTOR_BYTES


@contextmanager
def slow_disk(path: Path, rate_bps: int, size_bytes: int, room_bytes: int) -> Iterator[SlowDisk]:
    """Give a mounted disk; to be called as root, where the machine's page cache and its limits are ours.

    Args:
        path: an empty folder for it.
        rate_bps: what it takes.
        size_bytes: of it.
        room_bytes: what may wait for it in the page cache of the machine.
    """
    subprocess.run(["modprobe", "nbd", "nbds_max=1", "max_part=0"], check=True)
    subprocess.run(["modprobe", "ext4"], check=True)
    command = [sys.executable, "-m", __name__, "--rate", str(rate_bps), "--size", str(size_bytes)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)
    try:
        size = Path("/sys/block/nbd0/size")
        eventually(lambda: int(size.read_text()) > 0, within_s=UP_WITHIN_S, what="the disk is there")
        options = ["-q", "-F", "-m", "0", "-O", "^has_journal", "-E", "lazy_itable_init=1,nodiscard"]
        subprocess.run(["mkfs.ext4", *options, str(DEVICE)], check=True)
        path.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-o", MOUNTED, str(DEVICE), str(path)], check=True)
        _page_cache(room_bytes)
        yield SlowDisk(path, process)
    finally:
        subprocess.run(["umount", "-l", str(path)], check=False, capture_output=True)
        process.terminate()
        process.wait()


def _page_cache(room_bytes: int) -> None:
    """Let so much wait to be written, and have it written at once."""
    soon = str(round(100 * WRITTEN_AFTER_S))
    values = {"dirty_bytes": str(room_bytes), "dirty_background_bytes": str(room_bytes - room_bytes // SHARP)}
    for name, value in (values | {"dirty_expire_centisecs": soon, "dirty_writeback_centisecs": soon}).items():
        Path("/proc/sys/vm", name).write_text(value)


def _rates(server: BlockServer) -> None:
    """Take another rate from each line of the standard input; without one any more, end."""
    for line in sys.stdin:
        server.rate_bps = int(line)
    os._exit(0)


def main() -> None:
    """Serve a disk until the standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, required=True)
    parser.add_argument("--size", type=int, required=True)
    args = parser.parse_args()
    ours, kernels = socket.socketpair()
    server = BlockServer(ours, args.size, args.rate)
    threading.Thread(target=server.run, daemon=True).start()
    with DEVICE.open("rb") as device:
        for operation, value in (
            (CLEAR_SOCK, 0), (SET_BLKSIZE, BLOCK_BYTES), (SET_SIZE_BLOCKS, args.size // BLOCK_BYTES),
            (SET_FLAGS, HAS_FLAGS | SEND_FLUSH), (SET_SOCK, kernels.fileno()),
        ):  # fmt: skip
            fcntl.ioctl(device, operation, value)
        threading.Thread(target=_rates, args=(server,), daemon=True).start()
        fcntl.ioctl(device, DO_IT)


if __name__ == "__main__":
    main()
