"""Looks at the wall clock for the calendar, says when somebody has set it, and writes the calendar's time down."""

from dataclasses import replace

from controller.database import Changes, Database
from controller.database.clock import SavedTime
from controller.plan.clock import STEP_US
from controller.state.clock import SiteClock, boot_id, elapsed_us, wall_us
from controller.state.guard import GuardedState

SAVED_EVERY_US = 60_000_000  # what a machine that dies may forget of the time; only another one asks for it


def machine_clock(saved: SavedTime | None, *, trusts_wall: bool) -> SiteClock:
    """Return this machine's clocks, with a calendar that goes on where an earlier controller's was.

    Args:
        saved: what that has written down.
        trusts_wall: whether an operator says that the wall clock is right.
    """
    clock = SiteClock(elapsed_us, wall_us, trusts_wall=trusts_wall)
    _begin(clock, saved, boot_id())
    return clock


class ClockWatch:
    """The look at the clocks; by the thread that acts on time, several times in ``LOOKED_AT_US``."""

    def __init__(self, state: GuardedState, database: Database, clock: SiteClock) -> None:
        self._state = state
        self._database = database
        self._clock = clock
        self._boot_id = boot_id()
        self._saved: SavedTime | None = None

    def begin_anew(self) -> None:
        """Begin the calendar as one that starts to lead, by what the one before has written down.

        Since one that stood by has started, its wall clock may have been set right, or its machine been paused.
        """
        with self._state.changed:
            _begin(self._clock, self._database.time_before, self._boot_id)

    def look(self) -> None:
        """Look once. Nobody waits for the disk: without it the time is known from the machine's clocks."""
        state, clock = self._state, self._clock
        was_off = clock.calendar.is_off
        with state.changed:
            free_until_us = state.wished.ledger.free_until_us() if was_off else None
            set_us = clock.look(free_until_us)
            off_us = clock.calendar.off_us if clock.calendar.is_off else 0
            if off_us != state.reported.calendar_off_us:
                state.put(reported=replace(state.reported, calendar_off_us=off_us))
        if set_us:
            state.events.publish(
                "clock.stepped",
                level="warning",
                by_s=round(set_us / 1e6, 3),
                calendar_off_s=round(off_us / 1e6, 3),
                todo="promises are kept by the time as it was; see docs/faults.md" if off_us else "",
            )
        if was_off and not off_us:
            state.events.publish("clock.right")
        self._save()

    def _save(self) -> None:
        """Write the time down, if what was written says something else by now, or is old."""
        now, known = self._clock.now(), self._saved
        if known is not None:
            passed_us = now.elapsed_us - known.elapsed_us
            if passed_us < SAVED_EVERY_US and abs(now.calendar_us - known.calendar_us - passed_us) <= STEP_US:
                return
        self._saved = SavedTime(self._boot_id, now.calendar_us, now.elapsed_us)
        self._database.save(Changes(time=self._saved))


def _begin(clock: SiteClock, saved: SavedTime | None, boot_id: str) -> None:
    """Begin a calendar on a boot of this machine, by what is written down."""
    if saved is None:
        clock.begin_anew(None, is_same_boot=False)
    else:
        clock.begin_anew(saved.instant, is_same_boot=saved.boot_id == boot_id)
