"""What a plan means for one switch: rules, meters and groups. Pure. Its queues are ``ovsdb/desired_queues.py``'s."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from controller.plan.plan import Plan
from controller.plan.policy import Policy
from controller.southbound.openflow.circuit_ports import circuit_ports, group_id, links_beside, meter_id
from controller.southbound.openflow.meter_numbers import SENDER_METER_IDS, MeterNumbers
from controller.southbound.openflow.plan_aggregates import plan_aggregates
from controller.southbound.openflow.rules import switch_rules, used_heads
from controller.southbound.openflow.senders import PolicedSender, senders
from controller.southbound.openflow.state import Bucket, DropMeter, FailoverGroup, SwitchState, drop_meter
from topology.network import Hop, Network, Switch
from topology.protocol import FlowClass

METER_BURST_MS = 500  # TCP through a policer collapses below about 200 ms of its rate; the path here is 180 ms long
METER_BURST_MIN_BITS = 8 * 256 * 1024  # four 64 kB super-packets that arrive together, on the smallest class
SENDER_BURST_MS = 20  # of a host with others in its class, which wait behind it once if it comes at line rate
LEAST_METER_BPS = 1_000  # OpenFlow 1.3 counts kbit/s


def switch_state(
    network: Network, switch: Switch, plan: Plan, policy: Policy, numbers: MeterNumbers | None = None
) -> SwitchState:
    """Return all rules, meters and groups of a switch under a plan.

    Args:
        network: where.
        switch: which.
        plan: who may send what.
        policy: what each class may have.
        numbers: those that senders' meters have had until now; None for a switch that has had no plan yet.

    Raises:
        MetersExhausted: more is planned there than there are meters.
    """
    known, found = (
        senders(network, switch, plan, policy, numbers or MeterNumbers()),
        plan_aggregates(network, plan, policy),
    )
    heads = used_heads(network, switch, plan.down, found)
    meters = (*class_meters(network, switch, plan, heads), *sender_meters(known))
    rules = switch_rules(network, switch, plan, policy, known, found)
    return SwitchState(rules, frozenset(meters), switch_groups(network, switch))


def class_meters(network: Network, switch: Switch, plan: Plan, heads: Iterable[str]) -> Iterator[DropMeter]:
    """Yield the classes' meters on the circuits by which a switch reaches some heads.

    A circuit that is down has none, unless somebody is behind it alone: they go when no rule uses them any more, and
    not before.
    """
    for head in heads:
        hop = Hop(switch.name, head)
        for c, limits in plan.links[hop].classes.items():
            bps = max(LEAST_METER_BPS, limits.meter_bps)
            yield drop_meter(meter_id(network, hop, c), bps, _burst_bits(bps, METER_BURST_MS))


def sender_meters(known: Iterable[PolicedSender]) -> Iterator[DropMeter]:
    """Yield the meters of senders."""
    for sender in known:
        bps = max(LEAST_METER_BPS, sender.frame_bps)
        burst_ms = METER_BURST_MS if sender.is_alone else SENDER_BURST_MS
        yield drop_meter(sender.meter_id, bps, _burst_bits(bps, burst_ms))


def _burst_bits(meter_bps: int, burst_ms: int) -> int:
    return max(METER_BURST_MIN_BITS, meter_bps * burst_ms // 1000)


@lru_cache(maxsize=256)
def switch_groups(network: Network, switch: Switch) -> frozenset[FailoverGroup]:
    """Return the groups of a switch, the same under every plan: one for each circuit that has others beside it.

    First its own port, then theirs, the shorter delay first. Only circuits to the same switch are in a group: there a
    packet is as near its target as by its own circuit, so that it can never come round again.
    """
    return frozenset(
        FailoverGroup(
            group_id(network, (switch.name, head)),
            tuple(Bucket(each.port_no, each.vlan_vid) for each in (link, *others)),
        )
        for head, link in circuit_ports(network, switch.name)
        if (others := links_beside(network, (switch.name, head)))
    )


def class_meter_ids(network: Network, switch: Switch, hops: Collection[Hop]) -> frozenset[int]:
    """Return the classes' meters of some circuits at a switch."""
    heads = [head for head, _ in circuit_ports(network, switch.name) if (switch.name, head) in hops] if hops else []
    return frozenset(meter_id(network, (switch.name, head), c) for head in heads for c in FlowClass)


def lowered(state: SwitchState, installed: SwitchState, only: frozenset[int] | None = None) -> SwitchState:
    """Return a state with no class's meter, or none of some, above what is installed.

    One that is not there yet begins at the least. A sender's has its own rate at once: the class's, which counts the
    same packets as well, is no higher than before; and it may have been somebody else's until now.
    """
    rate_kbps = {meter.meter_id: meter.rate_kbps for meter in installed.meters}
    meters = []
    for meter in state.meters:
        kept_kbps = min(meter.rate_kbps, rate_kbps.get(meter.meter_id, 0))
        is_held = meter.meter_id not in SENDER_METER_IDS and (only is None or meter.meter_id in only)
        meters.append(replace(meter, rate_kbps=max(LEAST_METER_BPS // 1000, kept_kbps)) if is_held else meter)
    return replace(state, meters=frozenset(meters))
