"""What a store takes at once and drains for good, by writing a file to it at a rate.

While the page cache has room a file is written at the rate; from then on as fast as the disk drains. Where that bend is
says what it took at once: all that was written by then but for what had been drained. A disk that /proc/diskstats
counts is asked what it has drained: what is accepted after the bend is a little more, while the page cache fills up to
where the kernel keeps it. A writer that waits for a CPU is late, too, and by nothing that the store does: only the time
in which its writes sleep counts. What the disk has drained of the file since its first block is a lower bound of its
rate, and the better figure where a kernel holds a writer up in long pauses: what is accepted then depends on the pause
it ends with.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hostagent.stores.disk import Disk

BLOCK_BYTES = 1 << 20
LATE_S = 0.25  # behind its rate by more than that, for want of room: it is held up, and not for a moment
SCHEDULED = Path("/proc/thread-self/schedstat")
AFTER_PART = 3  # it is written for a third more of what it took until then, to see at which rate it goes on
LEAST_AFTER_S = 3.0
KEEPS_FREE_PART = 10  # a tenth of the disk's free space is left
TOLD_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class StoreMeasure:
    """What was measured.

    Attributes:
        rate_bps: at which it was written, bit/s.
        written_bytes: how much was.
        took_s: until all of it was on the disk.
        drain_bps: what it drains for good.
        room_bytes: what it takes at once; if it never was held up, the least that it can be.
        is_held_up: whether the writer ever was held up.
        idle_s: for how long the disk wrote nothing at first; None if it is not counted.
        came_bps: at which it could be written, held up or not.
    """

    rate_bps: int
    written_bytes: int
    took_s: float
    drain_bps: int
    room_bytes: int
    is_held_up: bool
    idle_s: float | None = None
    came_bps: int = 0

    @property
    def is_short_of_cpu(self) -> bool:
        """Whether it was written at less than nine tenths of the rate though the store never held the writer up."""
        return not self.is_held_up and self.came_bps * 10 < self.rate_bps * 9

    @property
    def largest_bytes(self) -> int | None:
        """The largest file that comes at the rate throughout: m / (1 - d / r); None for any. Source: PA-UDP eq. (3)."""
        surplus_bps = self.rate_bps - self.drain_bps
        return self.room_bytes * self.rate_bps // surplus_bps if surplus_bps > 0 else None


class NoSpace(Exception):
    """There is too little room on a disk to measure it."""

    def __init__(self, path: Path, free_bytes: int, wanted_bytes: int) -> None:
        super().__init__(f"{path} has {free_bytes:,} bytes free, and {wanted_bytes:,} would be written")
        self.path, self.free_bytes, self.wanted_bytes = path, free_bytes, wanted_bytes


@dataclass(frozen=True, slots=True)
class Written:
    """How much was written by when, seconds since the beginning.

    Attributes:
        at_s: when.
        size_bytes: how much.
        on_disk_bytes: how much of it the disk had; None if it is not counted.
        slept_s: for how long writes have slept so far, and had not to wait for a CPU; None if it is not counted.
    """

    at_s: float
    size_bytes: int
    on_disk_bytes: int | None = None
    slept_s: float | None = None


def bend(course: Sequence[Written], rate_bps: int) -> Written | None:
    """Return a moment from which a writer was held up: the last before it was late; None if it never was.

    It may have been held up for up to :data:`LATE_S` already: what waits for the disk is the same from the bend on. One
    that is a moment behind from its first blocks on is not held up by that.
    """
    late = next((n for n, one in enumerate(course) if _behind_s(one, rate_bps) > LATE_S), None)
    return None if late is None else course[max(0, late - 1)]


def _behind_s(one: Written, rate_bps: int) -> float:
    late_s = one.at_s - one.size_bytes * 8 / rate_bps
    return late_s if one.slept_s is None else min(late_s, one.slept_s)


def measure_of(course: Sequence[Written], rate_bps: int, kept_s: float) -> StoreMeasure:
    """Return what a course of writing says. Pure.

    Args:
        course: how much was accepted by when; not empty.
        rate_bps: at which it was offered.
        kept_s: when all of it was on the disk.
    """
    last, at = course[-1], bend(course, rate_bps)
    came_bps = round(last.size_bytes * 8 / max(last.at_s, 1e-6))
    least_bps = min(rate_bps, _sustained_bps(course, kept_s))
    if at is None or last.at_s <= at.at_s:
        drained_bytes = round(least_bps * last.at_s / 8)
        if last.on_disk_bytes is not None:
            drained_bytes = min(drained_bytes, last.on_disk_bytes)
        room_bytes = max(0, last.size_bytes - drained_bytes)
        return StoreMeasure(rate_bps, last.size_bytes, kept_s, least_bps, room_bytes, False, _idle_s(course), came_bps)
    accepted_bps = max(least_bps, round((last.size_bytes - at.size_bytes) * 8 / (last.at_s - at.at_s)))
    drain_bps, drained_bytes = accepted_bps, round(accepted_bps * at.at_s / 8)
    if at.on_disk_bytes is not None and last.on_disk_bytes is not None:
        written_bps = round((last.on_disk_bytes - at.on_disk_bytes) * 8 / (last.at_s - at.at_s))
        drain_bps = max(least_bps, min(accepted_bps, written_bps))  # others may write there, too
        drained_bytes = min(at.on_disk_bytes, round(drain_bps * at.at_s / 8))
    room_bytes = max(0, at.size_bytes - drained_bytes)
    return StoreMeasure(rate_bps, last.size_bytes, kept_s, drain_bps, room_bytes, True, _idle_s(course), came_bps)


def _sustained_bps(course: Sequence[Written], kept_s: float) -> int:
    """Return a lower bound of what drains a file, bit/s: its bytes by the time until all was kept.

    Of a disk that is counted, only from its first block on: before, its kernel may have waited.
    """
    last, begun = course[-1], Written(0.0, 0, 0)
    if last.on_disk_bytes is not None:
        begun = next((one for one in course if (one.on_disk_bytes or 0) >= BLOCK_BYTES), last)
    left_bytes = max(1, last.size_bytes - (begun.on_disk_bytes or 0))
    return max(1, round(left_bytes * 8 / max(kept_s - begun.at_s, 1e-6)))


def _idle_s(course: Sequence[Written]) -> float | None:
    """Return for how long a disk that is counted wrote less than a block; the whole course, if it never wrote more."""
    if course[-1].on_disk_bytes is None:
        return None
    return next((one.at_s for one in course if (one.on_disk_bytes or 0) >= BLOCK_BYTES), course[-1].at_s)


def measured(path: Path, rate_bps: int, most_bytes: int, tell: Callable[[Written], None]) -> StoreMeasure:
    """Return what a store takes; the file that is written for it is gone afterwards, however this ends.

    Args:
        path: a folder on the disk.
        rate_bps: at which is written.
        most_bytes: how much at the most.
        tell: is told about once a second how far it is.

    Raises:
        NoSpace: there is too little room.
        OSError: it cannot be written to.
    """
    there = os.statvfs(path)
    free_bytes = there.f_bavail * there.f_frsize
    if most_bytes > free_bytes - free_bytes // KEEPS_FREE_PART:
        raise NoSpace(path, free_bytes, most_bytes)
    with tempfile.NamedTemporaryFile(dir=path, prefix=".headway-measure-", buffering=0) as file:
        began_s = time.monotonic()
        course: list[Written] = []
        on_disk = _on_disk(path)
        for one in _written(file.fileno(), rate_bps, most_bytes, began_s, on_disk):
            if not course or one.at_s - course[-1].at_s > TOLD_EVERY_S or int(one.at_s) > int(course[-1].at_s):
                tell(one)
            course.append(one)
        os.fsync(file.fileno())
        return measure_of(course, rate_bps, time.monotonic() - began_s)


def _on_disk(path: Path) -> Callable[[], int | None]:
    """Return what returns how much the disk under a path has written since now; of one that is not counted, None."""
    disk = Disk(path.resolve())
    before = disk.state()

    def since() -> int | None:
        now = disk.state()
        return None if before is None or now is None else now.written_bytes - before.written_bytes

    return since


def _written(
    descriptor: int, rate_bps: int, most_bytes: int, began_s: float, on_disk: Callable[[], int | None]
) -> Iterator[Written]:
    """Write at a rate until enough is known, or so much is written; yield after each block."""
    block, size_bytes, until_s, slept_s = os.urandom(BLOCK_BYTES), 0, float("inf"), 0.0
    while size_bytes < most_bytes:
        due_s = began_s + size_bytes * 8 / rate_bps
        time.sleep(max(0.0, due_s - time.monotonic()))
        awake_s, from_s = _awake_s(), time.monotonic()
        size_bytes += os.write(descriptor, block[: most_bytes - size_bytes])
        at_s, until_awake_s = time.monotonic(), _awake_s()
        if awake_s is not None and until_awake_s is not None:
            slept_s += max(0.0, at_s - from_s - (until_awake_s - awake_s))
        one = Written(at_s - began_s, size_bytes, on_disk(), None if awake_s is None else slept_s)
        yield one
        if until_s == float("inf") and _behind_s(one, rate_bps) > LATE_S:
            until_s = one.at_s + max(LEAST_AFTER_S, one.at_s / AFTER_PART)
        if one.at_s >= until_s:
            return


def _awake_s() -> float | None:
    """Return for how long this thread has had a CPU or waited for one; None if the kernel does not count that.

    Source: linux/Documentation/scheduler/sched-stats.rst, /proc/<pid>/schedstat: the second number.
    """
    try:
        waited_ns = int(SCHEDULED.read_text().split()[1])
    except OSError:
        return None
    return (time.thread_time_ns() + waited_ns) / 1e9
