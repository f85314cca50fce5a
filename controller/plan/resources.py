"""What can be booked: each direction of each link, and of circuits each class's share.

On a circuit the policy's guarantees are not for sale: what can be booked is the rest, by any class up to its cap.
"""

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

from controller.plan.calendar import Need
from controller.plan.policy import PPM, Policy
from topology.network import Network, link_name
from topology.protocol import FlowClass
from topology.wire import answers_ppm


def class_resource(tail: str, head: str, flow_class: FlowClass) -> str:
    """Return the name of a class's share of one direction of a circuit.

    >>> class_resource("ls1", "ch1", FlowClass.URGENT)
    'ls1->ch1 urgent'
    """
    return f"{link_name(tail, head)} {flow_class}"


def capacities(network: Network, policy: Policy) -> dict[str, int]:
    """Return every resource with its capacity, bit/s on the wire."""
    found: dict[str, int] = {}
    for tail, head, link in network.links():
        if link.circuit is None:
            found[link_name(tail, head)] = link.rate_bps
        else:
            found |= of_circuit(tail, head, link.rate_bps, policy)
    return found


def of_circuit(tail: str, head: str, rate_bps: int, policy: Policy) -> dict[str, int]:
    """Return what one direction of a circuit has for sale at a rate: the link, and each class's share of it."""
    kept = {c: rate_bps * p.guarantee_ppm // PPM for c, p in policy.classes.items()}
    shares = {class_resource(tail, head, c): rate_bps * p.cap_ppm // PPM - kept[c] for c, p in policy.classes.items()}
    return {link_name(tail, head): rate_bps - sum(kept.values())} | shares


def circuit_rate_bps(booked_bps: int, flow_class: FlowClass, policy: Policy) -> int:
    """Return the least rate of a circuit that has ``booked_bps`` for sale to a class, bit/s on the wire.

    What :func:`of_circuit` rounds in its favour, a guarantee at a time, is at most one bit/s a class.
    """
    for_all_ppm = PPM - sum(p.guarantee_ppm for p in policy.classes.values())
    own = policy.classes[flow_class]
    for_class_ppm = own.cap_ppm - own.guarantee_ppm
    return -(-(booked_bps + 1) * PPM // min(for_all_ppm, for_class_ppm))


@lru_cache(maxsize=10_000)  # as for controller.plan.paths.candidates
def need(network: Network, paths: tuple[tuple[str, ...], ...], flow_class: FlowClass) -> Need:
    """Return what a rate takes along paths of which one is used at a time: all of it there, the answers' part back."""
    shares: dict[str, int] = {}
    answers = answers_ppm(network.framing)
    for path in paths:
        for tail, head in pairwise(path):
            circuit = network.link(tail, head).circuit is not None
            wanted = {link_name(tail, head): PPM}
            if circuit:
                wanted[class_resource(tail, head, flow_class)] = PPM
                back = network.against(tail, head)
                wanted[link_name(*back)] = wanted[class_resource(*back, flow_class)] = answers
            for resource, ppm in wanted.items():
                shares[resource] = max(ppm, shares.get(resource, 0))
    return Need(tuple(shares.items()))


def joint(needs: Iterable[Need]) -> Need:
    """Return what a rate takes that several senders move at the same time, each at that rate."""
    shares: dict[str, int] = {}
    for resource, ppm in (share for one in needs for share in one.shares_ppm):
        shares[resource] = shares.get(resource, 0) + ppm
    return Need(tuple(shares.items()))
