"""What is planned from hosts here to hosts beyond a circuit, as the switch that the former hang on sees it. Pure."""

from collections.abc import Iterable, Iterator, Mapping

from controller.plan.keys import ClassShare
from controller.plan.policy import Policy
from controller.southbound.openflow.plan_aggregates import AggregateWays
from controller.southbound.openflow.shared import Pair, Treated, Treatment
from topology.network import Host, Network, Switch


def is_local(network: Network, switch: Switch, host: str) -> bool:
    """Return whether a host hangs on the switch itself."""
    return network.graph.has_edge(switch.name, host)


def remote_hosts(network: Network, switch: Switch) -> list[Host]:
    """Return the hosts that a switch reaches over a circuit."""
    return [h for h in network.hosts if not is_local(network, switch, h.name)]


def treatments(begun: Mapping[ClassShare, AggregateWays]) -> dict[Pair, Treatment]:
    """Return what becomes of each pair's packets at the switch where these aggregates enter a circuit."""
    found: dict[Pair, set[Treated]] = {}
    for share, ways in begun.items():
        for pair, treated in treated_in(share, ways):
            found.setdefault(pair, set()).add(treated)
    return {pair: frozenset(several) for pair, several in found.items()}


def treated_in(share: ClassShare, ways: Iterable[tuple[str, str, int | None]]) -> Iterator[tuple[Pair, Treated]]:
    """Yield what becomes of the packets of some aggregates of a class that enter a circuit."""
    for near, far, mark in ways:
        yield (near, far), Treated(mark, share.flow_class, share.hop)


def stands_for(treatment: Treatment, policy: Policy) -> Treated:
    """Return with what two hosts look for each other: what has no mark, else as answers choose."""
    classes = policy.classes

    def rank(treated: Treated) -> tuple[bool, int, int, int]:
        of_class = classes[treated.flow_class]
        return treated.mark is not None, -of_class.cap_ppm, of_class.priority, treated.mark or 0

    return min(treatment, key=rank)
