"""What looks at what a link has, and not at all there is, is what looking at all there is gives."""

from dataclasses import replace
from ipaddress import IPv4Address

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.plan import members as members_module
from controller.plan import paths, planning, ports
from controller.plan.answers import answers
from controller.plan.flows import flow_on
from controller.plan.interfaces import interface_parts, within_interfaces
from controller.plan.keys import ClassShare
from controller.plan.plan import LEAST_TOLD_BPS, Flow, LinkPlan, Plan, PlanInput, entry, standing_in
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.reservations import Constraints
from controller.plan.shares import class_shares, max_min
from controller.plan.tests.factories import any_network, demands_in
from mininet_tests.testing.drawn import tangles
from topology.network import Hop, Host, Link, Network, Switch
from topology.protocol import FlowClass
from topology.wire import PPM, Framing, Layer, answers_ppm, converted_bps


def flow_by_flow(epoch, network, policy, demand):
    """The plan as it was made at first: every link looks at all flows."""
    standing = (within_interfaces(standing_in(f, network, policy), network) for f in demand.flows)
    flows = sorted(standing, key=lambda f: f.name)
    carriers = answers(flows, policy)
    hops = [Hop(tail, head) for tail, head, _ in network.circuit_links]
    links, parts = {}, {}
    for hop in hops:
        framing, back = network.framing_of(hop), answers_of(network, hop, policy, flows, carriers)
        links[hop] = limits_of(network, hop, policy, replace(demand, flows=tuple(flows)), back)
        for flow_class, limits in links[hop].classes.items():
            members = [f for f in flows if f.flow_class is flow_class and hop in f.links]
            answers_bps = converted_bps(back.get(flow_class, 0), Layer.WIRE, Layer.FRAME, framing)
            divided = members_module.divided(limits.meter_bps, answers_bps, members, framing)
            for flow, bps in zip(members, divided, strict=True):
                parts[flow.name] = min(bps, parts.get(flow.name, bps))
    given = held_by_interfaces(network, policy, flows, parts)
    entries = (entry(flow, given.get(flow.name, 0), network, policy) for flow in flows)
    return Plan(epoch, links, tuple(e for e in entries if e.payload_bps >= LEAST_TOLD_BPS), demand.down)


def held_by_interfaces(network, policy, flows, parts):
    """What flows get after each link that a host is at has looked at all of them."""
    given = dict(parts)
    for tail, head, link in network.links():
        hop, framing = Hop(tail, head), network.framing_of((tail, head))
        members = [(f, parts.get(f.name, 0)) for f in flows if hop in f.links]
        total_bps = converted_bps(link.rate_bps, Layer.WIRE, Layer.FRAME, framing)
        if not members or not {tail, head} & network.host_names or sum(bps for _, bps in members) <= total_bps:
            continue
        for (flow, _), bps in zip(members, interface_parts(total_bps, policy, members, framing), strict=True):
            given[flow.name] = min(bps, given.get(flow.name, bps))
    return given


def answers_of(network, hop, policy, flows, carriers):
    """What answers may come to take of a link, by the class in which they cross it; each class of data by itself."""
    found, back = {}, network.against(*hop)
    for carrier_class in policy.classes:
        of_class = [f for f in flows if carriers[f.host, f.target].flow_class is carrier_class]
        there = [f for f in of_class if hop in carriers[f.host, f.target].links]
        ways = {f.name: (back if back in f.links else f.links[1], f.flow_class) for f in there}
        data_bps = 0
        for data_hop, data_class in {*ways.values()}:
            left_ppm = PPM - sum(policy.classes[c].guarantee_ppm for c in policy.classes if c is not data_class)
            most_bps = network.link(*data_hop).rate_bps * min(policy.classes[data_class].cap_ppm, left_ppm) // PPM
            senders = [f for f in there if ways[f.name] == (data_hop, data_class)]
            any_of_all = any(f.wanted_bps is None or f.standby_bps or f.is_away for f in senders)
            wants_bps = most_bps if any_of_all else sum(max(f.wanted_bps, f.floor_bps) for f in senders)
            data_bps += min(most_bps, wants_bps)
        if there:
            found[carrier_class] = data_bps * answers_ppm(network.framing_of(hop)) // PPM
    return found


def limits_of(network, hop, policy, demand, answers_bps):
    """The limits of a link that looks at all flows, and beside them at what answers may come to take."""
    capacity_bps = demand.capacity_bps.get(hop, network.link(*hop).rate_bps)
    wanted = dict.fromkeys(policy.classes, 0) | answers_bps
    spare = {*answers_bps, *(f.flow_class for f in demand.flows if f.is_away and hop in f.links)}
    for flow in demand.flows:
        if hop in flow.links:
            wanted[flow.flow_class] += capacity_bps if flow.wanted_bps is None else max(flow.wanted_bps, flow.floor_bps)
    reserved = {c: demand.reserved_bps.get(ClassShare(hop, c), 0) for c in policy.classes}
    shares = class_shares(capacity_bps, policy, wanted, reserved, spare)
    framing = network.framing_of(hop)
    return LinkPlan(
        wire_bps=capacity_bps,
        circuit_bps=converted_bps(capacity_bps, Layer.WIRE, Layer.FRAME, framing),
        classes={c: planning._limits(wire_bps, framing) for c, wire_bps in shares.items()},
    )


@st.composite
def demands(draw, network):
    """Any demand, of flows that want, are promised and stand by at any rates, some of absent hosts."""
    whole = draw(demands_in(network))
    rates = st.integers(0, 10**10)
    flows = [
        replace(
            one,
            wanted_bps=draw(st.none() | rates),
            floor_bps=draw(st.just(0) | rates),
            standby_bps=draw(st.just(0) | rates),
            is_away=draw(st.booleans()),
        )
        for one in whole.flows
    ]
    return PlanInput(tuple(flows), whole.capacity_bps, whole.reserved_bps)


@given(st.data())
def test_a_plan_that_looks_at_each_flow_where_it_goes_is_the_one_that_looks_at_all_everywhere(data):
    network = data.draw(any_network)
    demand = data.draw(demands(network))
    plan = planned(2, network, DEFAULT_POLICY, demand)
    assert plan == flow_by_flow(2, network, DEFAULT_POLICY, demand)
    for host in network.hosts:
        assert plan.of_host(host.name) == tuple(e for e in plan.entries if e.flow.machine == host.name)


def by_halves(total, floors, caps):
    """The max-min division as it was found at first: the level by halving what is left of the total."""
    if sum(floors) > total:
        floors, caps = [0] * len(floors), floors

    def at(level):
        return [min(max(level, floor), cap) for floor, cap in zip(floors, caps, strict=True)]

    low, high = 0, total + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if sum(at(middle)) <= total else (low, middle)
    parts, next_parts = at(low), at(low + 1)
    for i, more in enumerate(next_parts):
        if sum(parts) < total:
            parts[i] = more
    return parts


amounts = st.integers(0, 12) | st.integers(0, 10**11)
between = st.tuples(amounts, amounts).map(sorted)


@given(amounts, st.lists(between, max_size=8))
def test_a_division_along_its_sorted_bounds_is_the_one_by_halves(total, bounds):
    floors, caps = [floor for floor, _ in bounds], [cap for _, cap in bounds]
    assert max_min(total, floors, caps) == by_halves(total, floors, caps)


def link_by_link(plan, network, paced):
    """The look at starts as it was at first: every link looks at all entries."""
    switches, found = {switch.name for switch in network.switches}, []
    for tail, head, _ in network.links():
        hop = Hop(tail, head)
        crossing = [e for e in plan.entries if hop in e.flow.links]
        if tail in switches and crossing:
            found.append(ports._Port(plan, network, hop).burst(crossing, paced))
    return tuple(found)


@given(st.data())
def test_a_look_at_starts_that_goes_along_flows_finds_what_one_over_all_links_finds(data):
    network = data.draw(any_network)
    plan = planned(2, network, DEFAULT_POLICY, data.draw(demands(network)))
    paced = data.draw(st.sets(st.sampled_from([h.name for h in network.hosts])))
    assert ports.port_bursts(plan, network, paced) == link_by_link(plan, network, paced)


def allowed_among_all(network, source, target, constraints):
    """The links that a path may take, as they were found at first: by a look at all there are."""
    gone = ({host.name for host in network.hosts} - {source, target}) | set(constraints.exclude)
    graph = nx.DiGraph()
    for tail, head, link in network.links():
        if tail not in gone and head not in gone and link.circuit not in gone:
            graph.add_edge(tail, head, delay_us=link.delay_us + 1)
    return graph


@given(st.data(), tangles())
def test_paths_are_sought_among_the_same_links_without_a_look_at_all_hosts(data, network):
    names = st.sampled_from([*network.graph, *(circuit.name for circuit in network.circuits)])
    nodes = st.sampled_from([*network.graph])
    asked = data.draw(nodes), data.draw(nodes), Constraints(exclude=tuple(data.draw(st.lists(names, max_size=2))))
    allowed = paths._allowed(network, *asked)
    assert nx.to_dict_of_dicts(allowed) == nx.to_dict_of_dicts(allowed_among_all(network, *asked))
    found = paths.candidates(network, *asked)
    with pytest.MonkeyPatch.context() as before:
        before.setattr(paths, "_allowed", allowed_among_all)
        assert found == paths.candidates.__wrapped__(network, *asked)


@pytest.fixture
def looked_at(monkeypatch):
    """How often somebody asks by which links a flow goes, as a list of their names."""
    asked, links = [], Flow.links.fget
    monkeypatch.setattr(Flow, "links", property(lambda flow: asked.append(flow.name) or links(flow)))
    return asked


def pairs(count):
    """So many circuits, each with two sites and a host of its own at either; and a flow on each."""

    def link(circuit=None):
        return Link(10**9, 100, 10**6, 1, "p", circuit)

    ends = [f"{end}{n}" for n in range(count) for end in "az"]
    hosts = [Host(f"h-{end}", end, IPv4Address(n + 1), "") for n, end in enumerate(ends)]
    network = Network("pairs", Framing(), (*hosts, *(Switch(end, end, n) for n, end in enumerate(ends))))
    for n in range(count):
        network.add_trunk(f"a{n}", f"z{n}", link(f"c{n}"), link(f"c{n}"))
    for end in ends:
        network.add_trunk(f"h-{end}", end, link(), link())
    ways = [network.path(f"h-a{n}", f"h-z{n}") for n in range(count)]
    return network, tuple(flow_on(network, f"f/{n}", FlowClass.URGENT, way) for n, way in enumerate(ways))


def test_twice_as_many_circuits_and_flows_are_twice_as_many_looks_at_their_links(looked_at):
    counts = []
    for size in (20, 40):
        network, flows = pairs(size)
        looked_at.clear()
        plan = planned(2, network, DEFAULT_POLICY, PlanInput(flows))
        assert len(ports.port_bursts(plan, network, ())) == 2 * size
        counts.append(len(looked_at))
    assert counts[1] == 2 * counts[0]
