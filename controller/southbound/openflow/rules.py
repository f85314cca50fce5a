"""The rules of one switch under a plan. Pure.

Table 0 says which class a packet belongs to, table 1 polices the class, table 2 says where it goes. Traffic is classed
and policed once, by the switch where it enters a circuit: a packet for a host of the switch's own site, or one that
another edge has sent, passes as it is. Whatever no allocation claims is unplanned. The answers of a planned flow ride
in its class.

A packet is a host's only if it comes from the port that the host hangs on; whoever else uses its address is a stranger.
Each pair of hosts has a meter of its own in table 0, before its class's in table 1, so that a host which sends more
than its allocation harms nobody else in its class. ARP between two hosts shares their meter and their queue; in a known
host's name it passes only from where the host is, or one packet would lead the host's traffic astray.

A circuit that is handed over as a VLAN has its tag outside the switch only: it comes off in table 0 and is put on in
table 2, after meters and queue were chosen. Each circuit has its own.

Where several circuits join the same two switches, protected classes and ARP leave by a group: by the next circuit, in
its VLAN, as soon as their own has no carrier, before anybody has heard of it. They keep their class's mark and queue,
and have met the meters of their own circuit.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from controller.plan.paths import default_path
from controller.plan.plan import Plan
from controller.plan.policy import Policy
from controller.southbound.openflow.circuit_ports import QUEUE_ID, circuit_ports, group_id, links_beside, meter_id
from controller.southbound.openflow.pairs import Pair, is_local, pair_paths, pairs, remote_hosts
from controller.southbound.openflow.state import MatchValue, Rule, cookie, match
from topology.network import Host, Link, Network, Switch
from topology.protocol import FlowClass

CLASSIFY_TABLE, POLICE_TABLE, FORWARD_TABLE = 0, 1, 2
PAIR_PRIORITY, LOCAL_PRIORITY, MARKED_PRIORITY, TRANSIT_PRIORITY, UNPLANNED_PRIORITY = 400, 300, 250, 200, 100
PINNED_PRIORITY, PROTECTED_PRIORITY = 500, 450
TAGGED_MARKED_PRIORITY, TAGGED_PRIORITY, WRONG_TAG_PRIORITY = 470, 460, 450
ARP_HERE_PRIORITY, ARP_NOT_HERE_PRIORITY, ARP_THERE_PRIORITY, ARP_NOT_THERE_PRIORITY = 380, 370, 360, 350
_TAG_PRESENT = 0x1000  # OFPVID_PRESENT, OpenFlow 1.3 section 7.2.3.7
_IP, _ARP = 0x0800, 0x0806
_COOKIE = cookie(1)


def switch_rules(network: Network, switch: Switch, plan: Plan, policy: Policy) -> frozenset[Rule]:
    """Return all rules of a switch under a plan.

    They depend on the paths that the plan's pairs of hosts go, and on the circuits that are down, and on nothing else.
    """
    return frozenset(
        (
            *_classified(network, pairs(network, switch, plan), policy),
            *_strange(network, switch, policy, plan.down),
            *_named(network, switch),
            *_passed(network, switch, policy),
            *_forward(network, switch, plan, policy),
            *_pinned(network, switch, plan, policy),
        )
    )


def _classified(network: Network, known: Iterable[Pair], policy: Policy) -> Iterator[Rule]:
    """Yield the rules that say which class crosses a circuit here: the same for each pair of hosts, planned or not.

    The pairs are the same under every plan and only their classes change, so that Open vSwitch changes its cached
    flows in place. Were a rule added for each new allocation, the cached flow would go, and the first packets of an
    image would take the slow path through ovs-vswitchd and arrive late or never.
    """
    for pair in known:
        fields: dict[str, int | str] = {"ipv4_src": str(pair.near.ip), "ipv4_dst": str(pair.far.ip)}
        fields |= {"eth_type": _IP, "in_port": pair.in_port}
        asks: dict[str, int | str] = {
            "arp_spa": str(pair.near.ip),
            "arp_tpa": str(pair.far.ip),
            "eth_type": _ARP,
            "in_port": pair.in_port,
        }
        for what in (fields, asks):
            claim = _claim(PAIR_PRIORITY, what, policy, pair.meter_id, pair.flow_class)
            yield replace(claim, goto_table=POLICE_TABLE)
            class_meter = meter_id(network, pair.hop, pair.flow_class)
            yield Rule(
                POLICE_TABLE, PAIR_PRIORITY, match(what), _COOKIE, meter_id=class_meter, goto_table=FORWARD_TABLE
            )


def _strange(network: Network, switch: Switch, policy: Policy, down: frozenset[str]) -> Iterator[Rule]:
    """Yield the rules for what comes from an address nobody knows: unplanned, on the circuit by which it leaves.

    With one circuit that is one rule; with more it is the destination that says which.
    """
    ports = circuit_ports(network, switch.name)
    leaving: list[tuple[str, Host | None]] = [(ports[0][0], None)]
    if len(ports) > 1:
        leaving = [(default_path(network, switch.name, h.name, down)[1], h) for h in remote_hosts(network, switch)]
    for head, host in leaving:
        meter = meter_id(network, (switch.name, head), FlowClass.UNPLANNED)
        anybody: tuple[dict[str, int | str], ...] = {"eth_type": _IP}, {"eth_type": _ARP}
        for fields in _addressed_to(host) if host else anybody:
            yield _claim(UNPLANNED_PRIORITY, fields, policy, meter, FlowClass.UNPLANNED)


def _claim(priority: int, fields: dict[str, int | str], policy: Policy, meter: int, flow_class: FlowClass) -> Rule:
    """Return the rule that puts matching packets into a class."""
    return Rule(
        table_id=CLASSIFY_TABLE,
        priority=priority,
        match=match(fields),
        cookie=_COOKIE,
        meter_id=meter,
        dscp=policy.classes[flow_class].dscp if fields["eth_type"] == _IP else None,
        queue_id=QUEUE_ID[flow_class],
        goto_table=FORWARD_TABLE,
    )


def _named(network: Network, switch: Switch) -> Iterator[Rule]:
    """Yield the rules that end ARP in a known host's name from elsewhere than its port or the circuits."""
    for host in network.hosts:
        in_its_name: dict[str, int | str] = {"eth_type": _ARP, "arp_spa": str(host.ip)}
        if not is_local(network, switch, host.name):
            yield Rule(CLASSIFY_TABLE, ARP_NOT_THERE_PRIORITY, match(in_its_name), _COOKIE)
            continue
        yield _passes(ARP_HERE_PRIORITY, in_its_name | {"in_port": network.link(switch.name, host.name).port_no})
        yield Rule(CLASSIFY_TABLE, ARP_NOT_HERE_PRIORITY, match(in_its_name), _COOKIE)
    for _, link in circuit_ports(network, switch.name):
        yield _passes(ARP_THERE_PRIORITY, {"eth_type": _ARP, "in_port": link.port_no})


def _passed(network: Network, switch: Switch, policy: Policy) -> Iterator[Rule]:
    """Yield the rules for what passes as it is: to hosts of the site itself, and from other edges.

    Where circuits meet, what another edge has classed leaves by its class's queue again: it has the class's mark.
    """
    for host in network.hosts:
        for fields in _addressed_to(host) if is_local(network, switch, host.name) else ():
            yield _passes(LOCAL_PRIORITY, fields)
    ports = circuit_ports(network, switch.name)
    for _, link in ports:
        arrived, pop = _arrived(link), link.vlan_vid is not None
        yield _passes(TAGGED_PRIORITY if pop else TRANSIT_PRIORITY, arrived, pop_vlan=pop)
        for flow_class, queue_id in QUEUE_ID.items() if len(ports) > 1 else ():
            marked = arrived | {"eth_type": _IP, "ip_dscp": policy.classes[flow_class].dscp}
            yield _passes(TAGGED_MARKED_PRIORITY if pop else MARKED_PRIORITY, marked, queue_id, pop_vlan=pop)
    yield from _wrongly_tagged([link for _, link in ports if link.vlan_vid is not None])


def _arrived(link: Link) -> dict[str, MatchValue]:
    """Return what is true of a packet that has come by a circuit, at its port."""
    tag: dict[str, MatchValue] = {} if link.vlan_vid is None else {"vlan_vid": link.vlan_vid | _TAG_PRESENT}
    return {"in_port": link.port_no} | tag


def _wrongly_tagged(links: list[Link]) -> Iterator[Rule]:
    """Yield the rules that end what is on a circuit's port and not in its VLAN, and anybody else's tagged frames.

    What a host has tagged itself would leave with two tags, and cost the circuit more than was counted.
    """
    for link in links:
        yield Rule(CLASSIFY_TABLE, WRONG_TAG_PRIORITY, match({"in_port": link.port_no}), _COOKIE)
    if links:
        yield Rule(CLASSIFY_TABLE, WRONG_TAG_PRIORITY, match({"vlan_vid": (_TAG_PRESENT, _TAG_PRESENT)}), _COOKIE)


def _passes(
    priority: int, fields: Mapping[str, MatchValue], queue_id: int | None = None, *, pop_vlan: bool = False
) -> Rule:
    return Rule(
        CLASSIFY_TABLE,
        priority,
        match(fields),
        _COOKIE,
        pop_vlan=pop_vlan,
        queue_id=queue_id,
        goto_table=FORWARD_TABLE,
    )


def _leaves(priority: int, fields: Mapping[str, MatchValue], link: Link) -> Rule:
    """Return the rule by which matching packets leave by a link, in its VLAN if it has one."""
    return Rule(
        FORWARD_TABLE,
        priority,
        match(fields),
        _COOKIE,
        push_vlan=link.vlan_vid is not None,
        vlan_vid=link.vlan_vid,
        output_port=link.port_no,
    )


def _sends(
    network: Network, hop: tuple[str, ...], priority: int, fields: Mapping[str, MatchValue], *, protected: bool
) -> Rule:
    """Return the rule that sends packets over a hop; over what is beside it, if they are protected and it is dead."""
    tail, head = hop
    if protected and _has_group(network, hop):
        return Rule(FORWARD_TABLE, priority, match(fields), _COOKIE, group_id=group_id(network, (tail, head)))
    return _leaves(priority, fields, network.link(tail, head))


def _has_group(network: Network, hop: tuple[str, ...]) -> bool:
    tail, head = hop
    return network.link(tail, head).circuit is not None and bool(links_beside(network, (tail, head)))


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


def _pinned(network: Network, switch: Switch, plan: Plan, policy: Policy) -> Iterator[Rule]:
    """Yield the rules for planned pairs of hosts that go another way than the default one, at this switch."""
    for (source, target), (flow_class, path) in pair_paths(plan).items():
        if switch.name not in path or path == default_path(network, source, target, plan.down):
            continue
        fields: dict[str, int | str] = {
            "eth_type": _IP,
            "ipv4_src": str(network.host(source).ip),
            "ipv4_dst": str(network.host(target).ip),
        }
        here = path.index(switch.name)
        protected = flow_class in policy.protected
        yield _sends(network, path[here : here + 2], PINNED_PRIORITY, fields, protected=protected)


def _addressed_to(host: Host) -> tuple[dict[str, int | str], ...]:
    return {"eth_type": _IP, "ipv4_dst": str(host.ip)}, {"eth_type": _ARP, "arp_tpa": str(host.ip)}
