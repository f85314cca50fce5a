"""Reservations for which a capacity has become too small, and the paths that are left to one. Pure."""

from collections.abc import Iterator

from controller.plan.failover import crossed
from controller.plan.ledger import Ledger
from controller.plan.paths import Path
from controller.plan.reservations import Reservation
from controller.plan.resources import need


def paths_left(ledger: Ledger, known: Reservation, at_us: int) -> tuple[Path, ...]:
    """Return the paths of a reservation that :meth:`Ledger.closed` leaves; if it leaves none all."""
    closed = ledger.closed(at_us) if len(known.paths) > 1 else frozenset()
    return tuple(p for p in known.paths if not crossed(ledger.network, p, closed)) or known.paths


def overbooked(ledger: Ledger, now_us: int) -> Iterator[Reservation]:
    """Yield, the newest first, reservations that must fail because a capacity no longer holds all that is in force.

    The caller fails each as it comes; the iteration looks again after that. One with a backup goes on by the path
    that is left while a circuit of the other one is to carry nothing.
    """
    for known in sorted(ledger.in_plan(), key=lambda r: -r.sequence):
        left = paths_left(ledger, known, now_us)
        claims = need(ledger.network, left, known.flow_class).claims(known.rate_bps)
        if any(ledger.calendar.free_bps(resource, now_us) < 0 for resource, _ in claims):
            yield known
