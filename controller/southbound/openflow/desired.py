"""What a plan means for one switch: rules, meters and groups. Pure. Its queues are ``ovsdb/desired_queues.py``'s."""

from collections.abc import Collection
from dataclasses import replace

from controller.plan.paths import default_path
from controller.plan.plan import Plan
from controller.plan.policy import Policy
from controller.southbound.openflow.circuit_ports import circuit_ports, group_id, links_beside, meter_id
from controller.southbound.openflow.pairs import pairs, remote_hosts
from controller.southbound.openflow.rules import switch_rules
from controller.southbound.openflow.state import Bucket, DropMeter, FailoverGroup, SwitchState, drop_meter
from topology.network import Hop, Network, Switch
from topology.protocol import FlowClass

METER_BURST_MS = 500  # TCP through a policer collapses below about 200 ms of its rate; the path here is 180 ms long
METER_BURST_MIN_BITS = 8 * 256 * 1024  # four 64 kB super-packets that arrive together, on the smallest class
PAIR_BURST_MS = 20  # of a pair with others in its class, which wait behind it once if it comes at line rate
LEAST_METER_BPS = 1_000  # OpenFlow 1.3 counts kbit/s


def switch_state(network: Network, switch: Switch, plan: Plan, policy: Policy) -> SwitchState:
    """Return all rules, meters and groups of a switch under a plan."""
    rules = switch_rules(network, switch, plan, policy)
    return SwitchState(rules, switch_meters(network, switch, plan), switch_groups(network, switch))


def switch_meters(network: Network, switch: Switch, plan: Plan) -> frozenset[DropMeter]:
    """Return all meters of a switch under a plan: each class's on each circuit, and each pair's.

    A circuit that is down has no class's meters, unless somebody is behind it alone: they go when no rule uses them any
    more, and not before.
    """
    ports = circuit_ports(network, switch.name)
    is_used = {head: link.circuit not in plan.down for head, link in ports}
    for host in remote_hosts(network, switch) if not all(is_used.values()) else ():
        is_used[default_path(network, switch.name, host.name, plan.down)[1]] = True
    class_meters = (
        drop_meter(meter_id(network, (switch.name, head), c), bps, _burst_bits(bps, METER_BURST_MS))
        for head, _ in ports
        if is_used[head]
        for c, limits in plan.links[Hop(switch.name, head)].classes.items()
        for bps in (max(LEAST_METER_BPS, limits.meter_bps),)
    )
    pair_meters = (
        drop_meter(pair.meter_id, bps, _burst_bits(bps, METER_BURST_MS if pair.is_alone else PAIR_BURST_MS))
        for pair in pairs(network, switch, plan)
        for bps in (max(LEAST_METER_BPS, pair.frame_bps),)
    )
    return frozenset((*class_meters, *pair_meters))


def _burst_bits(meter_bps: int, burst_ms: int) -> int:
    return max(METER_BURST_MIN_BITS, meter_bps * burst_ms // 1000)


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
    heads = [head for head, _ in circuit_ports(network, switch.name) if (switch.name, head) in hops]
    return frozenset(meter_id(network, (switch.name, head), c) for head in heads for c in FlowClass)


def lowered(state: SwitchState, installed: SwitchState, only: frozenset[int] | None = None) -> SwitchState:
    """Return a state with no meter, or none of some, above what is installed; what is not there begins at the least."""
    rate_kbps = {meter.meter_id: meter.rate_kbps for meter in installed.meters}
    return replace(
        state,
        meters=frozenset(
            replace(m, rate_kbps=max(LEAST_METER_BPS // 1000, min(m.rate_kbps, rate_kbps.get(m.meter_id, 0))))
            if only is None or m.meter_id in only
            else m
            for m in state.meters
        ),
    )
