"""The disk under a path and the page cache before it, and what programs wait for, as /proc tells them."""

import errno
import os
import re
from pathlib import Path

from hostagent.stores.estimate import DiskState, PressureState

PROC = Path("/proc")
SECTOR_BYTES = 512  # of /proc/diskstats, whatever the disk's own are
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Disk:
    """The disk that a path is on, now and whenever something else has been mounted there.

    The path itself is not looked at: a server of NFS that hangs must not hold up who looks each second.

    Args:
        path: a file or a folder on it, without symbolic links.
        proc: where /proc is.
    """

    def __init__(self, path: Path, proc: Path = PROC) -> None:
        self._path = path
        self._proc = proc
        self._mounts = ""
        self._device: str | None = None

    def state(self) -> DiskState | None:
        """Return what it has written, and what waits for it; None if it is on no disk: tmpfs, 9p, NFS, btrfs.

        Raises:
            OSError: /proc cannot be read.
        """
        mounts = (self._proc / "self" / "mountinfo").read_text(errors="surrogateescape")
        if mounts != self._mounts:
            self._mounts, self._device = mounts, device_at(mounts, self._path)
        if self._device is None:
            return None
        written = written_of((self._proc / "diskstats").read_text(), self._device)
        if written is None:
            return None
        return DiskState(*written, *dirty_of((self._proc / "vmstat").read_text()), self._device)


def pressure(proc: Path = PROC) -> PressureState | None:
    """Return for how long programs have waited for memory and for disks so far; None where the kernel does not tell.

    Raises:
        OSError: /proc cannot be read.
    """
    try:
        memory, io = ((proc / "pressure" / name).read_text() for name in ("memory", "io"))
    except (FileNotFoundError, NotADirectoryError, NotImplementedError):
        return None
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:  # built in, and not switched on: psi=1 at boot
            return None
        raise
    return PressureState(stalled_us(memory), stalled_us(io))


def stalled_us(text: str) -> int:
    r"""Return for how long some program has waited so far. Source: Documentation/accounting/psi.rst.

    >>> stalled_us("some avg10=0.00 avg60=0.00 avg300=0.00 total=4711\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=3")
    4711
    """
    return int(text.split("total=", 1)[1].split(maxsplit=1)[0])


def device_at(mountinfo: str, path: Path) -> str | None:
    r"""Return the numbers of the device that is mounted at a path or above it; None if nothing is.

    Source: Documentation/filesystems/proc.rst, 3.5: fields 3 and 5. What is mounted later covers what was there.

    >>> device_at("26 1 8:1 / / rw - ext4 a rw\n27 26 8:2 / /the\\040data rw - ext4 b rw", Path("/the data/x"))
    '8:2'
    """
    mounts = (line.split(" ") for line in mountinfo.split("\n") if line)
    mounted = {fields[4]: fields[2] for fields in mounts}
    names = (re.sub(r"[ \t\n\\]", lambda found: f"\\{ord(found[0]):03o}", str(one)) for one in (path, *path.parents))
    return next((mounted[name] for name in names if name in mounted), None)


def written_of(diskstats: str, device: str) -> tuple[int, int] | None:
    """Return what a disk has written, bytes, and for how long it was busy, ms; None if there is none of its numbers.

    Source: Documentation/admin-guide/iostats.rst: fields 7 (sectors written) and 10 (milliseconds spent doing I/Os).

    >>> written_of(" 8 0 sda 1 2 3 4 5 6 70 8 9 1000 11 0 0 0 0", "8:0")
    (35840, 1000)
    >>> written_of(" 8 0 sda 1 2 3 4 5 6 70 8 9 1000 11 0 0 0 0", "8:1") is None
    True
    """
    for line in diskstats.splitlines():
        fields = line.split()
        if ":".join(fields[:2]) == device and len(fields) > 12:
            return int(fields[9]) * SECTOR_BYTES, int(fields[12])
    return None


def dirty_of(vmstat: str) -> tuple[int, int]:
    r"""Return what waits in the page cache to be written, and how much can when writers are held up, bytes.

    The kernel holds them up from the middle of its two thresholds on, and more the nearer they come to the second: it
    steers to the middle between that middle and the second. Source: linux/mm/page-writeback.c, wb_position_ratio.

    >>> thresholds = "nr_dirty_threshold 80\nnr_dirty_background_threshold 40"
    >>> [size_bytes // PAGE_BYTES for size_bytes in dirty_of(f"nr_dirty 1\nnr_writeback 1\n{thresholds}")]
    [2, 70]
    """
    found = dict(line.split(maxsplit=1) for line in vmstat.splitlines())
    waiting = sum(int(found.get(name, 0)) for name in ("nr_dirty", "nr_writeback"))
    most = int(found.get("nr_dirty_threshold", 0))
    from_then_on = int(found.get("nr_dirty_background_threshold", most))
    return waiting * PAGE_BYTES, (3 * most + min(from_then_on, most)) // 4 * PAGE_BYTES
