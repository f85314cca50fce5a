"""Bytes that cross the network and are put on a disk: when they are across, and when they are kept. Pure.

The disk is a bucket (:mod:`controller.plan.receivers`): what has arrived is at most its room and what it has drained.
The network and the disk both have step functions of what is free; together they give the soonest times for both. Rates
and sizes are counted on the wire, as the calendar counts.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from controller.plan.calendar import Calendar, Need
from controller.plan.keys import StorePlace
from controller.plan.reservations import MAX_TIME_US
from controller.plan.volume import US, ConstantRate, Piece, Volume, lowest_constant_rate
from topology.wire import PPM

SLACK_US = 1_000  # what whole bit/s and microseconds may come to


@dataclass(frozen=True, slots=True)
class StoreCapacity:
    """What is known of a store.

    Attributes:
        place: whose it is.
        drain_bps: what it drains for good, counted on the wire.
        room_bits: what it takes at once, counted so.
    """

    place: StorePlace
    drain_bps: int
    room_bits: int

    @property
    def need(self) -> Need:
        """What one bit/s of what is stored there takes."""
        return Need(((self.place, PPM),))


def make_known(calendar: Calendar, store: StoreCapacity) -> None:
    """Let a calendar have a store with what it drains now; what is booked of it stays booked."""
    if not calendar.has_resource(store.place):
        calendar.add_resource(store.place)
    change_bps = store.drain_bps - calendar.capacity_bps(store.place, 0)
    calendar.change_capacity(store.place, 0, MAX_TIME_US, change_bps)


@dataclass(frozen=True, slots=True)
class StoredVolume:
    """How a volume gets onto a disk.

    Attributes:
        rates: what each sender sends, when.
        drains: what the disk writes of it, when.
    """

    rates: tuple[ConstantRate, ...]
    drains: tuple[ConstantRate, ...]

    @property
    def across_us(self) -> int:
        """When all has arrived."""
        return self.rates[-1].end_us

    @property
    def stored_us(self) -> int:
        """When all is on the disk."""
        return self.drains[-1].end_us


@dataclass(slots=True)
class _Course:
    """Where a volume is; bits x us, so that nothing is rounded on the way."""

    left: int
    to_drain: int
    room: int
    waiting: int = 0


def soonest_stored(
    network: Iterable[Piece], disk: Iterable[Piece], part: Volume, senders: int, room_bits: int
) -> StoredVolume | None:
    """Return the soonest way of a volume onto a disk; None if there is no time for it.

    Each sender sends as much as is free until the room is full, and then as much as the disk drains.

    >>> part = Volume(8_000, 1, 2**62)
    >>> line, disk = [(0, 100 * US, 800)], [(0, 100 * US, 200)]
    >>> found = soonest_stored(line, disk, part, 1, 3_000)
    >>> [(one.end_us // US, one.rate_bps) for one in found.rates], found.stored_us // US
    ([(5, 800), (25, 200)], 40)

    Args:
        network: what is free for each sender.
        disk: what is free of the disk.
        part: what each sender has.
        senders: how many.
        room_bits: what the disk takes at once.
    """
    total = part.size_bits * senders * US
    course = _Course(total, total, room_bits * US)
    rates: list[ConstantRate] = []
    drains: list[ConstantRate] = []
    for start_us, end_us, free_bps, drain_bps in _merged(network, disk):
        usable_bps = min(free_bps, part.most_bps)
        send_bps = usable_bps if usable_bps >= part.least_bps else 0
        at_us = start_us
        while at_us < end_us and course.to_drain > 0:
            rate_bps, out_bps, took_us = _phase(course, send_bps, drain_bps, senders, end_us - at_us)
            _append(rates, at_us, took_us, rate_bps)
            _append(drains, at_us, took_us, out_bps)
            at_us += took_us
        if course.to_drain <= 0:
            return StoredVolume(tuple(rates), tuple(drains))
    return None


def thriftiest_stored(
    network: Iterable[Piece], disk: Iterable[Piece], part: Volume, senders: int, room_bits: int, by_us: int
) -> StoredVolume | None:
    """Return the way onto a disk by the lowest constant rate that has all across by a time; if none does, the soonest.

    None if not even that has it across by then. What is lowest leaves most to others, and is stored no later: it is
    across while the disk still writes. Arguments as in :func:`soonest_stored`.
    """
    line, drains = list(network), list(disk)
    soonest = soonest_stored(line, drains, part, senders, room_bits)
    if soonest is None or soonest.across_us > by_us:
        return None
    until = [(start_us, min(end_us, by_us), bps) for start_us, end_us, bps in line if start_us < by_us]
    constant = lowest_constant_rate(until, part)
    if constant is None:
        return soonest
    slowed = Volume(part.size_bits, part.least_bps, constant.rate_bps)
    found = soonest_stored(line, drains, slowed, senders, room_bits)
    is_as_good = found is not None and found.across_us <= by_us + 1 and found.stored_us <= soonest.stored_us + SLACK_US
    return found if is_as_good else soonest


def _phase(course: _Course, send_bps: int, drain_bps: int, senders: int, most_us: int) -> tuple[int, int, int]:
    """Let a volume go on until something changes; return each sender's rate, the disk's, and how long that was, us."""
    rate_bps = send_bps if course.left > 0 else 0
    surplus_bps = rate_bps * senders - drain_bps
    if surplus_bps > 0 and (course.room - course.waiting) < surplus_bps:  # less than a microsecond of it
        rate_bps = min(rate_bps, drain_bps // senders)
    in_bps = rate_bps * senders
    out_bps = drain_bps if course.waiting > 0 else min(drain_bps, in_bps)
    ends_us = [most_us]
    if in_bps:
        ends_us.append(-(-course.left // in_bps))
    if in_bps > out_bps:
        ends_us.append((course.room - course.waiting) // (in_bps - out_bps))
    if out_bps > in_bps:
        ends_us.append(-(-course.waiting // (out_bps - in_bps)))
    if out_bps:
        ends_us.append(-(-course.to_drain // out_bps))
    took_us = max(1, min(ends_us))
    came = min(course.left, in_bps * took_us)
    went = min(course.waiting + came, out_bps * took_us)
    course.left -= came
    course.to_drain -= went
    course.waiting += came - went
    return rate_bps, out_bps, took_us


def _append(profile: list[ConstantRate], at_us: int, took_us: int, rate_bps: int) -> None:
    """Add a stretch to a profile; one that goes on at the same rate is made longer, one without a rate left out."""
    if not rate_bps:
        return
    if profile and profile[-1].end_us == at_us and profile[-1].rate_bps == rate_bps:
        profile[-1] = ConstantRate(profile[-1].start_us, at_us + took_us, rate_bps)
    else:
        profile.append(ConstantRate(at_us, at_us + took_us, rate_bps))


def _merged(network: Iterable[Piece], disk: Iterable[Piece]) -> Iterator[tuple[int, int, int, int]]:
    """Yield (from, until, what the network has free, what the disk has free) where both are known."""
    ones, others = list(network), list(disk)
    i = k = 0
    while i < len(ones) and k < len(others):
        start_us, end_us = max(ones[i][0], others[k][0]), min(ones[i][1], others[k][1])
        if start_us < end_us:
            yield start_us, end_us, ones[i][2], others[k][2]
        if ones[i][1] <= others[k][1]:
            i += 1
        else:
            k += 1
