"""Reservations for which a capacity has become too small, those that wait for it, and the paths left to one. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator

from controller.plan.calendar import Booking
from controller.plan.failover import crossed
from controller.plan.keys import Resource
from controller.plan.ledger import Ledger
from controller.plan.lifecycle import ReservationState
from controller.plan.paths import Path
from controller.plan.reservations import Reservation
from controller.plan.resources import need


def paths_left(ledger: Ledger, known: Reservation, at_us: int) -> tuple[Path, ...]:
    """Return the paths of a reservation that :meth:`Ledger.closed` leaves; if it leaves none all."""
    closed = ledger.closed(at_us) if len(known.paths) > 1 else frozenset()
    return tuple(p for p in known.paths if not crossed(ledger.network, p, closed)) or known.paths


def closed_until_us(ledger: Ledger, known: Reservation, at_us: int) -> int:
    """Return until when each path of a reservation has a circuit that is to carry nothing; the instant if one has none.

    It may be later than the reservation's end.
    """
    if not ledger.closed(at_us):
        return at_us
    ways = map(ledger.network.circuits_along, known.paths)
    return min(ledger.schedules.opens_us(circuits, at_us) for circuits in ways)


def is_interrupted(ledger: Ledger, known: Reservation, at_us: int) -> bool:
    """Return whether all paths of a reservation are closed at an instant, and one is open again before its end."""
    return at_us < closed_until_us(ledger, known, at_us) < known.end_us


def overbooked(ledger: Ledger, now_us: int) -> Iterator[Reservation]:
    """Yield, the newest first, reservations that must fail because a capacity no longer holds all that is in force.

    The caller fails each as it comes; the iteration looks again after that. One with a backup goes on by the path
    that is left while a circuit of the other one is to carry nothing. One that has no path left, and will have one
    before its end, waits, and uses nothing meanwhile. None fails for a hold, which is not in force, nor for what was
    announced after it, which can only be late.
    """
    giving_way = list[tuple[int, Booking]]()
    waiting, spared_bps = dict[str, Reservation](), Counter[Resource]()
    for known in ledger.in_plan() if ledger.closed(now_us) else ():
        if is_interrupted(ledger, known, now_us):
            waiting[known.reservation_id] = known
            spared_bps.update(dict(need(ledger.network, known.paths, known.flow_class).claims(known.rate_bps)))
    for known in sorted(ledger.in_plan(), key=lambda r: -r.sequence):
        if known.reservation_id in waiting:
            continue
        left = paths_left(ledger, known, now_us)
        claims = need(ledger.network, left, known.flow_class).claims(known.rate_bps)
        left_bps = {r: ledger.calendar.free_bps(r, now_us) + spared_bps[r] for r, _ in claims}
        short_bps = {r: -bps for r, bps in left_bps.items() if bps < 0}
        if short_bps:
            giving_way = giving_way or [*_giving_way(ledger, now_us)]
            given_bps = _claimed_bps(booking for until, booking in giving_way if known.sequence < until)
            if any(given_bps[resource] < bps for resource, bps in short_bps.items()):
                yield known


def _giving_way(ledger: Ledger, now_us: int) -> Iterator[tuple[int, Booking]]:
    """Yield what is booked now for holds and announcements, each with below which number a reservation goes first."""
    held = (one for one in ledger.reservations.values() if one.state is ReservationState.HELD)
    found = [(ledger.last_sequence + 1, ledger.calendar.booking(one.reservation_id)) for one in held]
    found += [(one.sequence, booking) for one in ledger.announcements.values() for _, booking in one.bookings()]
    return ((until, booking) for until, booking in found if booking.start_us <= now_us < booking.end_us)


def _claimed_bps(bookings: Iterable[Booking]) -> Counter[Resource]:
    """Return what bookings take of each resource together, bit/s."""
    taken_bps = Counter[Resource]()
    for booking in bookings:
        taken_bps.update(dict(booking.need.claims(booking.rate_bps)))
    return taken_bps
