"""What a plan means for one switch: rules, meters and queues. Pure.

Table 0 says which class a packet belongs to, table 1 where it goes. Traffic is classed and policed once, by the switch
where it enters a circuit: a packet for a host of the switch's own site, or one that another edge has sent, passes as
it is. Whatever no allocation claims is unplanned. The answers of a planned flow ride in its class.
"""

from collections.abc import Iterator

from controller.plan.plan import Plan
from controller.plan.policy import Policy
from controller.southbound.openflow import Rule, SwitchState, cookie, drop_meter, match
from controller.southbound.ovsdb import PortQueues, Queue
from topology.network import Host, Network, Switch
from topology.protocol import FlowClass

CLASSIFY_TABLE, FORWARD_TABLE = 0, 1
PAIR_PRIORITY, LOCAL_PRIORITY, TRANSIT_PRIORITY, UNPLANNED_PRIORITY = 400, 300, 200, 100
# What no rule has given a queue leaves by queue 0, so that one is the unplanned class's.
QUEUE_ID = {FlowClass.UNPLANNED: 0, FlowClass.PREDICTABLE: 1, FlowClass.URGENT: 2, FlowClass.BACKGROUND: 3}
METER_ID = {flow_class: 1000 + queue_id for flow_class, queue_id in QUEUE_ID.items()}
METER_BURST_MS = 500  # TCP through a policer collapses below about 200 ms of its rate; the path here is 180 ms long
METER_BURST_MIN_BITS = 8 * 256 * 1024  # four 64 kB super-packets that arrive together, on the smallest class
QUEUE_BURST_US = 1_000  # HTB loses what its timer is late by beyond this; a port's worth of one millisecond
_IP, _ARP = 0x0800, 0x0806
_COOKIE = cookie(1)


def switch_state(network: Network, switch: Switch, plan: Plan, policy: Policy) -> SwitchState:
    """Return all rules and meters of a switch under a plan."""
    rules = (*_classified(network, switch, plan, policy), *_passed(network, switch), *_forward(network, switch))
    meters = (
        drop_meter(METER_ID[c], limits.meter_bps, _burst_bits(limits.meter_bps)) for c, limits in plan.classes.items()
    )
    return SwitchState(frozenset(rules), frozenset(meters))


def port_queues(network: Network, switch: Switch, plan: Plan) -> dict[str, PortQueues]:
    """Return the queues of each circuit port of a switch under a plan.

    A queue's minimum is its class's share. It may borrow what others leave unused at the moment, so that what is queued
    when shares change drains at once; what a class may never exceed is its meter's business.
    """
    queues = tuple(
        Queue(
            queue_id=QUEUE_ID[c],
            min_bps=limits.queue_bps,
            max_bps=plan.circuit_bps,
            burst_bits=plan.circuit_bps * QUEUE_BURST_US // 1_000_000,
        )
        for c, limits in sorted(plan.classes.items(), key=lambda item: QUEUE_ID[item[0]])
    )
    return {
        link.port_name: PortQueues(plan.circuit_bps, queues)
        for tail, _, link in network.links()
        if tail == switch.name and link.circuit is not None
    }


def _burst_bits(meter_bps: int) -> int:
    return max(METER_BURST_MIN_BITS, meter_bps * METER_BURST_MS // 1000)


def _is_local(network: Network, switch: Switch, host: str) -> bool:
    """Return whether a host hangs on the switch itself."""
    return network.graph.has_edge(switch.name, host)


def _classified(network: Network, switch: Switch, plan: Plan, policy: Policy) -> Iterator[Rule]:
    """Yield the rules that say which class crosses a circuit here: one for each pair of hosts, planned or not.

    The pairs are the same under every plan and only their classes change, so that Open vSwitch changes its cached
    flows in place. Were a rule added for each new allocation, the cached flow would go, and the first packets of an
    image would take the slow path through ovs-vswitchd and arrive late or never.
    """
    remote = [h for h in network.hosts if not _is_local(network, switch, h.name)]
    for near in (h for h in network.hosts if _is_local(network, switch, h.name)):
        for far in remote:
            sent = [e.flow for e in plan.entries if (e.flow.host, e.flow.target) == (near.name, far.name)]
            answered = [e.flow for e in plan.entries if (e.flow.target, e.flow.host) == (near.name, far.name)]
            fields: dict[str, int | str] = {"eth_type": _IP, "ipv4_src": str(near.ip), "ipv4_dst": str(far.ip)}
            flow_class = next((f.flow_class for f in (*sent, *answered)), FlowClass.UNPLANNED)
            yield _claim(PAIR_PRIORITY, fields, flow_class, policy)
    yield _claim(UNPLANNED_PRIORITY, {"eth_type": _IP}, FlowClass.UNPLANNED, policy)


def _claim(priority: int, fields: dict[str, int | str], flow_class: FlowClass, policy: Policy) -> Rule:
    """Return the rule that puts matching packets into a class."""
    return Rule(
        table_id=CLASSIFY_TABLE,
        priority=priority,
        match=match(fields),
        cookie=_COOKIE,
        meter_id=METER_ID[flow_class],
        dscp=policy.classes[flow_class].dscp,
        queue_id=QUEUE_ID[flow_class],
        goto_table=FORWARD_TABLE,
    )


def _passed(network: Network, switch: Switch) -> Iterator[Rule]:
    """Yield the rules for what passes as it is: to hosts of the site itself, from other edges, and ARP."""
    for host in network.hosts:
        if _is_local(network, switch, host.name):
            yield _passes(LOCAL_PRIORITY, {"eth_type": _IP, "ipv4_dst": str(host.ip)})
    for tail, _, link in network.links():
        if tail == switch.name and link.circuit is not None:
            yield _passes(TRANSIT_PRIORITY, {"in_port": link.port_no})
    yield _passes(TRANSIT_PRIORITY, {"eth_type": _ARP})


def _passes(priority: int, fields: dict[str, int | str]) -> Rule:
    return Rule(CLASSIFY_TABLE, priority, match(fields), _COOKIE, goto_table=FORWARD_TABLE)


def _forward(network: Network, switch: Switch) -> Iterator[Rule]:
    """Yield the rules that send IP and ARP towards each host; anything else ends here."""
    for host in network.hosts:
        for fields in _addressed_to(host):
            port_no = network.next_hop(switch.name, host.name).port_no
            yield Rule(FORWARD_TABLE, PAIR_PRIORITY, match(fields), _COOKIE, output_port=port_no)


def _addressed_to(host: Host) -> tuple[dict[str, int | str], ...]:
    return {"eth_type": _IP, "ipv4_dst": str(host.ip)}, {"eth_type": _ARP, "arp_tpa": str(host.ip)}
