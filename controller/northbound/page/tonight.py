"""The calendars of all circuits, kept drawn: what has ended is in the database, for which no page waits."""

import threading
from collections.abc import Callable, Iterator

import structlog

from controller.northbound.dependencies import Dependencies
from controller.northbound.page.calendar_svg import CalendarRow, LesserTime, Now, calendar_rows, span

LOOK_S = 1.0
ANEW_US = 30_000_000  # the line of now moves
MOST = 2_000  # reservations that have not ended, that have, and announcements: of each

log = structlog.get_logger()


class Tonight:
    """Draws the calendars anew when something has happened, and every half a minute."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._behind = dependencies
        self._lock = threading.Lock()  # guards what was drawn
        self._drawn: tuple[CalendarRow, ...] | None = None
        self._drawn_for = (0, 0)

    def run(self, ended: Callable[[float], bool]) -> None:
        """Draw until the end; a fault is one of the page, not of the controller.

        Args:
            ended: waits for so many seconds, and says whether the process ends.
        """
        while not ended(LOOK_S):
            try:
                self.rows(wait=True)
            except Exception:
                log.exception("page.failed")

    def rows(self, *, wait: bool = False) -> tuple[CalendarRow, ...]:
        """Return the calendars: as they were drawn last, or anew if there are none, or if somebody can wait for it."""
        wanted = self._behind.events.last, self._behind.now_us() // ANEW_US
        with self._lock:
            found, is_current = self._drawn, self._drawn_for == wanted
        if found is not None and (is_current or not wait):
            return found
        made = self._made()
        with self._lock:
            self._drawn, self._drawn_for = made, wanted
        return made

    def _made(self) -> tuple[CalendarRow, ...]:
        behind, now_us = self._behind, self._behind.now_us()
        drawn = span(now_us)
        reservations = behind.reserved.between(drawn.start_us, drawn.end_us, MOST)
        announcements = behind.announced.latest(MOST)
        lesser = tuple(self._lesser(drawn.start_us))
        return tuple(calendar_rows(behind.network, reservations, announcements, Now(now_us), lesser))

    def _lesser(self, ends_after_us: int) -> Iterator[LesserTime]:
        """Yield when circuits carry less, or did: what was planned here, and what the configuration says."""
        maintaining = self._behind.use_cases.maintaining
        for one in maintaining.all(ends_after_us):
            yield LesserTime(one.circuit, one.start_us, one.end_us, 0, f"maintenance {one.words}".rstrip())
        for circuit, periods in maintaining.schedules.items():
            for period in periods:
                yield LesserTime(circuit, period.start_us, period.end_us, period.rate_bps, "schedule")
