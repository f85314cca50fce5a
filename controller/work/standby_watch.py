"""Whether somebody stands by beside who leads: said once nobody has for a while, and when somebody does again."""

import time
from collections.abc import Callable

from controller.events import Events

LOOK_S = 1.0
ALONE_S = 120.0  # the other one may begin anew meanwhile, or be upgraded


class StandbyWatch:
    """Says ``standby.gone`` and ``standby.back``.

    Args:
        standbys: returns who stands by now, for people.
        events: where it is said.
        elapsed_s: the clock that nobody can set.
    """

    def __init__(
        self, standbys: Callable[[], tuple[str, ...]], events: Events, elapsed_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._standbys = standbys
        self._events = events
        self._elapsed_s = elapsed_s
        self._before: tuple[str, ...] = ()  # who stood by last
        self._stood_by_s = elapsed_s()
        self._is_said = False

    def run(self, ended: Callable[[float], bool]) -> None:
        """Look each second until the end.

        Args:
            ended: waits for so many seconds, and says whether the process ends.
        """
        while not ended(LOOK_S):
            self.look()

    def look(self) -> None:
        """Look once, and say what is new."""
        standbys, now_s = self._standbys(), self._elapsed_s()
        if standbys:
            if self._is_said:
                self._events.publish("standby.back", standbys=" and ".join(standbys))
            self._before, self._stood_by_s, self._is_said = standbys, now_s, False
        elif not self._is_said and now_s - self._stood_by_s >= ALONE_S:
            self._events.publish("standby.gone", level="error", before=" and ".join(self._before))
            self._is_said = True
