"""Payload received over time: rates in bins, and gaps. Pure."""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

LEAST_BIN_US = 5_000  # for the handover gaps
BEGUN_BYTES = 65_536  # of a transfer: more than a program's session says before it
ENDED_BYTES = 4_000  # and after it
GAP_BELOW = 0.9  # a gap is where the received total stays under this part of the limit


@dataclass(frozen=True, slots=True)
class Series:
    """Payload received so far, by host.

    Attributes:
        at_us: times of the samples.
        hosts: by host, payload bytes at each of them.
    """

    at_us: list[int]
    hosts: dict[str, list[int]]

    def total(self) -> list[int]:
        """Return all hosts' payload at each sample."""
        return [sum(values) for values in zip(*self.hosts.values(), strict=True)]


def at(times_us: list[int], values: list[int], when_us: int) -> float:
    """Return a cumulative value at any time, by interpolation between the samples around it."""
    i = min(max(bisect_right(times_us, when_us), 1), len(times_us) - 1)
    (t0, t1), (v0, v1) = times_us[i - 1 : i + 1], values[i - 1 : i + 1]
    return v0 + (v1 - v0) * (when_us - t0) / (t1 - t0) if t1 > t0 else float(v1)


def rates_bps(times_us: list[int], values: list[int], span_us: tuple[int, int], bin_us: int) -> list[float]:
    """Return the mean rate in each whole bin of a span, in bit/s."""
    edges = range(span_us[0], span_us[1] + 1, bin_us)
    levels = [at(times_us, values, edge) for edge in edges]
    return [(after - before) * 8e6 / bin_us for before, after in pairwise(levels)]


def longest_gap_ms(rates: list[float], below_bps: float, bin_us: int) -> float:
    """Return the longest run of bins under a rate, in milliseconds.

    >>> longest_gap_ms([9, 1, 1, 9, 1, 9], 5, 20_000)
    40.0
    """
    longest = run = 0
    for rate in rates:
        run = run + 1 if rate < below_bps else 0
        longest = max(longest, run)
    return longest * bin_us / 1000


def flow_s(seen: list[tuple[float, int]]) -> float:
    """Return for how long the bulk of what was seen has arrived, seconds.

    >>> flow_s([(0.0, 0), (1.0, 3_000), (2.0, 80_000), (3.0, 9_000_000), (4.0, 9_000_500)])
    1.0
    """
    last = seen[-1][1] - ENDED_BYTES
    return next(at_s for at_s, count in seen if count >= last) - begun_s(seen)


def begun_s(seen: list[tuple[float, int]]) -> float:
    """Return when the bulk of what was seen began to arrive, seconds."""
    first = seen[0][1] + BEGUN_BYTES
    return next(at_s for at_s, count in seen if count >= first)
