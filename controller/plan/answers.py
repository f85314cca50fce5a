"""What rides back: in which class and by which way the answers to a flow go. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from controller.plan.keys import ClassShare
from controller.plan.plan import THE_REST, Flow
from controller.plan.policy import Policy
from topology.network import Hop
from topology.protocol import FlowClass


def answers(flows: Iterable[Flow], policy: Policy) -> dict[tuple[str, str], Flow]:
    """Return, by the (sender, receiver) of data, in which class and by which way its answers go, as a flow of theirs.

    Answers carry no mark, so all of a pair ride together: with the receiver's own data for the rest, where the two
    hosts send to each other; else with the pair's own flow whose class may have most, then the most urgent.
    """
    by_pair: dict[tuple[str, str], list[Flow]] = {}
    for flow in flows:
        by_pair.setdefault((flow.host, flow.target), []).append(flow)
    found = {}
    for (host, target), of_pair in by_pair.items():
        back = next((f for f in by_pair.get((target, host), ()) if f.selector == THE_REST), None)
        classes = policy.classes
        like = min(of_pair, key=lambda f: (-classes[f.flow_class].cap_ppm, classes[f.flow_class].priority, f.name))
        found[host, target] = back or replace(like, path=like.path[::-1])
    return found


def answered_shares(
    flows: Iterable[Flow], carriers: Mapping[tuple[str, str], Flow], back: Hop
) -> dict[FlowClass, dict[ClassShare, list[Flow]]]:
    """Return flows whose answers cross a link, by the class of these; then by circuit link and class of their data.

    An image goes from Chile to Illinois; what crosses the link back, in its class, is its answers::

        base20 ===> ls1 ===> ch1 ===> arch     data: ls1->ch1, urgent
        base20 <--- ls1 <--- ch1 <--- arch     answers: they cross ch1->ls1, urgent

    >>> from controller.plan.flows import flow_on
    >>> from mininet_tests.testing.networks import chile_illinois
    >>> network = chile_illinois()
    >>> from controller.plan.keys import FlowId
    >>> from controller.plan.policy import DEFAULT_POLICY
    >>> image = flow_on(network, FlowId("image"), FlowClass.URGENT, network.path("base20", "arch"))
    >>> carriers = answers([image], DEFAULT_POLICY)
    >>> found = answered_shares([image], carriers, Hop("ls1", "ch1"))
    >>> [(str(c), [str(share) for share in shares]) for c, shares in found.items()]
    [('urgent', ['ls1->ch1 urgent'])]
    """
    found: dict[FlowClass, dict[ClassShare, list[Flow]]] = {}
    for f in flows:
        # Answers by another way than their data's have none against them; the data's first circuit stands for it.
        share = ClassShare(back if back in f.links else f.links[1], f.flow_class)
        found.setdefault(carriers[f.host, f.target].flow_class, {}).setdefault(share, []).append(f)
    return found


def may_send_bps(flow: Flow, most_bps: int) -> int:
    """Return what a flow may come to send, bit/s on the wire: of one that may stand by now, the most there is."""
    if flow.wanted_bps is None or flow.standby_bps or flow.is_away:
        return most_bps
    return min(most_bps, max(flow.wanted_bps, flow.floor_bps))
