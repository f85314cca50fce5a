"""The disk under a path and the page cache before it, as /proc tells them."""

import os
from pathlib import Path

from hostagent.stores.estimate import DiskState

PROC = Path("/proc")
SECTOR_BYTES = 512  # of /proc/diskstats, whatever the disk's own are
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Disk:
    """The disk that a path is on; None of it is told of one that /proc/diskstats does not have.

    Args:
        path: a file or a folder on it.
        proc: where /proc is.
    """

    def __init__(self, path: Path, proc: Path = PROC) -> None:
        self._proc = proc
        device = path.stat().st_dev
        self._numbers = f"{os.major(device)}", f"{os.minor(device)}"

    def state(self) -> DiskState | None:
        """Return what it has written, and what waits for it; None if it is on no disk: tmpfs, 9p, NFS, btrfs.

        Raises:
            OSError: /proc cannot be read.
        """
        written = written_of((self._proc / "diskstats").read_text(), self._numbers)
        if written is None:
            return None
        dirty_bytes, limit_bytes = dirty_of((self._proc / "vmstat").read_text())
        return DiskState(*written, dirty_bytes, limit_bytes)


def written_of(diskstats: str, numbers: tuple[str, str]) -> tuple[int, int] | None:
    """Return what a disk has written, bytes, and for how long it was busy, ms; None if there is none of its numbers.

    Source: Documentation/admin-guide/iostats.rst: fields 7 (sectors written) and 10 (milliseconds spent doing I/Os).

    >>> written_of(" 8 0 sda 1 2 3 4 5 6 70 8 9 1000 11 0 0 0 0", ("8", "0"))
    (35840, 1000)
    >>> written_of(" 8 0 sda 1 2 3 4 5 6 70 8 9 1000 11 0 0 0 0", ("8", "1")) is None
    True
    """
    for line in diskstats.splitlines():
        fields = line.split()
        if tuple(fields[:2]) == numbers and len(fields) > 12:
            return int(fields[9]) * SECTOR_BYTES, int(fields[12])
    return None


def dirty_of(vmstat: str) -> tuple[int, int]:
    """Return what waits in the page cache to be written, and from how much on writers are held up, bytes.

    The kernel holds them up from the middle of the two thresholds on, and more the nearer they come to the second.
    """
    found = dict(line.split(maxsplit=1) for line in vmstat.splitlines())
    waiting = sum(int(found.get(name, 0)) for name in ("nr_dirty", "nr_writeback"))
    return waiting * PAGE_BYTES, int(found.get("nr_dirty_threshold", 0)) * PAGE_BYTES
