"""What of a promise a provider does not guarantee. Pure."""

from itertools import combinations

from controller.plan.purchases import Purchase, PurchaseState
from controller.plan.reservations import Reservation
from controller.state.wished import Wished
from topology.network import Network

_SOLD = frozenset({PurchaseState.RESERVED, PurchaseState.DEPLOYING, PurchaseState.UP})


def not_guaranteed(network: Network, wished: Wished, known: Reservation) -> tuple[str, ...]:
    """Return what of a reservation the providers of its circuits do not guarantee, each with where; none if all is.

    A circuit that is not bought yet guarantees nothing, but that is what the reservation's state says.
    """
    try:
        crossed = [network.circuits_along(path) for path in known.paths]
    except KeyError:  # the network is another one now
        return ()
    sold = {name: _sold(wished, name, known) for names in crossed for name in names}
    lacking = [f"{name}: {p.lacks}" for name, purchases in sold.items() for p in purchases if p.lacks]
    routes = [{step for name in names for p in sold[name] for step in p.route} for names in crossed]
    for (names, route), (others, other) in combinations(zip(crossed, routes, strict=True), 2):
        if shared := sorted(route & other):
            both = f"{', '.join(names)} and {', '.join(others)}"
            lacking.append(f"{both} share {', '.join(shared)} at their provider: one fault may take both")
    return tuple(lacking)


def _sold(wished: Wished, circuit: str, known: Reservation) -> tuple[Purchase, ...]:
    """Return what is sold of a circuit in the time of a reservation."""
    return tuple(
        p
        for p in wished.purchases.get(circuit, {}).values()
        if p.state in _SOLD and p.period.start_us < known.end_us and known.start_us < p.period.end_us
    )
