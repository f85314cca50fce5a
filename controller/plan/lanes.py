"""Several circuits for one transfer: what goes by which, so that the last byte of each arrives at one instant. Pure.

A lane is a pair of addresses with a way of its own, so what a host sends by it is told apart by the sender's address.
Its last byte is confirmed some round trips after it was sent, and lanes have different ones. So what is free of each
is looked at as it *arrives*: shifted by that, and added up. Of the sum one asks what one asks of a circuit (soonest, or
at the lowest rate), and gives each lane its part of the answer, in proportion to what it has free, shifted back.

At rates r_i with R_i from the last byte to its confirmation: T = (f + sum r_i R_i) / sum r_i, and lane i sends
r_i (T - R_i). Source: Wertz et al., striped transfers over the ASC WAN's ring, whose streams take turns instead.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from controller.plan.calendar import Booking, Calendar, Need
from controller.plan.volume import ConstantRate, Piece, in_force, planned_before

LEAST_LANE_BPS = 64_000  # what a lane has less is not worth a connection's handshake


@dataclass(frozen=True, slots=True)
class LanePart:
    """One lane's part of a promise.

    Attributes:
        need: what one bit/s by it takes.
        rates: what it is promised, when; on the wire.
        size_bytes: the payload that it moves.
    """

    need: Need
    rates: tuple[ConstantRate, ...]
    size_bytes: int

    def floor_bps(self, now_us: int) -> int:
        """Return what it is promised at an instant, bit/s on the wire."""
        return next((part.rate_bps for part in self.rates if part.start_us <= now_us < part.end_us), 0)


@dataclass(frozen=True, slots=True)
class FreeLane:
    """What a lane has free, and how long after a byte was sent it is confirmed."""

    pieces: tuple[Piece, ...]
    tail_us: int


def free_together(
    calendar: Calendar, lanes: Sequence[tuple[Need, int, int]], start_us: int, until_us: int, lead_us: int = 0
) -> list[FreeLane]:
    """Return what lanes have free at once: a later one has what those before it leave where they share a resource.

    Args:
        calendar: what is promised already; it stays as it is.
        lanes: what one bit/s by each takes, how long after the start it may send, and its tail.
        start_us: Unix time.
        until_us: by when all of it is to have arrived, Unix time.
        lead_us: how long before it counts a rate is planned.
    """
    left = calendar.free_of({resource for need, _, _ in lanes for resource, _ in need.shares_ppm})
    found = []
    for number, (need, wait_us, tail_us) in enumerate(lanes):
        begins_us, ends_us = start_us + wait_us, until_us - tail_us
        whole = in_force(left.rates(need, begins_us - lead_us, ends_us), lead_us) if begins_us < ends_us else ()
        pieces = tuple(piece for piece in whole if piece[2] >= LEAST_LANE_BPS)
        taken = planned_before((ConstantRate(*piece) for piece in pieces), lead_us)
        for k, rate in enumerate(taken):
            left.book(f"{number}/{k}", Booking(need, rate.rate_bps, rate.start_us, rate.end_us))
        found.append(FreeLane(pieces, tail_us))
    return found


def arriving(lanes: Sequence[FreeLane]) -> tuple[Piece, ...]:
    """Return what lanes have free together, by when it arrives: the pieces of their sum, one after the other."""
    edges = sorted({at + lane.tail_us for lane in lanes for begin, end, _ in lane.pieces for at in (begin, end)})
    return tuple((begin, end, sum(_free_bps(lane, begin) for lane in lanes)) for begin, end in pairwise(edges))


def split(lanes: Sequence[FreeLane], rates: Iterable[ConstantRate]) -> list[tuple[ConstantRate, ...]]:
    """Return what each lane sends, when, of rates that all of them together have free as they arrive.

    Parts of a rate are in proportion to what is free, and add up to it to the bit/s.

    Two lanes have 1 Gbit/s and half of that, and 180 and 200 ms; of 1.2 Gbit/s for a second the first carries 0.8:

    >>> two = [FreeLane(((0, 9_000_000, 1_000_000_000),), 180_000), FreeLane(((0, 9_000_000, 500_000_000),), 200_000)]
    >>> [lane[0].rate_bps for lane in split(two, [ConstantRate(1_000_000, 2_000_000, 1_200_000_000)])]
    [800000000, 400000000]
    """
    found: list[list[ConstantRate]] = [[] for _ in lanes]
    free = arriving(lanes)
    for rate in rates:
        for free_from_us, free_until_us, free_bps in free:
            begin_us, end_us = max(free_from_us, rate.start_us), min(free_until_us, rate.end_us)
            if begin_us >= end_us:
                continue
            before_bps = 0
            for lane, of_lane in zip(lanes, found, strict=True):
                own_bps = _free_bps(lane, begin_us)
                upto_bps = before_bps + own_bps
                rate_bps = rate.rate_bps * upto_bps // free_bps - rate.rate_bps * before_bps // free_bps
                before_bps = upto_bps
                if rate_bps:
                    _add(of_lane, ConstantRate(begin_us - lane.tail_us, end_us - lane.tail_us, rate_bps))
    return [tuple(of_lane) for of_lane in found]


def together(lanes: Sequence[LanePart]) -> tuple[ConstantRate, ...]:
    """Return what lanes are promised together, when: the pieces of their sum."""
    edges = sorted({at for lane in lanes for part in lane.rates for at in (part.start_us, part.end_us)})
    summed: list[ConstantRate] = []
    for begin_us, end_us in pairwise(edges):
        rate_bps = sum(lane.floor_bps(begin_us) for lane in lanes)
        if rate_bps:
            _add(summed, ConstantRate(begin_us, end_us, rate_bps))
    return tuple(summed)


def lane_parts(
    needs: Sequence[Need], rates: Sequence[tuple[ConstantRate, ...]], size_bytes: int
) -> tuple[LanePart, ...]:
    """Return lanes with their parts of a size, in proportion to what their rates move; together it is all of it."""
    bits = [sum((part.end_us - part.start_us) * part.rate_bps for part in of_lane) for of_lane in rates]
    upto = [size_bytes * sum(bits[:k]) // sum(bits) for k in range(len(bits) + 1)]
    return tuple(
        LanePart(need, of_lane, upto[k + 1] - upto[k])
        for k, (need, of_lane) in enumerate(zip(needs, rates, strict=True))
    )


def _free_bps(lane: FreeLane, arrives_us: int) -> int:
    """Return what a lane has free for what arrives at an instant."""
    sent_us = arrives_us - lane.tail_us
    return next((bps for begin_us, end_us, bps in lane.pieces if begin_us <= sent_us < end_us), 0)


def _add(rates: list[ConstantRate], rate: ConstantRate) -> None:
    """Add a rate to others in order, to the last if that is the same rate and goes until there."""
    last = rates[-1] if rates else None
    if last is not None and (last.end_us, last.rate_bps) == (rate.start_us, rate.rate_bps):
        rates[-1] = ConstantRate(last.start_us, rate.end_us, rate.rate_bps)
    else:
        rates.append(rate)
