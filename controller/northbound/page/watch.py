"""One look a second at the site, whoever looks on: what all pages show is made of it, once for all of them."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from controller.northbound.dependencies import Dependencies
from controller.northbound.page.needs import Around, Concern, Since, needs
from controller.northbound.page.series import LatestSamples, Sample, sample
from controller.view import View

LOOK_S = 1.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen at a moment.

    Attributes:
        number: grows by one from each to the next.
        at_us: when, Unix time.
        view: the plan at every layer.
        needs: what needs somebody.
        sample: what is planned and delivered.
        connected: the dpids of the switches that are connected.
    """

    number: int
    at_us: int
    view: View
    needs: tuple[Concern, ...]
    sample: Sample
    connected: frozenset[int]


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
        around = Around(behind.certificates(), behind.own_certificates(), behind.reports.overdue())
        found = needs(view, troubles, unsaved_us, around, now_us)
        taken = sample(view, behind.network)
        with self._lock:
            number = 0 if self._latest is None else self._latest.number + 1
            self._latest = Look(number, now_us, view, self._since.seen(found, now_us), taken, connected)
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
