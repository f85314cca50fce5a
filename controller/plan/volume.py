"""Volumes: so many bits between two instants, at rates that the calendar has left. Pure.

The questions that SC'10 (Balman, Chaniotakis, Shoshani, Sim) calls earliest completion, and its thriftiest answer: the
lowest constant rate. Pieces are those of :meth:`controller.plan.calendar.Calendar.rates`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

Piece = tuple[int, int, int]  # from, until (Unix us), rate that is free (bit/s)
US = 1_000_000


@dataclass(frozen=True, slots=True)
class Volume:
    """What is to be moved.

    Attributes:
        size_bits: counted as the rates are.
        least_bps: below this rate it does not move at all.
        most_bps: it cannot use more.
    """

    size_bits: int
    least_bps: int
    most_bps: int


@dataclass(frozen=True, slots=True)
class ConstantRate:
    """One rate for one interval."""

    start_us: int
    end_us: int
    rate_bps: int


def earliest_finish(pieces: Iterable[Piece], volume: Volume) -> tuple[ConstantRate, ...] | None:
    """Return the rates that move a volume soonest, the last one ends when it is done; None if there is no time for it.

    At each instant as much as is free and as it can use; that is the soonest, because nothing is gained by waiting.
    """
    left = volume.size_bits * US  # bits x us, so that nothing is rounded on the way
    profile: list[ConstantRate] = []
    for start_us, end_us, free_bps in pieces:
        rate_bps = min(free_bps, volume.most_bps)
        if rate_bps < volume.least_bps or rate_bps <= 0:
            continue
        needed_us = -(-left // rate_bps)
        until_us = min(end_us, start_us + needed_us)
        profile.append(ConstantRate(start_us, until_us, rate_bps))
        left -= rate_bps * (until_us - start_us)
        if left <= 0:
            return tuple(profile)
    return None


def lowest_constant_rate(pieces: Iterable[Piece], volume: Volume) -> ConstantRate | None:
    """Return the lowest rate that moves a volume within the pieces without ever changing, as early as it can be had.

    Each stretch of time that has some rate free throughout, and could not be longer, is a rectangle under the pieces;
    the lowest rate in a stretch is the volume over its length. One pass with a stack meets every such rectangle.
    """
    best: ConstantRate | None = None
    open_from: list[tuple[int, int]] = []  # (since when, rate free throughout), rates growing
    last_us = 0
    for start_us, end_us, free_bps in chain(pieces, ((0, 0, -1),)):
        since_us = start_us
        while open_from and open_from[-1][1] >= free_bps:
            since_us, height_bps = open_from.pop()
            found = _in_rectangle(since_us, last_us, height_bps, volume)
            if found is not None and (
                best is None or (found.rate_bps, found.start_us) < (best.rate_bps, best.start_us)
            ):
                best = found
        open_from.append((since_us, free_bps))
        last_us = end_us
    return best


def _in_rectangle(start_us: int, end_us: int, height_bps: int, volume: Volume) -> ConstantRate | None:
    rate_bps = max(volume.least_bps, 1, -(-volume.size_bits * US // (end_us - start_us)))
    if rate_bps > min(height_bps, volume.most_bps):
        return None
    return ConstantRate(start_us, start_us - (-volume.size_bits * US // rate_bps), rate_bps)
