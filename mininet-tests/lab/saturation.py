"""Was the virtual CPU full? Figures measured on a saturated emulator say nothing about the network.

The lab's machine has one CPU whose speed is the dilation; when it has no idle time left, packets wait for it and not
for the emulated line. So a scenario samples ``/proc/stat`` while it measures and refuses a run that was too busy.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Self

PROC_STAT = Path("/proc/stat")
LEAST_IDLE_SHARE = 0.03
"""Below it a run is refused: seen in the lab, transfers get slower and differ from run to run from about here."""


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """CPU time since boot, in ticks (1/100 s), over all CPUs."""

    idle_ticks: int
    total_ticks: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """Idle shares, 0 to 1, of the busiest interval and of all; ``saturated`` if the busiest was below the threshold."""

    least_idle_share: float
    mean_idle_share: float
    saturated: bool


def cpu_times(stat: str) -> CpuTimes:
    r"""Return the CPU times in the text of ``/proc/stat``.

    Source: proc(5): user nice system idle iowait irq softirq steal guest guest_nice; the last two are contained in
    user and nice. Waiting for a disk is idle time too, and so is "nice": it gives way to all else, and in the lab it
    is the brake that holds the clock while a file is read (``brake.py``).

    >>> cpu_times("cpu 10 3 20 60 5 1 1 0 0 0")
    CpuTimes(idle_ticks=68, total_ticks=100)
    """
    fields = stat.split("\n", 1)[0].split()
    if fields[:1] != ["cpu"] or len(fields) < 9:
        raise ValueError(f"not the text of /proc/stat: {stat[:40]!r}")
    ticks = [int(field) for field in fields[1:9]]
    return CpuTimes(idle_ticks=ticks[1] + ticks[3] + ticks[4], total_ticks=sum(ticks))


def idle_shares(samples: Sequence[CpuTimes]) -> list[float]:
    """Return the idle share, 0 to 1, of each interval between two samples; an interval without a tick is left out."""
    return [
        (after.idle_ticks - before.idle_ticks) / (after.total_ticks - before.total_ticks)
        for before, after in pairwise(samples)
        if after.total_ticks > before.total_ticks
    ]


def verdict(shares: Sequence[float], least_idle_share: float = LEAST_IDLE_SHARE) -> Verdict:
    """Return whether any interval was idle for less than ``least_idle_share``.

    Raises:
        ValueError: if there is no interval: a run that was not watched must not pass.
    """
    if not shares:
        raise ValueError("no interval was sampled: start the meter before, and stop it after, what is measured")
    least = min(shares)
    return Verdict(
        least_idle_share=least, mean_idle_share=sum(shares) / len(shares), saturated=least < least_idle_share
    )


class IdleMeter:
    """Samples ``/proc/stat`` in a thread while a ``with`` block runs; then ``shares`` and ``verdict`` of the block."""

    def __init__(self, interval_s: float = 1.0) -> None:
        """Make a meter that takes a sample each ``interval_s``, one at the start and one at the end."""
        self._interval_s = interval_s
        self._samples: list[tuple[float, CpuTimes]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample_until_stopped, name="idle-meter", daemon=True)

    def __enter__(self) -> Self:
        """Take the first sample and start."""
        self._sample()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the last sample and stop."""
        self._stop.set()
        self._thread.join()
        # A last interval of a few ticks would be judged by chance: it is joined to the one before it.
        if len(self._samples) > 1 and time.monotonic() - self._samples[-1][0] < self._interval_s / 2:
            self._samples.pop()
        self._sample()

    @property
    def shares(self) -> list[float]:
        """The idle share of each interval so far."""
        return idle_shares([times for _, times in self._samples])

    def verdict(self, least_idle_share: float = LEAST_IDLE_SHARE) -> Verdict:
        """Return the judgement over all intervals so far."""
        return verdict(self.shares, least_idle_share)

    def _sample(self) -> None:
        self._samples.append((time.monotonic(), cpu_times(PROC_STAT.read_text())))

    def _sample_until_stopped(self) -> None:
        while not self._stop.wait(self._interval_s):
            self._sample()
