"""What of the calendar can no longer be kept, and what would be granted instead. Pure.

A booking was granted when there was room. Later a maintenance may be announced, or a circuit may die: then the calendar
holds more than there is, and who is promised it must hear of that now and not at the deadline.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise

from controller.plan.admission import Granted, Offer, OfferKind, Refused, Request
from controller.plan.booking_lead import Market, admitted_in_time
from controller.plan.calendar import Booking, Shortage
from controller.plan.keys import Resource
from controller.plan.ledger import Ledger
from controller.plan.lifecycle import ENDED
from controller.plan.overbooked import closed_until_us, paths_left
from controller.plan.reservations import Reservation
from controller.plan.resources import need
from topology import units
from topology.network import Hop

CANNOT_BE_KEPT, INTERRUPTED = "cannot be kept", "is interrupted"
NOT_AS_PROMISED = CANNOT_BE_KEPT, INTERRUPTED  # so begins the reason of a reservation that has no room any more

Gaps = tuple[tuple[Shortage, int | None], ...]  # each with when it goes on; None, the last of them, if it fails


@dataclass(frozen=True, slots=True)
class Unkeepable:
    """A reservation that cannot be kept, or not all the time.

    Attributes:
        reservation_id: which.
        why: what lacks, where, from when and until when.
        instead: what would be granted at this moment, for people; empty if nothing.
        until_us: when each of its interruptions is over, Unix time; None, the last of them, if it fails instead.
    """

    reservation_id: str
    why: str
    instead: str
    until_us: tuple[int | None, ...]

    @property
    def goes_on_us(self) -> int | None:
        """Return when it goes on after all its interruptions, Unix time; None if it fails."""
        return self.until_us[-1]

    @property
    def reason(self) -> str:
        """Return both, as the reservation's reason says it."""
        what = CANNOT_BE_KEPT if self.goes_on_us is None else INTERRUPTED
        return f"{what}: {self.why}" + (f"; instead: {self.instead}" if self.instead else "")


def unkeepable(ledger: Ledger, now_us: int) -> tuple[Unkeepable, ...]:
    """Return the reservations that do not fit into the calendar any more: the newest, as older ones go first."""
    scarce = ledger.calendar.scarce(now_us)  # who needs none of these has room, however many others there are
    if not scarce:
        return ()
    kept = (known for known in ledger.reservations.values() if not _is_over(known, now_us))
    with _left_out(ledger, (one for one in kept if not scarce.isdisjoint(_needed(ledger, one))), now_us) as lacking:
        return tuple(
            Unkeepable(
                name,
                "; ".join(_lacks(*gap) for gap in gaps),
                _instead(ledger, ledger.reservations[name], now_us),
                tuple(until_us for _, until_us in gaps),
            )
            for name, gaps in lacking.items()
        )


def keepable(ledger: Ledger, names: frozenset[str], now_us: int) -> frozenset[str]:
    """Return which of the reservations that could not be kept can be again, or are none any more.

    The newest of them that have no room are not in the way of older ones, as they are not when :func:`unkeepable` says
    who cannot be kept.
    """
    found = (ledger.reservations[name] for name in names & ledger.reservations.keys())
    with _left_out(ledger, (known for known in found if not _is_over(known, now_us)), now_us) as lacking:
        return names - lacking.keys()


def _is_over(known: Reservation, now_us: int) -> bool:
    return known.state in ENDED or known.end_us <= now_us


@contextmanager
def _left_out(ledger: Ledger, some: Iterable[Reservation], now_us: int) -> Iterator[dict[str, Gaps]]:
    """Have the calendar without those of some reservations that have no room, the newest first; and what each lacks."""
    lacking, own = dict[str, Gaps](), dict[str, Booking]()
    try:
        for known in sorted(some, key=lambda r: -r.sequence):
            name, gaps = known.reservation_id, _gaps(ledger, known, now_us)
            if gaps:
                lacking[name], own[name] = gaps, ledger.calendar.cancel(name)
        yield lacking
    finally:
        for name, booking in own.items():
            ledger.calendar.book(name, booking)


def instead_of(ledger: Ledger, known: Reservation, now_us: int, down: frozenset[str]) -> str:
    """Return what would be granted instead of a reservation, from now on and without the circuits that are down."""
    with _cancelled(ledger, (known.reservation_id,)):
        return _instead(ledger, known, now_us, down)


def _gaps(ledger: Ledger, known: Reservation, now_us: int) -> Gaps:
    """Return what a reservation lacks from now on, beside all others: each time in which it waits, or why it fails."""
    gaps = list[tuple[Shortage, int | None]]()
    from_us: int | None = max(now_us, known.start_us)
    with _without(ledger, known):
        while from_us is not None:
            lacks = (ledger.calendar.shortage(part) for part in _parts(ledger, known, from_us))
            shortage = next((one for one in lacks if one is not None), None)
            if shortage is None:
                break
            until_us = closed_until_us(ledger, known, shortage.at_us)
            from_us = until_us if shortage.at_us < until_us < known.end_us else None
            gaps.append((shortage, from_us))
    return tuple(gaps)


def _needed(ledger: Ledger, known: Reservation) -> Iterator[Resource]:
    """Yield what a reservation is booked of."""
    return (resource for resource, _ in need(ledger.network, known.paths, known.flow_class).shares_ppm)


def _parts(ledger: Ledger, known: Reservation, from_us: int) -> Iterator[Booking]:
    """Yield what a reservation cannot do without: while a circuit of one of its paths is closed, the other path."""
    changes_us = set[int]()
    if len(known.paths) > 1:
        used = {name for path in known.paths for name in ledger.network.circuits_along(path)}
        own = (Hop(tail, head) for tail, head, link in ledger.network.circuit_links if link.circuit in used)
        changes_us.update(us for hop in own for us, _, _ in ledger.schedules.usable(hop, from_us, known.end_us))
    for start_us, end_us in pairwise(sorted({from_us, known.end_us, *changes_us})):
        wanted = need(ledger.network, paths_left(ledger, known, start_us), known.flow_class)
        yield Booking(wanted, known.rate_bps, start_us, end_us)


@contextmanager
def _without(ledger: Ledger, known: Reservation) -> Iterator[None]:
    """Have the calendar without a reservation, and without what was announced after it, which can only be late."""
    newer = (one for one in ledger.announcements.values() if one.sequence > known.sequence)
    booked = (part for one in newer for part in one.bookings())
    meanwhile = (name for name, part in booked if part.start_us < known.end_us and known.start_us < part.end_us)
    with _cancelled(ledger, (known.reservation_id, *meanwhile)):
        yield


@contextmanager
def _cancelled(ledger: Ledger, names: Iterable[str]) -> Iterator[None]:
    """Have the calendar without some bookings."""
    own = {name: ledger.calendar.cancel(name) for name in names}
    try:
        yield
    finally:
        for name, booking in own.items():
            ledger.calendar.book(name, booking)


def _lacks(shortage: Shortage, until_us: int | None) -> str:
    until = "" if until_us is None else f" until {units.shown_time(until_us)}"
    free, asked = (units.shown_rate(max(0, bps)) for bps in (shortage.free_bps, shortage.asked_bps))
    return f"{shortage.resource} has {free} from {units.shown_time(shortage.at_us)}{until}, {asked} promised"


def _instead(ledger: Ledger, known: Reservation, now_us: int, down: frozenset[str] = frozenset()) -> str:
    """Return what would be granted of the rest of a reservation; the calendar must be without it."""
    constraints = replace(known.constraints, exclude=(*known.constraints.exclude, *sorted(down)))
    start_us, end_us = max(now_us, known.start_us), known.end_us
    request = Request(known.a_end, known.z_end, known.flow_class, known.rate_bps, start_us, end_us, constraints)
    market = Market(ledger.network, ledger.policy, ledger.calendar, ledger.lead_us)
    answer = admitted_in_time(request, market, now_us, known)
    offers = answer.offers if isinstance(answer, Refused) else (_as_asked(request),)
    way = f" by {' - '.join(answer.chosen.path)}" if isinstance(answer, Granted) else ""
    return "; or ".join(f"{_shown(offer)}{way}" for offer in offers)


def _as_asked(request: Request) -> Offer:
    return Offer(OfferKind.HIGHEST_RATE, request.flow_class, request.rate_bps, request.start_us, request.end_us)


def _shown(offer: Offer) -> str:
    begin, end = units.shown_time(offer.start_us), units.shown_time(offer.end_us)
    return f"{units.shown_rate(offer.rate_bps)} {offer.flow_class} from {begin} until {end}"
