"""A site: what does not change while the controller runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from controller.errors import NotAllowed, NotKnown
from controller.plan.delays import DelayBound
from controller.plan.failover import redundant
from controller.plan.flows import flow_on
from controller.plan.kept_ledger import KeptLedger
from controller.plan.keys import FlowId
from controller.plan.lines import RETURN_AFTER_US
from controller.plan.plan import Flow
from controller.plan.policy import Policy
from controller.plan.purchases import Period
from controller.plan.sold_by import SoldBy
from topology.addresses import families, reached_from
from topology.distances import longest_rtt_us
from topology.network import Hop, Host, Network, UnknownNode
from topology.protocol import FlowClass
from topology.wire import Layer, converted_bps

RECEIVE_WINDOW_BDPS = 3  # with loss, two to three bandwidth-delay products of selectively confirmed data wait


@dataclass(frozen=True)
class Site:
    """What does not change while the controller runs.

    Attributes:
        network: the topology; circuits whose delay was measured may come to take another time.
        policy: what each class may have.
        standing: the flows that are always in the plan.
        lease_ms: how long a host may act without hearing from us.
        hosts_mark: whether agents set their class's DSCP; the site's own switches do it anyway.
        together_us: hosts that begin or end together say so within this; switches are told once.
        return_after_us: how long a circuit's line must have been up again before it is used.
        schedules: by circuit, when it has another capacity than its own rate.
        lead_us: by circuit that is bought at need, how long before its use that must be.
        sold_by: by circuit that is bought at need, of whom.
        hold_to_receivers: whether a flow whose receiver takes less than it is sent leaves the rest to others.
    """

    network: Network
    policy: Policy
    standing: tuple[Flow, ...]
    lease_ms: int
    schedules: Mapping[str, tuple[Period, ...]] = field(default_factory=dict)
    lead_us: Mapping[str, int] = field(default_factory=dict)
    sold_by: Mapping[str, SoldBy] = field(default_factory=dict)
    hosts_mark: bool = False
    together_us: int = 1_000
    return_after_us: int = RETURN_AFTER_US
    hold_to_receivers: bool = True

    def ledger(self) -> KeptLedger:
        """Return an empty ledger of the site."""
        ledger = KeptLedger(self.network, self.policy, self.lead_us)
        for tail, head, link in self.network.circuit_links:
            periods = self.schedules.get(link.circuit or "", ())
            ledger.set_schedule(Hop(tail, head), ((p.start_us, p.end_us, p.rate_bps) for p in periods))
        return ledger

    @cached_property
    def redundant(self) -> frozenset[str]:
        """The circuits whose two ends are joined without them too."""
        return redundant(self.network)

    @cached_property
    def delay_bounds(self) -> dict[str, DelayBound]:
        """By circuit whose delay is not known, what the network's file says of it."""
        far = {edge.name for edge in self.network.far_edges}
        ends = {c.name: len({c.a_end, c.z_end} - far) for c in self.network.circuits}
        links = (link for _, _, link in self.network.circuit_links if link.is_bound and link.circuit)
        return {link.circuit: DelayBound(link.delay_us, ends[link.circuit]) for link in links if link.circuit}

    @cached_property
    def receive_window_bytes(self) -> int:
        """The window a receiver must be able to open: the longest path at the highest rate, with recovery."""
        wire_bps = max(link.rate_bps for _, _, link in self.network.circuit_links)
        payload_bps = converted_bps(wire_bps, Layer.WIRE, Layer.PAYLOAD, self.network.framing)
        return RECEIVE_WINDOW_BDPS * payload_bps * longest_rtt_us(self.network) // 8_000_000


def check_families(source: Host, target: Host) -> None:
    """Refuse two hosts of which one has IPv4 addresses alone, the other IPv6's.

    Raises:
        NotAllowed: they are.
    """
    if not reached_from(source.prefixes, target.prefixes):
        kinds = " and ".join(f"{h.name} has IPv{min(families(h.prefixes), default=4)} alone" for h in (source, target))
        raise NotAllowed("to", f"{kinds}: nothing can be sent from one to the other")


def check_sender(network: Network, name: str) -> None:
    """Refuse a sender at a site that is not ours.

    Raises:
        NotAllowed: it is.
    """
    if not network.is_ours(name):
        raise NotAllowed("from", f"{name} is not ours: nothing there holds a rate, so what it sends cannot be planned")


def flow_between(network: Network, name: FlowId, flow_class: FlowClass, ends: tuple[str, str]) -> Flow:
    """Return a flow from one host to another, across a circuit.

    Raises:
        NotKnown: one of them is not in the network.
        NotAllowed: the path between them crosses no circuit, or no packet of one family goes from one to the other.
    """
    try:
        source, target = (network.host(end) for end in ends)
    except UnknownNode as error:
        raise NotKnown("host", error.name, error.known) from error
    check_sender(network, source.name)
    path = network.path(source.name, target.name)
    if not any(network.link(tail, head).circuit for tail, head in pairwise(path)):
        raise NotAllowed("to", f"{source.name} and {target.name} are not joined by a circuit")
    check_families(source, target)
    return flow_on(network, name, flow_class, path)
