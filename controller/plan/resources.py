"""What can be booked: each direction of each link, and of circuits each class's share.

On a circuit the policy's guarantees are not for sale: what can be booked is the rest, by any class up to its cap.
"""

from collections.abc import Iterable
from functools import lru_cache

from controller.plan.calendar import Need
from controller.plan.keys import ClassShare, Resource
from controller.plan.policy import Policy
from topology.network import Hop, Network, hops
from topology.protocol import FlowClass
from topology.wire import PPM, answers_ppm


def capacities(network: Network, policy: Policy) -> dict[Resource, int]:
    """Return every resource with its capacity, bit/s on the wire."""
    found: dict[Resource, int] = {}
    for tail, head, link in network.links():
        hop = Hop(tail, head)
        found |= {hop: link.rate_bps} if link.circuit is None else of_circuit(hop, link.rate_bps, policy)
    return found


def of_circuit(hop: Hop, rate_bps: int, policy: Policy) -> dict[Resource, int]:
    """Return what one direction of a circuit has for sale at a rate: the link, and each class's share of it."""
    kept = {c: rate_bps * p.guarantee_ppm // PPM for c, p in policy.classes.items()}
    for_sale: dict[Resource, int] = {hop: rate_bps - sum(kept.values())}
    for c, p in policy.classes.items():
        for_sale[ClassShare(hop, c)] = rate_bps * p.cap_ppm // PPM - kept[c]
    return for_sale


def circuit_rate_bps(booked_bps: int, flow_class: FlowClass, policy: Policy) -> int:
    """Return the least rate of a circuit that has ``booked_bps`` for sale to a class, bit/s on the wire.

    What :func:`of_circuit` rounds in its favour, a guarantee at a time, is at most one bit/s a class. Where the policy
    has changed and sells none of the class any more, what was promised of it is bought as it is.
    """
    for_all_ppm = PPM - sum(p.guarantee_ppm for p in policy.classes.values())
    own = policy.classes[flow_class]
    for_sale_ppm = min(for_all_ppm, own.cap_ppm - own.guarantee_ppm)
    return -(-(booked_bps + 1) * PPM // for_sale_ppm) if for_sale_ppm else booked_bps


@lru_cache(maxsize=10_000)  # as for controller.plan.paths.candidates
def need(network: Network, paths: tuple[tuple[str, ...], ...], flow_class: FlowClass) -> Need:
    """Return what a rate takes along paths of which one is used at a time: all of it there, the answers' part back."""
    shares: dict[Resource, int] = {}
    answers = answers_ppm(network.framing)
    for path in paths:
        for hop in hops(path):
            wanted: dict[Resource, int] = {hop: PPM}
            if network.link(*hop).circuit is not None:
                back = network.against(*hop)
                wanted |= {ClassShare(hop, flow_class): PPM, back: answers, ClassShare(back, flow_class): answers}
            for resource, ppm in wanted.items():
                shares[resource] = max(ppm, shares.get(resource, 0))
    return Need(tuple(shares.items()))


def joint(needs: Iterable[Need]) -> Need:
    """Return what a rate takes that several senders move at the same time, each at that rate."""
    shares: dict[Resource, int] = {}
    for resource, ppm in (share for one in needs for share in one.shares_ppm):
        shares[resource] = shares.get(resource, 0) + ppm
    return Need(tuple(shares.items()))
