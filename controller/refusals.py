"""How many refusals are remembered: some of each principal in a minute, so that nobody fills the database with them."""

from collections import Counter

MOST = 60
MINUTE_US = 60_000_000


class RefusalQuota:
    """Counts the refusals of each principal, a minute at a time. Under a lock of the caller's."""

    def __init__(self) -> None:
        self._began_us = 0
        self._asked: Counter[str] = Counter()  # since then
        self._unwritten: Counter[str] = Counter()  # since the last that was written

    def takes(self, who: str, now_us: int) -> int | None:
        """Return how many refusals of a principal were not written before this one; None if this one shall not be.

        Args:
            who: the principal.
            now_us: calendar time; if that goes back, a minute begins.
        """
        if not self._began_us <= now_us < self._began_us + MINUTE_US:
            self._began_us = now_us
            self._asked.clear()
        self._asked[who] += 1
        if self._asked[who] > MOST:
            self._unwritten[who] += 1
            return None
        return self._unwritten.pop(who, 0)
