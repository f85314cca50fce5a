"""The calendar: what is promised of each resource, when; and what is still free.

A resource is one direction of a circuit, a class's share of it, a switch port or a host's interface. Each has two step
functions: its capacity (which a provider's schedule or a maintenance window changes) and what of it is free. Times are
Unix microseconds, intervals half-open, rates integer bit/s on the wire, so bookings that touch never conflict and two
equal bookings are two bookings.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from controller.plan.keys import Resource, StorePlace
from controller.plan.reservations import MAX_TIME_US
from controller.plan.steps import Steps
from topology.wire import PPM


@dataclass(frozen=True, slots=True)
class Need:
    """What a rate takes of each resource: ``(resource, parts per million of the rate)``.

    The way there takes the whole rate; the answers take a small part of it on the way back.
    """

    shares_ppm: tuple[tuple[Resource, int], ...]

    def claims(self, rate_bps: int) -> tuple[tuple[Resource, int], ...]:
        """Return what a rate takes of each resource, bit/s, rounded up."""
        return tuple((resource, -(-rate_bps * ppm // PPM)) for resource, ppm in self.shares_ppm)


@dataclass(frozen=True, slots=True)
class Booking:
    """``rate_bps`` of a need for ``start_us <= t < end_us``."""

    need: Need
    rate_bps: int
    start_us: int
    end_us: int


@dataclass(frozen=True, slots=True)
class Shortage:
    """The first instant at which a resource lacks what is asked of it."""

    resource: Resource
    asked_bps: int
    free_bps: int
    at_us: int


class Calendar:
    """Bookings by name over resources; exact at every instant."""

    def __init__(self, capacity_bps: Mapping[Resource, int]) -> None:
        """Start with nothing booked and every capacity the same at all times."""
        self._capacity = {resource: Steps(bps) for resource, bps in capacity_bps.items()}
        self._free = {resource: Steps(bps) for resource, bps in capacity_bps.items()}
        self._booked: dict[str, Booking] = {}

    def __len__(self) -> int:
        """Return the number of bookings."""
        return len(self._booked)

    def __contains__(self, name: str) -> bool:
        """Return whether there is a booking of this name."""
        return name in self._booked

    def __eq__(self, other: object) -> bool:
        """Return whether the same is booked and free at every instant."""
        return isinstance(other, Calendar) and (self._booked, self._capacity, self._free) == (
            other._booked,
            other._capacity,
            other._free,
        )

    __hash__ = None  # type: ignore[assignment]  # it changes

    def booking(self, name: str) -> Booking:
        """Return a booking.

        Raises:
            KeyError: there is none of this name.
        """
        return self._booked[name]

    def free_of(self, resources: Iterable[Resource]) -> "Calendar":
        """Return what is free of some resources now as a calendar of its own, to be asked without this one."""
        found = Calendar({})
        found._free = {resource: self._free[resource].copied() for resource in resources}
        found._capacity = {resource: self._capacity[resource].copied() for resource in found._free}
        return found

    def has_resource(self, resource: Resource) -> bool:
        """Return whether there is a resource of this name."""
        return resource in self._capacity

    def add_resource(self, resource: Resource) -> None:
        """Add a resource whose capacity is 0 at all times until it is changed."""
        self._capacity[resource], self._free[resource] = Steps(), Steps()

    def remove_resource(self, resource: Resource) -> None:
        """Forget a resource; bookings that need it must be out already."""
        del self._capacity[resource], self._free[resource]

    def change_capacity(self, resource: Resource, start_us: int, end_us: int, change_bps: int) -> None:
        """Add to a resource's capacity over an interval; what is booked stays booked."""
        self._capacity[resource].add(start_us, end_us, change_bps)
        self._free[resource].add(start_us, end_us, change_bps)

    def close(self, resource: Resource, start_us: int, end_us: int) -> None:
        """Let a resource carry nothing over an interval; what is booked stays booked."""
        for begin_us, until_us, rate_bps in tuple(self._capacity[resource].pieces(start_us, end_us)):
            self.change_capacity(resource, begin_us, until_us, -rate_bps)

    def capacity_bps(self, resource: Resource, at_us: int) -> int:
        """Return a resource's capacity at an instant."""
        return self._capacity[resource].value(at_us)

    def free_bps(self, resource: Resource, at_us: int) -> int:
        """Return what is free at an instant; negative where a capacity has shrunk below what is booked."""
        return self._free[resource].value(at_us)

    def peak_bps(self, resource: Resource, start_us: int, end_us: int) -> int:
        """Return the most that is booked of a resource at any instant of ``[start_us, end_us)``."""
        return max(
            capacity - self._free[resource].least(begin, until)
            for begin, until, capacity in self._capacity[resource].pieces(start_us, end_us)
        )

    def booked_until_us(self, resource: Resource, after_us: int) -> int:
        """Return when the last booking of a resource ends; ``after_us`` if none goes on until then."""
        found_us = after_us
        for begin, until, capacity_bps in self._capacity[resource].pieces(after_us, MAX_TIME_US):
            booked = (end for _, end, free_bps in self._free[resource].pieces(begin, until) if free_bps < capacity_bps)
            found_us = max(booked, default=found_us)
        return found_us

    def scarce(self, from_us: int) -> frozenset[Resource]:
        """Return the resources of which more is booked than there is, now or later."""
        return frozenset(r for r, free in self._free.items() if free.least(from_us, MAX_TIME_US) < 0)

    def book(self, name: str, booking: Booking) -> None:
        """Enter a booking; whether it fits is for :meth:`shortage` to say first.

        Raises:
            ValueError: the name is taken, or the interval is empty.
        """
        if name in self._booked:
            raise ValueError(f'"{name}" is booked already')
        self._take(booking, 1)
        self._booked[name] = booking

    def cancel(self, name: str) -> Booking:
        """Take a booking out and return it.

        Raises:
            KeyError: there is none of this name.
        """
        booking = self._booked.pop(name)
        self._take(booking, -1)
        return booking

    def _take(self, booking: Booking, sign: int) -> None:
        for resource, rate_bps in booking.need.claims(booking.rate_bps):
            if isinstance(resource, StorePlace) and resource not in self._free:
                self.add_resource(resource)  # booked before a restart: nobody has told of it yet
            self._free[resource].add(booking.start_us, booking.end_us, -sign * rate_bps)

    def shortage(self, booking: Booking) -> Shortage | None:
        """Return the first instant at which a booking does not fit, None if it does.

        If several resources lack it at that instant, the one that has the least of what it is asked.
        """
        found = []
        for resource, asked_bps in booking.need.claims(booking.rate_bps):
            if isinstance(resource, StorePlace) and resource not in self._free:
                continue  # what it takes is not known again yet
            free = self._free[resource]
            at_us = free.first_below(asked_bps, booking.start_us, booking.end_us)
            if at_us is not None:
                found.append(Shortage(resource, asked_bps, free.value(at_us), at_us))
        return min(found, key=lambda s: (s.at_us, s.free_bps / s.asked_bps), default=None)

    def has_room(self, bookings: Sequence[Booking]) -> bool:
        """Return whether bookings fit all at once, each beside those before it."""
        left = self.free_of({resource for booking in bookings for resource, _ in booking.need.shares_ppm})
        for number, booking in enumerate(bookings):
            if left.shortage(booking) is not None:
                return False
            left.book(str(number), booking)
        return True

    def most_bps(self, need: Need, start_us: int, end_us: int) -> int:
        """Return the highest constant rate that fits over ``[start_us, end_us)``; 0 if none does."""
        return min(_highest(self._free[resource].least(start_us, end_us), ppm) for resource, ppm in need.shares_ppm)

    def earliest_start(self, need: Need, rate_bps: int, duration_us: int, after_us: int, before_us: int) -> int | None:
        """Return the first start in ``[after_us, before_us)`` from which a rate fits for a duration; None if none.

        From each instant that lacks the rate the walk goes on where the resource that lacked it has it again, so each
        conflict is met once.
        """
        claims = need.claims(rate_bps)
        start_us: int | None = after_us
        while start_us is not None and start_us < before_us:
            for resource, asked_bps in claims:
                free = self._free[resource]
                lacks_us = free.first_below(asked_bps, start_us, start_us + duration_us)
                if lacks_us is not None:
                    start_us = free.first_reaching(asked_bps, lacks_us, MAX_TIME_US)
                    break
            else:
                return start_us
        return None

    def rates(self, need: Need, start_us: int, end_us: int) -> Iterator[tuple[int, int, int]]:
        """Yield (from, until, the highest rate that fits in between) over ``[start_us, end_us)``, as far as asked."""
        pieces: Iterator[tuple[int, int, int]] = iter(((start_us, end_us, 2**63),))
        for resource, ppm in need.shares_ppm:
            pieces = _lesser(pieces, self._free[resource].pieces(start_us, end_us), ppm)
        since_us, known_bps = start_us, -1
        for begin, _, rate_bps in pieces:
            if rate_bps != known_bps:
                if known_bps >= 0:
                    yield since_us, begin, known_bps
                since_us, known_bps = begin, rate_bps
        yield since_us, end_us, known_bps


def _lesser(
    pieces: Iterable[tuple[int, int, int]], free: Iterator[tuple[int, int, int]], ppm: int
) -> Iterator[tuple[int, int, int]]:
    """Yield pieces with the lesser of their rate and what fits into a resource that is free so; both go equally far."""
    _, free_until, free_bps = next(free)
    most_bps = _highest(free_bps, ppm)
    for start, end, rate_bps in pieces:
        begin = start
        while free_until < end:
            yield begin, free_until, min(rate_bps, most_bps)
            begin, free_until, free_bps = next(free)
            most_bps = _highest(free_bps, ppm)
        yield begin, end, min(rate_bps, most_bps)
        if free_until == end:
            _, free_until, free_bps = next(free, (end, end, free_bps))
            most_bps = _highest(free_bps, ppm)


def _highest(free_bps: int, ppm: int) -> int:
    """Return the highest rate of which ``ppm`` parts per million, rounded up, fit into ``free_bps``."""
    return max(0, free_bps) * PPM // ppm
