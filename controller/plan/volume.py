"""Volumes: so many bits between two instants, at rates that the calendar has left. Pure.

The questions that SC'10 (Balman, Chaniotakis, Shoshani, Sim) calls earliest completion, and its thriftiest answer: the
lowest constant rate. Pieces are those of :meth:`controller.plan.calendar.Calendar.rates`.
"""

from collections import deque
from collections.abc import Iterable, Iterator
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


def in_force(pieces: Iterable[Piece], lead_us: int) -> Iterator[Piece]:
    """Yield what of free rates can be in force: a share that grows is everywhere ``lead_us`` later, and not before.

    At each instant that is the least that was free in the time ``lead_us`` before it. What is planned of it by
    :func:`planned_before` is no more than is free.

    >>> list(in_force([(0, 100, 9), (100, 200, 2), (200, 300, 5)], 10))
    [(10, 100, 9), (100, 200, 2), (200, 210, 2), (210, 300, 5)]

    Args:
        pieces: one after the other, without gaps. The first ``lead_us`` of them say what was free before.
        lead_us: from a plan until it is in force.
    """
    since_us: int | None = None
    window: deque[Piece] = deque()  # of the time before, rates growing: the first is the least
    for piece in pieces:
        at_us, end_us, free_bps = piece
        since_us = at_us + lead_us if since_us is None else since_us
        while window and window[-1][2] >= free_bps:
            window.pop()
        window.append(piece)
        while at_us < end_us:
            while window[0][1] + lead_us <= at_us:
                window.popleft()
            until_us = min(end_us, window[0][1] + lead_us)
            if until_us > since_us:
                yield max(at_us, since_us), until_us, window[0][2]
            at_us = until_us


def planned_before(rates: Iterable[ConstantRate], lead_us: int) -> tuple[ConstantRate, ...]:
    """Return rates, each from ``lead_us`` sooner on where it is more than the one before: to be in force at its time.

    >>> [(one.start_us, one.end_us) for one in planned_before([ConstantRate(50, 60, 2), ConstantRate(60, 90, 5)], 10)]
    [(40, 50), (50, 90)]
    """
    planned: list[ConstantRate] = []
    for rate in rates:
        begin_us = rate.start_us - lead_us
        while planned and planned[-1].end_us > begin_us and planned[-1].rate_bps < rate.rate_bps:
            last = planned.pop()
            if last.start_us < begin_us:
                planned.append(ConstantRate(last.start_us, begin_us, last.rate_bps))
        if planned:
            begin_us = max(begin_us, planned[-1].end_us)
        planned.append(ConstantRate(begin_us, rate.end_us, rate.rate_bps))
    return tuple(planned)


def _in_rectangle(start_us: int, end_us: int, height_bps: int, volume: Volume) -> ConstantRate | None:
    rate_bps = max(volume.least_bps, 1, -(-volume.size_bits * US // (end_us - start_us)))
    if rate_bps > min(height_bps, volume.most_bps):
        return None
    return ConstantRate(start_us, start_us - (-volume.size_bits * US // rate_bps), rate_bps)
