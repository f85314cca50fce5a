"""A host's interface divided among the flows that it sends or receives, where they could have more of their circuits.

A circuit's part is what a flow could have if its host did nothing else. A host that sends over two circuits, or to
which several send, has one interface for all of them. Pure.
"""

from collections.abc import Sequence
from dataclasses import replace

from controller.plan.plan import Flow
from controller.plan.policy import Policy
from controller.plan.shares import max_min
from topology.network import Hop, Network
from topology.protocol import FlowClass
from topology.wire import PPM, Framing, Layer, conversion


def interfaces_of(flow: Flow) -> tuple[Hop, Hop]:
    """Return the hops of a flow by its sender's interface and by its receiver's."""
    return flow.links[0], flow.links[-1]


def within_interfaces(flow: Flow, network: Network) -> Flow:
    """Return a flow that wants no more than the slower of its two interfaces, so that others may have the rest."""
    most_bps = min(network.link(*hop).rate_bps for hop in interfaces_of(flow))
    if most_bps >= network.narrowest_bps(flow.path):
        return flow
    return flow if flow.wanted_bps is not None and flow.wanted_bps <= most_bps else replace(flow, wanted_bps=most_bps)


def interface_parts(total_bps: int, policy: Policy, wanted: Sequence[tuple[Flow, int]], framing: Framing) -> list[int]:
    """Return what each flow gets of an interface, bit/s of frames.

    What is promised comes first, then what flows stand by with, then what a class is guaranteed of a circuit; then the
    classes by priority, and within a class max-min. Nothing is left while a flow could have more of its circuits.

    Args:
        total_bps: the interface, bit/s of frames.
        policy: what classes are guaranteed, and who comes first.
        wanted: each flow, and what it could have of its circuits.
        framing: of the interface.

    A host with an interface of 1 Gbit/s has two circuits to itself, of 1 Gbit/s each::

        circuits could give   | urgent 800 |      | background 900 |
        the interface gives   | urgent 800 | background 200 |

    >>> from controller.plan.flows import flow_on
    >>> from controller.plan.keys import FlowId
    >>> from controller.plan.policy import DEFAULT_POLICY
    >>> from mininet_tests.testing.networks import chile_illinois
    >>> network = chile_illinois()
    >>> path = network.path("base20", "arch")
    >>> urgent, raw = (flow_on(network, FlowId(c), FlowClass(c), path) for c in ("urgent", "background"))
    >>> interface_parts(1000, DEFAULT_POLICY, [(urgent, 800), (raw, 900)], Framing())
    [800, 200]
    """
    by_class: dict[FlowClass, list[int]] = {}
    for n, (flow, _) in enumerate(wanted):
        by_class.setdefault(flow.flow_class, []).append(n)
    caps, frames_bps = [cap_bps for _, cap_bps in wanted], conversion(Layer.WIRE, Layer.FRAME, framing)
    promised = [min(cap_bps, frames_bps(flow.floor_bps)) for flow, cap_bps in wanted]
    stood_by = [
        min(cap_bps, max(bps, frames_bps(_standby_bps(flow))))
        for (flow, cap_bps), bps in zip(wanted, promised, strict=True)
    ]
    floors = [
        min(cap_bps, max(bps, _guaranteed_bps(total_bps, policy, flow, len(by_class[flow.flow_class]))))
        for (flow, cap_bps), bps in zip(wanted, stood_by, strict=True)
    ]
    met = [0] * len(wanted)
    for asked in (promised, stood_by, floors):
        if sum(asked) > total_bps:
            return max_min(total_bps, met, asked)
        met = asked
    parts, left_bps = list(floors), total_bps - sum(floors)
    for flow_class in sorted(by_class, key=lambda c: policy.classes[c].priority):
        members = by_class[flow_class]
        kept = [floors[n] for n in members]
        given = max_min(left_bps + sum(kept), kept, [caps[n] for n in members])
        left_bps += sum(kept) - sum(given)
        for n, bps in zip(members, given, strict=True):
            parts[n] = bps
    return parts


def _standby_bps(flow: Flow) -> int:
    """Return what a flow stands by with, bit/s on the wire; no more than it wants."""
    return flow.standby_bps if flow.wanted_bps is None else min(flow.standby_bps, flow.wanted_bps)


def _guaranteed_bps(total_bps: int, policy: Policy, flow: Flow, members: int) -> int:
    """Return a flow's part of what its class is guaranteed, were the interface a circuit."""
    return total_bps * policy.classes[flow.flow_class].guarantee_ppm // PPM // members
