"""One look a second at the site, whoever looks on: what all pages show is made of it, once for all of them."""

import threading
from collections.abc import Callable, Iterable

import structlog

from controller.northbound.dependencies import Dependencies
from controller.northbound.page.look import Look
from controller.northbound.page.needs import Around, Since, concerns
from controller.northbound.page.series import LatestSamples, sample
from controller.plan.maintenance import Maintenance

LOOK_S = 1.0

log = structlog.get_logger()


class Watch:
    """Looks once a second, and keeps the last quarter of an hour."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._behind = dependencies
        self._lock = threading.Lock()  # guards the others; never held while the state's lock is waited for
        self._since = Since()
        self._latest: Look | None = None
        self.series = LatestSamples()

    def run(self, ended: Callable[[float], bool]) -> None:
        """Look until the end. A look that fails is a defect of the page, and no reason to end the controller.

        Args:
            ended: waits for so many seconds, and says whether the process ends.
        """
        failing = ""
        while not ended(LOOK_S):
            try:
                self.look()
                failing = ""
            except Exception as fault:
                if failing != repr(fault):
                    failing = repr(fault)
                    log.exception("page.failed")

    def latest(self) -> Look:
        """Return the latest look; the first one is taken now."""
        found = self._latest
        return self.look() if found is None else found

    def look(self) -> Look:
        """Look now."""
        behind = self._behind
        view, connected = behind.reports.view(), behind.connected()
        troubles, unsaved_us = behind.reports.troubles(connected), behind.use_cases.saves.unsaved_us
        now_us = behind.now_us()
        leader = behind.leader()
        shown = behind.certificates(), behind.switch_certificates(), behind.own_certificates()
        around = Around(*shown, behind.reports.overdue(), leader)
        found = concerns(view, troubles, unsaved_us, around, now_us)
        taken = sample(view, behind.network)
        working = worked_on(behind.use_cases.maintaining.all(), now_us)
        with self._lock:
            number = 0 if self._latest is None else self._latest.number + 1
            needed = self._since.seen(found, now_us)
            self._latest = Look(number, now_us, view, needed, taken, connected, working, leader)
            self.series.add(now_us, taken)
            return self._latest

    def newest(self) -> dict[str, object]:
        """Return the latest sample, for who has the others."""
        with self._lock:
            return self.series.latest()

    def drawn(self) -> dict[str, object]:
        """Return all series that are drawn."""
        with self._lock:
            return self.series.drawn()


def worked_on(planned: Iterable[Maintenance], now_us: int) -> dict[str, int]:
    """Return, by circuit that is worked on at a moment, until when; one maintenance may follow the other."""
    found: dict[str, int] = {}
    for one in sorted(planned, key=lambda each: each.start_us):
        if one.start_us <= found.get(one.circuit, now_us):
            found[one.circuit] = max(one.end_us, found.get(one.circuit, 0))
    return found
