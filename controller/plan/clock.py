"""The time by which promises are kept: elapsed time and an offset, which follows the wall clock with care. Pure.

Two kinds of time. *Elapsed time* (CLOCK_BOOTTIME) goes on by itself, also while the machine sleeps, and nobody can set
it: leases, lines and transitions are counted in it. *Calendar time* is Unix time, for what people have agreed on. It
goes as elapsed time does, not as the wall clock, which somebody may set by an hour: nothing that was promised ends
because of that. What a wall clock that was set comes to is in docs/decisions/0020-two-kinds-of-time.md.
"""

from dataclasses import dataclass
from typing import NamedTuple

from topology.wire import PPM

SLEW_PPM = 500  # how much faster or slower the calendar may go: as much as Linux lets NTP correct a clock's frequency
STEP_US = 1_000_000  # a wall clock that is off by less was not set; a leap second is as much
CONFIRMED_US = 600_000_000  # a wall clock that has been left alone for this long after it was set is believed
CLOSE_US = 10_000  # of the two readings, one after the other
LOOKED_AT_US = 2_000_000  # a line holds this long; who forgets to look has a calendar that goes as elapsed time does


class Instant(NamedTuple):
    """One moment in both kinds of time, microseconds.

    Attributes:
        calendar_us: Unix time.
        elapsed_us: since the machine was started, the time it slept included.
    """

    calendar_us: int
    elapsed_us: int


@dataclass(frozen=True, slots=True)
class CalendarClock:
    """Calendar time as a line over elapsed time. It never goes back; it jumps only where nothing is under way.

    Attributes:
        known: a moment on the line.
        rate_ppm: how fast the calendar goes from there on, against elapsed time, until it is looked at again.
        wall_offset_us: the wall clock less elapsed time, when somebody had set it last.
        set_us: when that was noticed, elapsed time.
        off_us: the wall clock less calendar time, when it was looked at last.
    """

    known: Instant
    rate_ppm: int = PPM
    wall_offset_us: int = 0
    set_us: int = 0
    off_us: int = 0

    def calendar_us(self, elapsed_us: int) -> int:
        """Return the calendar time at an elapsed time."""
        passed_us = max(0, elapsed_us - self.known.elapsed_us)
        looked_at_us = min(passed_us, LOOKED_AT_US)
        return self.known.calendar_us + looked_at_us * self.rate_ppm // PPM + passed_us - looked_at_us

    @property
    def is_off(self) -> bool:
        """Whether the wall clock shows another time than the calendar."""
        return abs(self.off_us) > STEP_US

    def looked(self, elapsed_us: int, wall_us: int, free_until_us: int | None) -> "CalendarClock":
        """Return it after a look at the wall clock; to be called more often than ``LOOKED_AT_US``.

        Args:
            elapsed_us: the elapsed time.
            wall_us: what the wall clock shows.
            free_until_us: if nothing is under way that a jump would shorten, the calendar time at which the next thing
                is due; None if something is.
        """
        now_us = self.calendar_us(elapsed_us)
        wall_offset_us, set_us = self.wall_offset_us, self.set_us
        if abs(wall_us - elapsed_us - wall_offset_us) > STEP_US:
            wall_offset_us, set_us = wall_us - elapsed_us, elapsed_us
        off_us = wall_us - now_us
        is_step = abs(off_us) > STEP_US
        may_follow = not is_step or elapsed_us - set_us >= CONFIRMED_US
        is_free = is_step and may_follow and free_until_us is not None
        if is_free and off_us > 0:
            now_us = min(wall_us, max(now_us, free_until_us or 0))
            off_us = wall_us - now_us
        rate_ppm = PPM
        if may_follow and abs(off_us) > CLOSE_US:
            rate_ppm += SLEW_PPM if off_us > 0 else -PPM if is_free else -SLEW_PPM
        return CalendarClock(Instant(now_us, elapsed_us), rate_ppm, wall_offset_us, set_us, off_us)


def started(
    elapsed_us: int, wall_us: int, saved: Instant | None, *, is_same_boot: bool, trusts_wall: bool = False
) -> CalendarClock:
    """Return the calendar of a controller that starts.

    Args:
        elapsed_us: the elapsed time.
        wall_us: what the wall clock shows.
        saved: a moment that an earlier controller has written down; None if there was none.
        is_same_boot: whether that was since the machine was started last, so that elapsed times can be compared.
        trusts_wall: whether an operator says that the wall clock is right; time does not go back for that either.
    """
    now_us = wall_us
    if saved is not None:
        went_us = max(0, elapsed_us - saved.elapsed_us) if is_same_boot else 0
        now_us = saved.calendar_us + went_us
        if trusts_wall or not is_same_boot:
            now_us = max(now_us, wall_us)
    return CalendarClock(Instant(now_us, elapsed_us), PPM, wall_us - elapsed_us, elapsed_us, wall_us - now_us)
