"""Bytes that cross the network and are put on a disk: when they are across, and when they are kept. Pure.

The disk is a bucket (:mod:`controller.plan.receivers`): what has arrived is at most its room and what it has drained.
The network and the disk both have step functions of what is free; together they give the soonest times for both. Rates
and sizes are counted on the wire, as the calendar counts.

A kernel writes its page cache file by file in turns, whatever was promised to be stored first. So what waits in the
room is of one promise at a time: until all that was promised before is stored, another may send no more than the disk
has free at that moment.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from controller.plan.calendar import Calendar, Need
from controller.plan.keys import StorePlace
from controller.plan.reservations import MAX_TIME_US
from controller.plan.volume import US, ConstantRate, Piece, Volume, lowest_constant_rate
from topology.wire import PPM

SLACK_US = 1_000  # what whole bit/s and microseconds may come to
TURN_US = 50_000  # from the end of one promise's turn until the plan lets the next one send: milliseconds, as a rule
BEGINS_US = 200_000  # a disk idles at first, until its kernel has enough to write: 0.1 to 0.17 s in the lab
LEAST_TURN_US = 1_000_000  # a shorter time between the promises of others is of no use


@dataclass(frozen=True, slots=True)
class StoreCapacity:
    """What is known of a store.

    Attributes:
        place: whose it is.
        drain_bps: what it drains for good, counted on the wire.
        room_bits: what it takes at once now, counted so.
        most_bits: what it takes at once when nothing waits there; 0 if that is not known.
    """

    place: StorePlace
    drain_bps: int
    room_bits: int
    most_bits: int = 0

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
class DiskTime:
    """What a disk has for one more.

    Attributes:
        free: what it may drain of that, when.
        room_bits: what of that may wait for it.
        turn_us: from when on; before that, others are promised to be stored, and nothing of it may wait.
    """

    free: tuple[Piece, ...]
    room_bits: int
    turn_us: int = 0


def disk_time(calendar: Calendar, store: StoreCapacity, start_us: int, until_us: int, least_bps: int) -> DiskTime:
    """Return what a store has for one more over ``[start_us, until_us)``, after all that is promised there.

    Who has to wait begins a moment after the one before is stored, when the plan is changed; and a disk that idled
    begins a moment after that.

    Args:
        calendar: it has the store (:func:`make_known`).
        store: it.
        start_us: from when.
        until_us: until when.
        least_bps: what has less than that of the disk has to wait.
    """
    booked_us = calendar.booked_until_us(store.place, start_us)
    waits = booked_us > start_us and calendar.free_bps(store.place, booked_us - 1) < least_bps
    turn_us = booked_us + TURN_US if waits else booked_us
    before = _long(calendar.rates(store.need, start_us, booked_us), least_bps) if booked_us > start_us else ()
    writes_us = turn_us if turn_us == booked_us > start_us else turn_us + BEGINS_US
    idle = ((turn_us, min(writes_us, until_us), 0),) if writes_us > turn_us and until_us > turn_us else ()
    after = calendar.rates(store.need, writes_us, until_us) if until_us > writes_us else ()
    room_bits = max(store.room_bits, store.most_bits) if turn_us > start_us else store.room_bits
    return DiskTime((*before, *idle, *after), room_bits, turn_us)


def _long(pieces: Iterable[Piece], least_bps: int) -> Iterator[Piece]:
    """Yield the pieces that have some rate, of stretches that are long enough to be used."""
    stretch: list[Piece] = []
    for piece in (*pieces, (0, 0, -1)):
        if piece[2] >= least_bps:
            stretch.append(piece)
        else:
            yield from stretch if stretch and stretch[-1][1] - stretch[0][0] >= LEAST_TURN_US else ()
            stretch = []


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
    room: int = 0
    waiting: int = 0


def soonest_stored(network: Iterable[Piece], disk: DiskTime, part: Volume, senders: int) -> StoredVolume | None:
    """Return the soonest way of a volume onto a disk; None if there is no time for it.

    Each sender sends as much as is free until the room is full, and then as much as the disk drains.

    >>> part = Volume(8_000, 1, 2**62)
    >>> line, disk = [(0, 100 * US, 800)], DiskTime(((0, 100 * US, 200),), room_bits=3_000)
    >>> found = soonest_stored(line, disk, part, senders=1)
    >>> [(one.end_us // US, one.rate_bps) for one in found.rates], found.stored_us // US
    ([(5, 800), (25, 200)], 40)

    Args:
        network: what is free for each sender.
        disk: what the disk has for it.
        part: what each sender has.
        senders: how many.
    """
    total = part.size_bits * senders * US
    course = _Course(total, total)
    rates: list[ConstantRate] = []
    drains: list[ConstantRate] = []
    for start_us, end_us, free_bps, drain_bps in _cut(_merged(network, disk.free), disk.turn_us):
        usable_bps = min(free_bps, part.most_bps)
        course.room = disk.room_bits * US if start_us >= disk.turn_us else 0
        at_us = start_us
        while at_us < end_us and course.to_drain > 0:
            send_bps = _sendable_bps(course, usable_bps, drain_bps, senders)
            rate_bps = send_bps if send_bps >= part.least_bps and course.left > 0 else 0
            out_bps, took_us = _phase(course, rate_bps * senders, drain_bps, end_us - at_us)
            _append(rates, at_us, took_us, rate_bps)
            _append(drains, at_us, took_us, out_bps)
            at_us += took_us
        if course.to_drain <= 0:
            return StoredVolume(tuple(rates), tuple(drains))
    return None


def thriftiest_stored(
    network: Iterable[Piece], disk: DiskTime, part: Volume, senders: int, by_us: int | None
) -> StoredVolume | None:
    """Return the way onto a disk by the lowest constant rate that has all across by a time; if none does, the soonest.

    None if not even that has it across by then. What is lowest leaves most to others.

    Args:
        network: as in :func:`soonest_stored`, as the others are.
        disk: what the disk has for it.
        part: what each sender has.
        senders: how many.
        by_us: by when; None for as soon as it can be stored, and across while the disk still writes.
    """
    line = list(network)
    soonest = soonest_stored(line, disk, part, senders)
    if soonest is None or (by_us is not None and soonest.across_us > by_us):
        return None
    stored_by_us = soonest.stored_us + SLACK_US if by_us is None else disk.free[-1][1]
    by_us = soonest.across_us if by_us is None else by_us
    from_us = soonest.rates[0].start_us
    until = [
        (max(start_us, from_us), min(end_us, by_us), bps)
        for start_us, end_us, bps in line
        if start_us < by_us and end_us > from_us
    ]
    constant = lowest_constant_rate(until, part)
    if constant is None:
        return soonest
    slowed = Volume(part.size_bits, part.least_bps, constant.rate_bps)
    found = soonest_stored(line, disk, slowed, senders)
    is_as_good = found is not None and found.across_us <= by_us + 1 and found.stored_us <= stored_by_us
    return found if is_as_good else soonest


def _sendable_bps(course: _Course, usable_bps: int, drain_bps: int, senders: int) -> int:
    """Return what each sender can send: what it may, or its part of what the disk drains once the room is full."""
    surplus_bps = usable_bps * senders - drain_bps
    is_full = surplus_bps > 0 and course.room - course.waiting < surplus_bps  # less than a microsecond of it
    return min(usable_bps, drain_bps // senders) if is_full else usable_bps


def _phase(course: _Course, in_bps: int, drain_bps: int, most_us: int) -> tuple[int, int]:
    """Let a volume come at a rate until something changes; return the disk's rate, and how long that was, us."""
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
    return out_bps, took_us


def _append(profile: list[ConstantRate], at_us: int, took_us: int, rate_bps: int) -> None:
    """Add a stretch to a profile; one that goes on at the same rate is made longer, one without a rate left out."""
    if not rate_bps:
        return
    if profile and profile[-1].end_us == at_us and profile[-1].rate_bps == rate_bps:
        profile[-1] = ConstantRate(profile[-1].start_us, at_us + took_us, rate_bps)
    else:
        profile.append(ConstantRate(at_us, at_us + took_us, rate_bps))


def _cut(pieces: Iterable[tuple[int, int, int, int]], at_us: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the same pieces, the one that goes on over an instant as two."""
    for start_us, end_us, free_bps, drain_bps in pieces:
        if start_us < at_us < end_us:
            yield start_us, at_us, free_bps, drain_bps
        yield max(start_us, at_us) if end_us > at_us else start_us, end_us, free_bps, drain_bps


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
