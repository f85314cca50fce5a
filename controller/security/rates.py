"""How often each principal may ask, and each network begin a handshake. Of one thread, the event loop's.

The generic cell rate algorithm (ITU-T I.371): of each who asks, the moment is kept at which all of its requests
would have come if they had come evenly; who is further ahead of that than a burst must wait.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

BURST_US = 10_000_000  # so much time's requests may come at once
MOST_KEPT = 10_000  # principals and networks; those that have not asked lately are forgotten


@dataclass(frozen=True, slots=True)
class RequestRate:
    """So many requests a second, each principal for itself."""

    per_s: int


class Rates:
    """Counts requests by who asks."""

    def __init__(self, rate: RequestRate, now_us: Callable[[], int], burst_us: int = BURST_US) -> None:
        """Begin with nobody.

        Args:
            rate: how often.
            now_us: elapsed time.
            burst_us: so much time's requests may come at once.
        """
        self._every_us = 1_000_000 // rate.per_s
        self._now_us = now_us
        self._burst_us = burst_us
        self._even_us: dict[str, int] = {}

    def wait_us(self, who: str) -> int:
        """Return how long somebody has to wait before it may ask; 0 if it may now, and then that is counted."""
        now_us = self._now_us()
        even_us = max(now_us, self._even_us.get(who, now_us)) + self._every_us
        if even_us - now_us > self._burst_us:
            return even_us - now_us - self._burst_us
        if who not in self._even_us and len(self._even_us) >= MOST_KEPT:
            self._forget(now_us)
        self._even_us[who] = even_us
        return 0

    @classmethod
    def monotonic(cls, per_s: int, burst_us: int) -> Self:
        """Return one that goes by the monotonic clock."""
        return cls(RequestRate(per_s), lambda: time.monotonic_ns() // 1_000, burst_us)

    def _forget(self, now_us: int) -> None:
        """Forget who is not ahead; if that is nobody, all: better too many requests than too much memory."""
        self._even_us = {who: even_us for who, even_us in self._even_us.items() if even_us > now_us}
        if len(self._even_us) >= MOST_KEPT:
            self._even_us.clear()
