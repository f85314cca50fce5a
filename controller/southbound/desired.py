"""What a plan means for one switch: rules, meters and queues. Pure.

Table 0 says which class a packet belongs to, table 1 where it goes. Traffic is classed and policed once, by the switch
where it enters a circuit: a packet for a host of the switch's own site, or one that another edge has sent, passes as
it is. Whatever no allocation claims is unplanned. The answers of a planned flow ride in its class.
"""

from collections.abc import Iterator

from controller.plan.plan import Entry, Plan
from controller.plan.policy import Policy
from controller.southbound.openflow import Rule, SwitchState, cookie, drop_meter, match
from controller.southbound.ovsdb import PortQueues, Queue
from topology.network import Host, Network, Switch
from topology.protocol import FlowClass

CLASSIFY_TABLE, FORWARD_TABLE = 0, 1
PLANNED_PRIORITY, LOCAL_PRIORITY, TRANSIT_PRIORITY, UNPLANNED_PRIORITY = 400, 300, 200, 100
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
    rules = (*_planned(network, switch, plan, policy), *_unclaimed(network, switch, policy), *_forward(network, switch))
    meters = (
        drop_meter(METER_ID[c], limits.meter_bps, _burst_bits(limits.meter_bps)) for c, limits in plan.classes.items()
    )
    return SwitchState(frozenset(rules), frozenset(meters))


def port_queues(network: Network, switch: Switch, plan: Plan) -> dict[str, PortQueues]:
    """Return the queues of each circuit port of a switch under a plan.

    A queue's minimum is its class's share. A planned class may borrow what others leave unused at the moment, so that
    what is queued when shares change drains at once; the unplanned class may not.
    """
    queues = tuple(
        Queue(
            queue_id=QUEUE_ID[c],
            min_bps=limits.queue_bps,
            max_bps=limits.queue_bps if c is FlowClass.UNPLANNED else plan.circuit_bps,
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


def _planned(network: Network, switch: Switch, plan: Plan, policy: Policy) -> Iterator[Rule]:
    """Yield the rules that claim each allocation's packets, and its answers, where they enter a circuit."""
    for entry in plan.entries:
        if _is_local(network, switch, entry.flow.host):
            yield _claim(_fields(network, entry, answers=False), entry.flow.flow_class, policy)
        if _is_local(network, switch, entry.flow.target):
            yield _claim(_fields(network, entry, answers=True), entry.flow.flow_class, policy)


def _fields(network: Network, entry: Entry, *, answers: bool) -> dict[str, int | str]:
    """Return what an allocation's packets, or its answers, look like."""
    flow = entry.flow
    ends = str(network.host(flow.host).ip), str(flow.dest)
    source, target = reversed(ends) if answers else ends
    fields: dict[str, int | str] = {"eth_type": _IP, "ipv4_src": source, "ipv4_dst": target}
    if flow.dest_port:
        fields |= {"ip_proto": 6, "tcp_src" if answers else "tcp_dst": flow.dest_port}
    return fields


def _claim(fields: dict[str, int | str], flow_class: FlowClass, policy: Policy) -> Rule:
    """Return the rule that puts matching packets into a class."""
    return Rule(
        table_id=CLASSIFY_TABLE,
        priority=UNPLANNED_PRIORITY if flow_class is FlowClass.UNPLANNED else PLANNED_PRIORITY,
        match=match(fields),
        cookie=_COOKIE,
        meter_id=METER_ID[flow_class],
        dscp=policy.classes[flow_class].dscp,
        queue_id=QUEUE_ID[flow_class],
        goto_table=FORWARD_TABLE,
    )


def _unclaimed(network: Network, switch: Switch, policy: Policy) -> Iterator[Rule]:
    """Yield the rules for what no allocation claims: local and transit traffic passes, the rest is unplanned."""
    for host in network.hosts:
        if _is_local(network, switch, host.name):
            yield _passes(LOCAL_PRIORITY, {"eth_type": _IP, "ipv4_dst": str(host.ip)})
    for tail, _, link in network.links():
        if tail == switch.name and link.circuit is not None:
            yield _passes(TRANSIT_PRIORITY, {"in_port": link.port_no})
    yield _passes(TRANSIT_PRIORITY, {"eth_type": _ARP})
    yield _claim({"eth_type": _IP}, FlowClass.UNPLANNED, policy)


def _passes(priority: int, fields: dict[str, int | str]) -> Rule:
    return Rule(CLASSIFY_TABLE, priority, match(fields), _COOKIE, goto_table=FORWARD_TABLE)


def _forward(network: Network, switch: Switch) -> Iterator[Rule]:
    """Yield the rules that send IP and ARP towards each host; anything else ends here."""
    for host in network.hosts:
        for fields in _addressed_to(host):
            port_no = network.next_hop(switch.name, host.name).port_no
            yield Rule(FORWARD_TABLE, PLANNED_PRIORITY, match(fields), _COOKIE, output_port=port_no)


def _addressed_to(host: Host) -> tuple[dict[str, int | str], ...]:
    return {"eth_type": _IP, "ipv4_dst": str(host.ip)}, {"eth_type": _ARP, "arp_tpa": str(host.ip)}
