"""What a plan means for one switch: rules, meters and queues. Pure.

Table 0 says which class a packet belongs to, table 1 where it goes. Traffic is classed and policed once, by the switch
where it enters a circuit: a packet for a host of the switch's own site, or one that another edge has sent, passes as
it is. Whatever no allocation claims is unplanned. The answers of a planned flow ride in its class.

Where several circuits join the same two switches, protected classes and ARP leave by a group: by the next circuit as
soon as their own has no carrier, before anybody has heard of it. They keep their class's mark and queue, and have met
the meter of their own circuit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from controller.plan.paths import default_path
from controller.plan.plan import LinkPlan, Plan
from controller.plan.policy import Policy
from controller.plan.shares import max_min
from controller.southbound.openflow import FailoverGroup, Rule, SwitchState, cookie, drop_meter, match
from controller.southbound.ovsdb import PortQueues, Queue
from topology.network import Host, Link, Network, Switch, link_name
from topology.protocol import FlowClass

CLASSIFY_TABLE, FORWARD_TABLE = 0, 1
PAIR_PRIORITY, LOCAL_PRIORITY, MARKED_PRIORITY, TRANSIT_PRIORITY, UNPLANNED_PRIORITY = 400, 300, 250, 200, 100
PINNED_PRIORITY, PROTECTED_PRIORITY = 500, 450
# What no rule has given a queue leaves by queue 0, so that one is the unplanned class's.
QUEUE_ID = {FlowClass.UNPLANNED: 0, FlowClass.PREDICTABLE: 1, FlowClass.URGENT: 2, FlowClass.BACKGROUND: 3}
FIRST_METER_ID = 1000
METERS_A_LINK = 16
FIRST_GROUP_ID = 1000
METER_BURST_MS = 500  # TCP through a policer collapses below about 200 ms of its rate; the path here is 180 ms long
METER_BURST_MIN_BITS = 8 * 256 * 1024  # four 64 kB super-packets that arrive together, on the smallest class
QUEUE_BURST_US = 1_000  # HTB loses what its timer is late by beyond this; a port's worth of one millisecond
LEAST_QUEUE_BPS = 12_000  # Open vSwitch's linux-htb: 1500 B/s; a circuit that is not there keeps its queues at this
LEAST_METER_BPS = 1_000  # OpenFlow 1.3 counts kbit/s
_IP, _ARP = 0x0800, 0x0806
_COOKIE = cookie(1)


def switch_state(network: Network, switch: Switch, plan: Plan, policy: Policy) -> SwitchState:
    """Return all rules, meters and groups of a switch under a plan.

    A circuit that is down has no meters: they go when no rule uses them any more, and not before.
    """
    rules = (
        *_classified(network, switch, plan, policy),
        *_passed(network, switch, policy),
        *_forward(network, switch, plan, policy),
        *_pinned(network, switch, plan, policy),
    )
    meters = (
        drop_meter(meter_id(network, (switch.name, head), c), bps, _burst_bits(bps))
        for head, link in _circuit_ports(network, switch)
        if link.circuit not in plan.down
        for c, limits in plan.links[link_name(switch.name, head)].classes.items()
        for bps in (max(LEAST_METER_BPS, limits.meter_bps),)
    )
    return SwitchState(frozenset(rules), frozenset(meters), frozenset(_groups(network, switch)))


def _groups(network: Network, switch: Switch) -> Iterator[FailoverGroup]:
    """Yield the group of each circuit that has others beside it: its own port, then theirs, the shorter delay first.

    Only circuits to the same switch are in a group: there a packet is as near its target as by its own circuit, so that
    it can never come round again.
    """
    for head, link in _circuit_ports(network, switch):
        others = _beside(network, (switch.name, head))
        if others:
            ports = (link.port_no, *(other.port_no for other in others))
            yield FailoverGroup(group_id(network, (switch.name, head)), ports)


def _beside(network: Network, hop: tuple[str, str]) -> list[Link]:
    """Return the other circuits from the same switch to the same switch, the shorter delay first."""
    switch = next(s for s in network.switches if s.name == hop[0])
    far, _ = network.against(*hop)
    ports = _circuit_ports(network, switch)
    others = [link for head, link in ports if head != hop[1] and network.against(hop[0], head)[0] == far]
    return sorted(others, key=lambda link: link.delay_us)


def group_id(network: Network, hop: tuple[str, str]) -> int:
    """Return the group that a circuit link begins with, at the switch it leaves."""
    return FIRST_GROUP_ID + _index(network, hop)


def _index(network: Network, hop: tuple[str, str]) -> int:
    """Return the place of a circuit link among those that leave its switch."""
    switch = next(s for s in network.switches if s.name == hop[0])
    return [head for head, _ in _circuit_ports(network, switch)].index(hop[1])


def lowered(state: SwitchState, installed: SwitchState) -> SwitchState:
    """Return a state with no meter above what is installed; one that is not there yet begins at the least."""
    rate_kbps = {meter.meter_id: meter.rate_kbps for meter in installed.meters}
    return replace(
        state,
        meters=frozenset(
            replace(m, rate_kbps=max(LEAST_METER_BPS // 1000, min(m.rate_kbps, rate_kbps.get(m.meter_id, 0))))
            for m in state.meters
        ),
    )


def _circuit_ports(network: Network, switch: Switch) -> list[tuple[str, Link]]:
    """Return (neighbour, link) of each circuit that leaves a switch, in the network's order."""
    return [(head, link) for tail, head, link in network.circuit_links if tail == switch.name]


def meter_id(network: Network, hop: tuple[str, str], flow_class: FlowClass) -> int:
    """Return the meter of a class on the circuit link that ``hop`` is, at the switch it leaves."""
    return FIRST_METER_ID + METERS_A_LINK * _index(network, hop) + QUEUE_ID[flow_class]


def port_queues(network: Network, switch: Switch, plan: Plan) -> dict[str, PortQueues]:
    """Return the queues of each circuit port of a switch under a plan.

    A queue's minimum is its class's share. It may borrow what others leave unused at the moment, so that what is queued
    when shares change drains at once; what a class may never exceed is its meter's business.
    """
    return {
        link.port_name: _queues(plan.links[link_name(switch.name, head)])
        for head, link in _circuit_ports(network, switch)
    }


def _queues(link: LinkPlan) -> PortQueues:
    """Return a port's queues; what the least of them lack to be legal, on a circuit cut short, the largest give."""
    classes = sorted(link.classes, key=lambda c: QUEUE_ID[c])
    least_bps = [LEAST_QUEUE_BPS] * len(classes)
    circuit_bps = max(link.circuit_bps, sum(least_bps))
    shares_bps = max_min(circuit_bps, least_bps, [max(LEAST_QUEUE_BPS, link.classes[c].queue_bps) for c in classes])
    queues = tuple(
        Queue(
            queue_id=QUEUE_ID[c],
            min_bps=min_bps,
            max_bps=circuit_bps,
            burst_bits=circuit_bps * QUEUE_BURST_US // 1_000_000,
        )
        for c, min_bps in zip(classes, shares_bps, strict=True)
    )
    return PortQueues(circuit_bps, queues)


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
    ways = _ways(plan)
    for near in (h for h in network.hosts if _is_local(network, switch, h.name)):
        for far in remote:
            unplanned = FlowClass.UNPLANNED, default_path(network, near.name, far.name, plan.down)
            flow_class, path = ways.get((near.name, far.name), unplanned)
            fields: dict[str, int | str] = {"eth_type": _IP, "ipv4_src": str(near.ip), "ipv4_dst": str(far.ip)}
            yield _claim(PAIR_PRIORITY, fields, policy, meter_id(network, (path[1], path[2]), flow_class), flow_class)
    yield from _strange(network, switch, policy, plan.down)


def _strange(network: Network, switch: Switch, policy: Policy, down: frozenset[str]) -> Iterator[Rule]:
    """Yield the rules for what comes from an address nobody knows: unplanned, on the circuit by which it leaves.

    With one circuit that is one rule; with more it is the destination that says which.
    """
    ports = _circuit_ports(network, switch)
    remote = [h for h in network.hosts if not _is_local(network, switch, h.name)]
    leaving: list[tuple[str, dict[str, int | str]]] = [(ports[0][0], {})]
    if len(ports) > 1:
        leaving = [(default_path(network, switch.name, h.name, down)[1], {"ipv4_dst": str(h.ip)}) for h in remote]
    for head, fields in leaving:
        meter = meter_id(network, (switch.name, head), FlowClass.UNPLANNED)
        yield _claim(UNPLANNED_PRIORITY, {"eth_type": _IP, **fields}, policy, meter, FlowClass.UNPLANNED)


def _ways(plan: Plan) -> dict[tuple[str, str], tuple[FlowClass, tuple[str, ...]]]:
    """Return, by source and target, the class and the path of a pair of hosts that is planned.

    The answers of a planned flow ride in its class, back along its path, unless that pair has a flow of its own.
    """
    sent = {(e.flow.host, e.flow.target): (e.flow.flow_class, e.flow.path) for e in plan.entries}
    return {(z, a): (c, path[::-1]) for (a, z), (c, path) in sent.items()} | sent


def _claim(priority: int, fields: dict[str, int | str], policy: Policy, meter: int, flow_class: FlowClass) -> Rule:
    """Return the rule that puts matching packets into a class."""
    return Rule(
        table_id=CLASSIFY_TABLE,
        priority=priority,
        match=match(fields),
        cookie=_COOKIE,
        meter_id=meter,
        dscp=policy.classes[flow_class].dscp,
        queue_id=QUEUE_ID[flow_class],
        goto_table=FORWARD_TABLE,
    )


def _passed(network: Network, switch: Switch, policy: Policy) -> Iterator[Rule]:
    """Yield the rules for what passes as it is: to hosts of the site itself, from other edges, and ARP.

    Where circuits meet, what another edge has classed leaves by its class's queue again: it has the class's mark.
    """
    for host in network.hosts:
        if _is_local(network, switch, host.name):
            yield _passes(LOCAL_PRIORITY, {"eth_type": _IP, "ipv4_dst": str(host.ip)})
    ports = _circuit_ports(network, switch)
    for _, link in ports:
        yield _passes(TRANSIT_PRIORITY, {"in_port": link.port_no})
        for flow_class, queue_id in QUEUE_ID.items() if len(ports) > 1 else ():
            marked = {"in_port": link.port_no, "eth_type": _IP, "ip_dscp": policy.classes[flow_class].dscp}
            yield _passes(MARKED_PRIORITY, marked, queue_id)
    yield _passes(TRANSIT_PRIORITY, {"eth_type": _ARP})


def _passes(priority: int, fields: Mapping[str, int | str], queue_id: int | None = None) -> Rule:
    return Rule(CLASSIFY_TABLE, priority, match(fields), _COOKIE, queue_id=queue_id, goto_table=FORWARD_TABLE)


def _forward(network: Network, switch: Switch, plan: Plan, policy: Policy) -> Iterator[Rule]:
    """Yield the rules that send IP and ARP towards each host; anything else ends here.

    The rules of protected classes go by the mark that table 0 has given them, so that they are the same whoever sends.
    """
    for host in network.hosts:
        hop = default_path(network, switch.name, host.name, plan.down)[:2]
        ip, arp = _addressed_to(host)
        yield _sends(network, hop, PAIR_PRIORITY, ip, protected=False)
        yield _sends(network, hop, PAIR_PRIORITY, arp, protected=True)
        for flow_class in sorted(policy.protected) if _has_group(network, hop) else ():
            marked = {**ip, "ip_dscp": policy.classes[flow_class].dscp}
            yield _sends(network, hop, PROTECTED_PRIORITY, marked, protected=True)


def _has_group(network: Network, hop: tuple[str, ...]) -> bool:
    tail, head = hop
    return network.link(tail, head).circuit is not None and bool(_beside(network, (tail, head)))


def _sends(
    network: Network, hop: tuple[str, ...], priority: int, fields: Mapping[str, int | str], *, protected: bool
) -> Rule:
    """Return the rule that sends packets over a hop; over what is beside it, if they are protected and it is dead."""
    tail, head = hop
    if protected and _has_group(network, hop):
        return Rule(FORWARD_TABLE, priority, match(fields), _COOKIE, group_id=group_id(network, (tail, head)))
    return Rule(FORWARD_TABLE, priority, match(fields), _COOKIE, output_port=network.link(tail, head).port_no)


def _pinned(network: Network, switch: Switch, plan: Plan, policy: Policy) -> Iterator[Rule]:
    """Yield the rules for planned pairs of hosts that go another way than the default one, at this switch."""
    for (source, target), (flow_class, path) in _ways(plan).items():
        if switch.name not in path or path == default_path(network, source, target, plan.down):
            continue
        fields: dict[str, int | str] = {
            "eth_type": _IP,
            "ipv4_src": str(network.host(source).ip),
            "ipv4_dst": str(network.host(target).ip),
        }
        here = path.index(switch.name)
        hop = path[here : here + 2]
        yield _sends(network, hop, PINNED_PRIORITY, fields, protected=flow_class in policy.protected)


def _addressed_to(host: Host) -> tuple[dict[str, int | str], ...]:
    return {"eth_type": _IP, "ipv4_dst": str(host.ip)}, {"eth_type": _ARP, "arp_tpa": str(host.ip)}
