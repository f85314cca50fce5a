"""The site's clocks: read by everybody, looked after by one thread."""

import time
from collections.abc import Callable
from pathlib import Path

from controller.plan.clock import CalendarClock, Instant, started

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """Return what tells this boot of this machine from all others; elapsed times of one boot can be compared."""
    return _BOOT_ID.read_text().strip()


def elapsed_us() -> int:
    """Return this machine's elapsed time, microseconds."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


def wall_us() -> int:
    """Return what this machine's wall clock shows, Unix time, microseconds."""
    return time.time_ns() // 1000


class SiteClock:
    """Reads elapsed time and the wall clock, and keeps the calendar. Any thread may ask what time it is.

    Whoever decides by the calendar holds the state's lock, and so does who calls :meth:`look`: there time never goes
    back.

    Args:
        elapsed_us: reads CLOCK_BOOTTIME.
        wall_us: reads the wall clock, Unix time.
        saved: a moment that an earlier controller has written down.
        is_same_boot: whether that was since the machine was started last.
        trusts_wall: whether an operator says that the wall clock is right.
    """

    def __init__(
        self,
        elapsed_us: Callable[[], int],
        wall_us: Callable[[], int],
        saved: Instant | None = None,
        *,
        is_same_boot: bool = False,
        trusts_wall: bool = False,
    ) -> None:
        self._elapsed_us = elapsed_us
        self._wall_us = wall_us
        self._trusts_wall = trusts_wall
        self.begin_anew(saved, is_same_boot=is_same_boot)

    def begin_anew(self, saved: Instant | None, *, is_same_boot: bool) -> None:
        """Begin the calendar by what the clocks say now: for who has decided nothing yet, since it may go back.

        Args:
            saved: a moment that an earlier controller has written down.
            is_same_boot: whether that was since the machine was started last.
        """
        elapsed_us, wall_us, trusts_wall = self._elapsed_us(), self._wall_us(), self._trusts_wall
        self._calendar = started(elapsed_us, wall_us, saved, is_same_boot=is_same_boot, trusts_wall=trusts_wall)

    def now(self) -> Instant:
        """Return this moment."""
        calendar = self._calendar
        elapsed_us = self._elapsed_us()
        return Instant(calendar.calendar_us(elapsed_us), elapsed_us)

    @property
    def calendar(self) -> CalendarClock:
        """The calendar's clock, as it was looked at last."""
        return self._calendar

    def look(self, free_until_us: int | None) -> int:
        """Compare with the wall clock; return by how much it was set since the last look, microseconds, mostly 0.

        Args:
            free_until_us: see :meth:`controller.plan.clock.CalendarClock.looked`.
        """
        before = self._calendar
        elapsed_us = self._elapsed_us()
        after = self._calendar = before.looked(elapsed_us, self._wall_us(), free_until_us)
        return after.wall_offset_us - before.wall_offset_us
