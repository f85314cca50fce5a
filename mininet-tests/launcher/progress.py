"""What is shown while an experiment runs: how long it has, and about how long it will."""

from __future__ import annotations

import time
from typing import TextIO

from mininet_tests.testing.progress import heard

EVERY_S = 15.0
"""Between two lines where lines cannot be written over."""
TRUSTED_SHARE = 0.1
"""From this part of a run on, what it will take is what it has taken so far says."""
CLEAR = "\r\x1b[K"


def left_s(elapsed_s: float, expected_s: float, share: float) -> float:
    """Return about how many seconds are left.

    What was expected counts at the beginning, and only what has been seen from ``TRUSTED_SHARE`` on: a machine that is
    twice as slow is noticed, and so is a run of twenty times the usual rounds.

    >>> left_s(0, 240.0, 0.0), left_s(120, 240, 0.5), left_s(240, 240, 0.5), left_s(300, 240, 0.0)
    (240.0, 120.0, 240.0, 0.0)
    >>> round(left_s(60, 360, 0.01)), left_s(600, 360, 0.1)
    (915, 5400.0)
    """
    if share <= 0:
        return max(0.0, expected_s - elapsed_s)
    trust = min(1.0, share / TRUSTED_SHARE)
    return (1 - share) * ((1 - trust) * expected_s + trust * elapsed_s / share)


def clock(seconds: float) -> str:
    """Return a duration as a clock shows it.

    >>> clock(75), clock(3675)
    ('1:15', '1:01:15')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


class Shown:
    """The state of one run on a terminal, a line that is written over; elsewhere a line now and then."""

    def __init__(self, name: str, expected_s: float, stream: TextIO) -> None:
        """Begin; the first line is shown at once."""
        self._name, self._expected_s, self._stream = name, expected_s, stream
        self._over = stream.isatty()
        self._began_s = time.monotonic()
        self._said_s = -EVERY_S
        self._ends_s, self._what = expected_s, "starting"
        self.tick()

    @property
    def elapsed_s(self) -> float:
        """How long it has run."""
        return time.monotonic() - self._began_s

    def line(self, text: str) -> None:
        """Show a line of the experiment's own, or take from it how far it is."""
        told = heard(text.rstrip("\n"))
        if told is None:
            self._clear()
            self._stream.write(text)
            self._stream.flush()
        else:
            elapsed_s = self.elapsed_s
            self._ends_s, self._what = elapsed_s + left_s(elapsed_s, self._expected_s, told[0]), told[1]
        self.tick()

    def tick(self) -> None:
        """Show how far it is, if it is time."""
        if self._over:
            self._stream.write(f"{CLEAR}{self.text()}")
            self._stream.flush()
        elif self.elapsed_s - self._said_s >= EVERY_S:
            self._said_s = self.elapsed_s
            self._stream.write(f"{self.text()}\n")
            self._stream.flush()

    def text(self) -> str:
        """Return the present state in a line."""
        elapsed_s = self.elapsed_s
        rest = f"about {clock(self._ends_s - elapsed_s)} left" if elapsed_s < self._ends_s else "longer than usual"
        return f"run: {self._name}: {clock(elapsed_s)}, {rest}: {self._what}"

    def end(self) -> None:
        """Take the line away."""
        self._clear()

    def _clear(self) -> None:
        if self._over:
            self._stream.write(CLEAR)
            self._stream.flush()
