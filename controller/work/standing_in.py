"""Which circuits stand in for each other, and so should not be bought over the same way. Pure."""

from collections.abc import Iterable, Mapping

from controller.plan.purchases import Period, Purchase, PurchaseState
from controller.plan.reservations import Reservation
from topology.network import Network

_SOLD = frozenset({PurchaseState.RESERVED, PurchaseState.DEPLOYING, PurchaseState.UP})


def backup_circuits(network: Network, needing: Iterable[Reservation], circuit: str, period: Period) -> frozenset[str]:
    """Return the circuits that a reservation of this time crosses on its other path, which is there in case one dies.

    Args:
        network: where.
        needing: the reservations that need the circuit.
        circuit: which.
        period: the time.
    """
    with_backup = [r for r in needing if r.backup and r.start_us < period.end_us and period.start_us < r.end_us]
    crossed = (network.circuits_along(path) for r in with_backup for path in r.paths)
    return frozenset(name for names in crossed if circuit not in names for name in names)


def sold_routes(
    purchases: Mapping[str, Mapping[str, Purchase]], names: Iterable[str], period: Period
) -> frozenset[str]:
    """Return all that is crossed, at its provider, by what is sold of some circuits at a time."""
    sold = (p for name in names for p in purchases.get(name, {}).values() if p.state in _SOLD)
    return frozenset(step for p in sold if p.period.overlap_us(period) > 0 for step in p.route)


def undecided(purchases: Mapping[str, Mapping[str, Purchase]], names: Iterable[str], period: Period) -> bool:
    """Return whether some of these circuits are bought at need, and it is not known yet over which way."""
    return any(name in purchases and not sold_routes(purchases, (name,), period) for name in names)
