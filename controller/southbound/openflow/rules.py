"""The rules of one switch under a plan. Pure.

A packet passes six tables. ``arrive`` says whether it has come by a circuit, and takes off its tag; ``source`` who it
is from; ``target`` who it is for, and which way that lies; ``flow`` what is planned between the two: its class, and the
circuit; ``sender`` polices all that a host sends in a class by a circuit; ``leave`` sends it by the circuit, in its
class. What a table finds out it tells the next in the metadata (``metadata.py``).

Traffic is classed and policed once, by the switch where it enters a circuit: a packet for a host of the switch's own
site leaves as it is, and one that another edge has sent keeps its mark, which says its class. What comes from a site
that is not ours, whose edge polices nothing, is policed where it enters the next circuit. Whatever nobody has planned
is unplanned. The answers of a planned flow ride in its class.

A packet is a host's only if it comes from the port that the host hangs on; whoever else uses its address is a stranger.
Each sender has a meter of its own in ``sender``, before its class's in ``leave``, so that a host which sends more than
it may harms nobody else in its class. ARP between two hosts, and IPv6's neighbour discovery, share its meter and its
queue; in a known host's name they pass only from where the host is, or one packet would lead its traffic astray.

Only ``flow`` and ``sender`` have rules that come and go with the plan, and those look at nothing but the metadata, and
at the code point, at which every packet to a circuit is looked at. So Open vSwitch's cached flow of two hosts has the
same mask whatever is planned between them, or between others: it is changed in place. Were it deleted, the first
packets of an image would take the slow path through ovs-vswitchd and arrive late or never.

A circuit that is handed over as a VLAN has its tag outside the switch only: it comes off in ``arrive`` and is put on in
``leave``, after meters and queue were chosen. Each circuit has its own.

Where several circuits join the same two switches, protected classes and ARP leave by a group: by the next circuit, in
its VLAN, as soon as their own has no carrier, before anybody has heard of it. They keep their class's mark and queue,
and have met the meters of their own circuit.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from controller.plan.paths import Path, default_path
from controller.plan.plan import Plan
from controller.plan.policy import Policy
from controller.southbound.openflow import metadata
from controller.southbound.openflow.addressing import (
    ARP,
    Fields,
    ip_types,
    marked,
    named_by,
    seeking,
    sent_by,
    sent_to,
)
from controller.southbound.openflow.aggregates import is_local, remote_hosts, stands_for, treatments
from controller.southbound.openflow.circuit_ports import (
    QUEUE_ID,
    circuit_ports,
    far_edges,
    group_id,
    links_beside,
    meter_id,
)
from controller.southbound.openflow.flow_table import by_port, flow_rules, stranger_rule
from controller.southbound.openflow.plan_aggregates import NO_AGGREGATES, AggregateWays, PlanAggregates
from controller.southbound.openflow.rule_parts import (
    ARRIVE_TABLE,
    COOKIE,
    FLOW_TABLE,
    LEAVE_TABLE,
    SENDER_TABLE,
    SOURCE_TABLE,
    TARGET_TABLE,
    ends,
    goes_on,
)
from controller.southbound.openflow.senders import PolicedSender
from controller.southbound.openflow.shared import Pair, Treated
from controller.southbound.openflow.state import Bits, Rule, match
from topology.addresses import joined_prefixes
from topology.network import Hop, Network, Switch
from topology.protocol import FlowClass

TAGGED_PRIORITY, WRONG_TAG_PRIORITY = 460, 450
KNOWN_PRIORITY = 400
OWN_NAME_PRIORITY, NAMED_PRIORITY = 420, 410  # who names a host's address where it is, and who else does
SEEKING_PRIORITY = 410  # neighbour discovery, which may be for the host's own address like any IPv6 packet
OWN_PRIORITY = 420  # from a site that is not ours, and for it
LED_PRIORITY, CLASS_PRIORITY = 400, 200
FAR_PAIR_PRIORITY, FAR_PRIORITY = 420, 410
SENDER_PRIORITY, PAIR_PRIORITY = 300, 310
MOST_READY = 20_000  # hosts times circuits of a switch; some 1 kB of rules each are kept for a death
ANYBODY_PRIORITY = 100
_TAG_PRESENT = 0x1000  # OFPVID_PRESENT, OpenFlow 1.3 section 7.2.3.7


def switch_rules(
    network: Network,
    switch: Switch,
    plan: Plan,
    policy: Policy,
    known: Collection[PolicedSender],
    found: PlanAggregates,
) -> frozenset[Rule]:
    """Return all rules of a switch under a plan.

    They depend on the ways of what is planned, on the numbers of senders' meters, and on the circuits that are down,
    and on nothing else.
    """
    planned = flow_rules(network, switch, plan.down, treatments(found.begun.get(switch.name, {})), policy)
    crossing = crossing_rules(network, switch, found.crossing.get(switch.name, NO_AGGREGATES), policy, plan.down)
    leaving = leave_rules(network, switch, policy, used_heads(network, switch, plan.down, found))
    metered = sender_rules(network, switch, known)
    return standing_rules(network, switch, plan.down).union(planned, crossing, metered, leaving)


def used_heads(network: Network, switch: Switch, down: frozenset[str], found: PlanAggregates) -> frozenset[str]:
    """Return where the circuits lead that anything may leave by: those that are up, and one that somebody is behind."""
    heads = _default_heads(network, switch, down)
    if not down:
        return heads
    begun = {share.hop.head for share in found.begun.get(switch.name, ())}
    crossed = (way.path for way in found.crossing.get(switch.name, NO_AGGREGATES).values())
    return heads | begun | {path[path.index(switch.name) + 1] for path in crossed}


@lru_cache(maxsize=1024)
def _default_heads(network: Network, switch: Switch, down: frozenset[str]) -> frozenset[str]:
    """Return where the circuits lead that are up, or by which what is not planned leaves."""
    heads = {head for head, link in circuit_ports(network, switch.name) if link.circuit not in down}
    return frozenset(
        heads | {default_path(network, switch.name, h.name, down)[1] for h in remote_hosts(network, switch)}
    )


# ---- who it is from, and for whom: the same under every plan, but for the circuits that are down ----


@lru_cache(maxsize=1024)  # nearly all rules: an announcement costs no more than what it changes
def standing_rules(network: Network, switch: Switch, down: frozenset[str]) -> frozenset[Rule]:
    """Return the rules of the first three tables."""
    return frozenset((*_arrive(network, switch), *_source(network, switch), *_target(network, switch, down)))


def make_ready(network: Network, switch: Switch, down: frozenset[str], circuits: Collection[str]) -> None:
    """Work out what a switch holds under any plan in which one circuit more is down: it is kept for when one dies.

    Args:
        network: where.
        switch: which.
        down: the circuits that are down now.
        circuits: those that can be gone round.
    """
    leaving = {link.circuit for _, link in circuit_ports(network, switch.name)}
    at_risk = leaving.intersection(circuits) - down
    if len(network.hosts) * len(at_risk) > MOST_READY:
        return
    for circuit in sorted(filter(None, at_risk)):
        standing_rules(network, switch, down | {circuit})
        _default_heads(network, switch, down | {circuit})
        by_port(network, switch, down | {circuit})


def _arrive(network: Network, switch: Switch) -> Iterator[Rule]:
    """Yield the rules that say whether a packet has come by a circuit, and from a site that is not ours.

    What is on a circuit's port and not in its VLAN ends here, and so do anybody else's tagged frames: what a host has
    tagged itself would leave with two tags, and cost the circuit more than was counted.
    """
    links = [link for _, link in circuit_ports(network, switch.name)]
    edges = far_edges(network, switch.name)
    for link in links:
        from_far = (metadata.from_far(),) if link.port_no in edges else ()
        by_circuit = metadata.joined(metadata.came_by(metadata.CIRCUIT), *from_far)
        port: Fields = {"in_port": link.port_no}
        if link.vlan_vid is None:
            yield goes_on(ARRIVE_TABLE, CLASS_PRIORITY, port, by_circuit)
            continue
        tagged = port | {"vlan_vid": link.vlan_vid | _TAG_PRESENT}
        yield goes_on(ARRIVE_TABLE, TAGGED_PRIORITY, tagged, by_circuit, pop_vlan=True)
        yield ends(ARRIVE_TABLE, WRONG_TAG_PRIORITY, port)
    if any(link.vlan_vid is not None for link in links):
        yield ends(ARRIVE_TABLE, WRONG_TAG_PRIORITY, {"vlan_vid": (_TAG_PRESENT, _TAG_PRESENT)})
    for ether_type in (*ip_types(network), ARP):
        yield goes_on(ARRIVE_TABLE, ANYBODY_PRIORITY, {"eth_type": ether_type})


def _source(network: Network, switch: Switch) -> Iterator[Rule]:
    """Yield the rules that say who a packet is from, and end ARP in a known host's name from where the host is not.

    Hosts beyond are known where circuits to several switches meet: only there may what crosses be led another way.
    """
    numbers = metadata.host_numbers(network)
    here, by_circuit = (metadata.joined(metadata.came_by(where)) for where in (metadata.HERE, metadata.CIRCUIT))
    is_crossed = len({network.against(switch.name, head).tail for head, _ in circuit_ports(network, switch.name)}) > 1
    for host, prefix in ((known, prefix) for known in network.hosts for prefix in known.prefixes):
        its_number = metadata.joined(metadata.source(numbers[host.name]))
        if is_local(network, switch, host.name):
            port: Fields = {"in_port": network.link(switch.name, host.name).port_no}
            yield goes_on(SOURCE_TABLE, KNOWN_PRIORITY, sent_by(prefix) | port, its_number)
            for named in named_by(prefix):
                yield goes_on(SOURCE_TABLE, OWN_NAME_PRIORITY, named | port, its_number)
        elif is_crossed:
            yield goes_on(SOURCE_TABLE, KNOWN_PRIORITY, sent_by(prefix) | {"metadata": by_circuit}, its_number)
            for named in named_by(prefix):
                yield goes_on(SOURCE_TABLE, OWN_NAME_PRIORITY, named | {"metadata": by_circuit}, its_number)
    for is_here, where in ((True, {}), (False, {"metadata": here})):
        hosts = (host for host in network.hosts if is_local(network, switch, host.name) is is_here)
        for prefix in joined_prefixes(prefix for host in hosts for prefix in host.prefixes):
            for named in named_by(prefix):
                yield ends(SOURCE_TABLE, NAMED_PRIORITY, named | where)
    yield goes_on(SOURCE_TABLE, ANYBODY_PRIORITY, {})


def _target(network: Network, switch: Switch, down: frozenset[str]) -> Iterator[Rule]:
    """Yield the rules that say who IP and ARP are for; anything else ends here.

    To a host of the site itself they leave, to one beyond they go on, by the default way if nothing else is planned.
    What a site that is not ours sends for itself, as a bridge there may, ends: another circuit would give it back.
    """
    numbers = metadata.host_numbers(network)
    edges = far_edges(network, switch.name)
    for host in network.hosts:
        head = default_path(network, switch.name, host.name, down)[1]
        port_no = network.link(switch.name, head).port_no
        is_here = is_local(network, switch, host.name)  # maybe at the bridge's own port, whose number fits no bits
        towards = () if is_here else (metadata.target(numbers[host.name]), metadata.leaves_by(port_no))
        for prefix in host.prefixes:
            for fields in sent_to(prefix):
                yield _passed_to(is_here, KNOWN_PRIORITY, fields, metadata.joined(*towards), port_no)
            for fields in seeking(prefix):
                bits = metadata.joined(*towards, metadata.seeks())
                yield _passed_to(is_here, SEEKING_PRIORITY, fields, bits, port_no)
        for in_port in (in_port for in_port, edge in edges.items() if network.graph.has_edge(edge, host.name)):
            for fields in (fields for prefix in host.prefixes for fields in (*sent_to(prefix), *seeking(prefix))):
                yield ends(TARGET_TABLE, OWN_PRIORITY, fields | {"in_port": in_port})


def _passed_to(is_here: bool, priority: int, fields: Fields, towards: Bits, port_no: int) -> Rule:
    """Return the rule that sends packets out to a host of the site, or on to the next table if it is beyond."""
    if is_here:
        return Rule(TARGET_TABLE, priority, match(fields), COOKIE, output_port=port_no)
    return goes_on(TARGET_TABLE, priority, fields, towards)


# ---- what is planned: ``flow_table.py`` has what begins here ----


def sender_rules(network: Network, switch: Switch, known: Iterable[PolicedSender]) -> Iterator[Rule]:
    """Yield the rules by which what is planned from a host in a class by a circuit meets its meter.

    That of two hosts goes before that of all: while the one replaces the other both are there.
    """
    numbers = metadata.host_numbers(network)
    for sender in known:
        host, flow_class, head, target = sender.key
        bits = [
            metadata.came_by(metadata.HERE),
            metadata.source(numbers[host]),
            metadata.of_class(flow_class),
            metadata.leaves_by(network.link(switch.name, head).port_no),
        ]
        bits += [metadata.target(numbers[target])] if target else []
        fields: Fields = {"metadata": metadata.joined(*bits)}
        priority = PAIR_PRIORITY if target else SENDER_PRIORITY
        yield goes_on(SENDER_TABLE, priority, fields, meter_id=sender.meter_id)


def crossing_rules(
    network: Network, switch: Switch, ways: AggregateWays, policy: Policy, down: frozenset[str]
) -> Iterator[Rule]:
    """Yield the rules for what another edge has sent on and is for yet another by another way than the default one.

    It has its class's mark, and is led by both its ends. ARP has no mark: it goes as it has come, by the way of what
    stands for the pair. So does all that comes to the first switch of ours from a site that is not: no mark counts.
    """
    numbers = metadata.host_numbers(network)
    by_circuit = metadata.came_by(metadata.CIRCUIT)
    of_pair: dict[Pair, dict[Treated, Path]] = {}
    for (source, target, mark), (flow_class, path, *_) in ways.items():
        treated = Treated(mark, flow_class, Hop(switch.name, path[path.index(switch.name) + 1]))
        of_pair.setdefault((source, target), {})[treated] = path
    for (source, target), path_of in of_pair.items():
        pair = metadata.source(numbers[source]), metadata.target(numbers[target])
        sought = stands_for(frozenset(path_of), policy)
        if _is_from_far(network, switch, path_of[sought]):
            whole: Fields = {"metadata": metadata.joined(metadata.from_far(), *pair)}
            yield _led(network, FAR_PAIR_PRIORITY, whole, sought, metadata.came_by(metadata.HERE))
            continue
        default = default_path(network, source, target, down)
        ends = metadata.joined(by_circuit, *pair)
        led: dict[FlowClass, Treated] = {}
        for treated, path in path_of.items():
            if path != default:
                led.setdefault(treated.flow_class, treated)
        for treated in led.values():
            for fields in marked(network, policy.classes[treated.flow_class].dscp):
                yield _led(network, LED_PRIORITY, fields | {"metadata": ends}, treated)
        if path_of[sought] != default:
            yield _led(network, LED_PRIORITY, {"eth_type": ARP, "metadata": ends}, sought)


def _is_from_far(network: Network, switch: Switch, path: Path) -> bool:
    """Return whether a path comes to a switch from a site that is not ours."""
    before = [node for node in path[: path.index(switch.name)] if node in network.edge_sites]
    return not network.is_ours(before[-1])


def _led(network: Network, priority: int, fields: Fields, treated: Treated, *more: Bits) -> Rule:
    """Return the rule by which packets have the class and the way of their pair."""
    way = metadata.of_class(treated.flow_class), metadata.leaves_by(network.link(*treated.hop).port_no)
    return goes_on(FLOW_TABLE, priority, fields, metadata.joined(*way, *more))


# ---- by a circuit ----


def leave_rules(network: Network, switch: Switch, policy: Policy, heads: Collection[str]) -> Iterator[Rule]:
    """Yield the rules that send packets by the circuits: those from here with their class's mark, under its meter.

    What another edge has sent on has its class's mark already; whatever nobody has planned is unplanned. What comes
    from a site that is not ours, and goes on by a circuit, is policed as from here: nobody else has done so.
    """
    unplanned = metadata.of_class(FlowClass.UNPLANNED)
    yield goes_on(FLOW_TABLE, ANYBODY_PRIORITY, {}, metadata.joined(unplanned))
    if far_edges(network, switch.name):
        far: Fields = {"metadata": metadata.joined(metadata.from_far())}
        yield goes_on(FLOW_TABLE, FAR_PRIORITY, far, metadata.joined(unplanned, metadata.came_by(metadata.HERE)))
    yield stranger_rule()
    yield goes_on(SENDER_TABLE, ANYBODY_PRIORITY, {})
    by_circuit = metadata.joined(metadata.came_by(metadata.CIRCUIT))
    for flow_class in QUEUE_ID:
        if flow_class is FlowClass.UNPLANNED:
            continue
        for its_mark in marked(network, policy.classes[flow_class].dscp):
            crosses = its_mark | {"metadata": by_circuit}
            yield goes_on(FLOW_TABLE, CLASS_PRIORITY, crosses, metadata.joined(metadata.of_class(flow_class)))
    for head, link in circuit_ports(network, switch.name):
        if head not in heads:
            continue
        hop = Hop(switch.name, head)
        for flow_class, queue_id in QUEUE_ID.items():
            way = metadata.leaves_by(link.port_no), metadata.of_class(flow_class)
            meter, dscp = meter_id(network, hop, flow_class), policy.classes[flow_class].dscp
            for where in (metadata.HERE, metadata.CIRCUIT):
                bits = metadata.joined(metadata.came_by(where), *way)
                for ether_type in (*ip_types(network), ARP):
                    fields = match({"metadata": bits, "eth_type": ether_type})
                    rule = Rule(LEAVE_TABLE, KNOWN_PRIORITY, fields, COOKIE, queue_id=queue_id)
                    if where == metadata.HERE:
                        rule = replace(rule, meter_id=meter, dscp=None if ether_type == ARP else dscp)
                    yield _sends(network, hop, rule, protected=ether_type == ARP or flow_class in policy.protected)


def _sends(network: Network, hop: Hop, rule: Rule, *, protected: bool) -> Rule:
    """Return a rule that sends packets over a hop; over what is beside it, if they are protected and it is dead."""
    if protected and links_beside(network, hop):
        return replace(rule, group_id=group_id(network, hop))
    link = network.link(*hop)
    return replace(rule, push_vlan=link.vlan_vid is not None, vlan_vid=link.vlan_vid, output_port=link.port_no)
