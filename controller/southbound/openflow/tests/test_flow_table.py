"""The rules of what is planned between many hosts: a switch does with each packet what its pair's own cell says."""

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.plan.flows import flow_on
from controller.plan.plan import PlanInput
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.southbound.openflow.circuit_ports import QUEUE_ID, meter_id
from controller.southbound.openflow.desired import switch_state
from controller.southbound.openflow.flow_table import FlowTable, flow_rules
from controller.southbound.openflow.meter_numbers import MeterNumbers
from controller.southbound.openflow.rule_parts import FLOW_TABLE, SENDER_TABLE
from controller.southbound.openflow.rules import leave_rules, standing_rules
from controller.southbound.openflow.senders import senders
from controller.southbound.openflow.shared import NOTHING, Treated
from controller.southbound.openflow.tests.fake_switch import FakeSwitch
from controller.southbound.openflow.tests.test_desired import many
from topology.network import Hop
from topology.protocol import FlowClass

NETWORK = many(5)
SWITCH = NETWORK.switches[0]
WIDE, UP, MARK = Hop("s0", "s1"), frozenset[str](), 0b000111
REST = Treated(None, FlowClass.URGENT, WIDE)
MARKED = Treated(MARK, FlowClass.BACKGROUND, WIDE)
HERE, THERE = ([h.name for h in NETWORK.hosts if h.site == site] for site in ("here", "there"))
treatments = st.sampled_from([NOTHING, frozenset({REST}), frozenset({MARKED}), frozenset({REST, MARKED})])


@st.composite
def changes(draw):
    """What becomes of the packets of some pairs, often of all of a host."""
    sources = draw(st.lists(st.sampled_from(HERE), unique=True) | st.just(HERE))
    targets = draw(st.lists(st.sampled_from(THERE), unique=True) | st.just(THERE))
    treatment = draw(treatments)
    return {(source, target): treatment for source in sources for target in targets}


def packet(source, target, dscp):
    """An IP packet between two hosts, or from an address nobody knows."""
    addresses = {h.name: str(h.ip) for h in NETWORK.hosts}
    port = NETWORK.link("s0", source).port_no if source in addresses else 99
    ends = {"ipv4_src": addresses.get(source, source), "ipv4_dst": addresses[target]}
    return {"in_port": port, "eth_type": 0x0800, "ip_dscp": dscp} | ends


def asks(source, target):
    """A packet by which a host looks for another."""
    addresses = {h.name: str(h.ip) for h in NETWORK.hosts}
    ends = {"arp_spa": addresses[source], "arp_tpa": addresses[target]}
    return {"in_port": NETWORK.link("s0", source).port_no, "eth_type": 0x0806} | ends


@settings(deadline=None)
@given(st.lists(changes(), min_size=1, max_size=4))
def test_rules_followed_change_by_change_are_those_made_whole_and_do_what_each_pair_s_cell_says(steps):
    table, cells, rules = FlowTable(SWITCH, DEFAULT_POLICY), {}, frozenset()
    for changed in steps:
        cells |= changed
        rules = table.followed(NETWORK, UP, changed)
        assert rules == flow_rules(NETWORK, SWITCH, UP, {p: t for p, t in cells.items() if t}, DEFAULT_POLICY)
    assert table.followed(NETWORK, UP, {}) is rules
    heads = frozenset({"s1"})
    fake = FakeSwitch(
        rules.union(standing_rules(NETWORK, SWITCH, UP), leave_rules(NETWORK, SWITCH, DEFAULT_POLICY, heads))
    )
    for source in HERE:
        for target in THERE:
            by_mark = {treated.mark: QUEUE_ID[treated.flow_class] for treated in cells.get((source, target), NOTHING)}
            rest, unplanned = by_mark.get(None, 0), QUEUE_ID[FlowClass.UNPLANNED]
            assert fake.fate(packet(source, target, 0)).queue_id == by_mark.get(None, unplanned)
            assert fake.fate(packet(source, target, MARK)).queue_id == by_mark.get(MARK, rest)
            assert fake.fate(asks(source, target)).queue_id == by_mark.get(None, by_mark.get(MARK, unplanned))
            assert fake.fate(packet("10.9.9.9", target, MARK)).queue_id == unplanned


def all_to_all(count, flow_class=FlowClass.URGENT):
    """Two sites of which each host sends to each of the other's, and the plan for it."""
    network = many(count)
    pairs = ((f"here{a}", f"there{z}") for a in range(count) for z in range(count))
    flows = tuple(flow_on(network, f"{a}-{z}", flow_class, network.path(a, z)) for a, z in pairs)
    return network, planned(2, network, DEFAULT_POLICY, PlanInput(flows))


def test_sixty_hosts_that_send_to_sixty_take_a_rule_and_sixty_meters():
    network, plan = all_to_all(60)
    assert len(plan.entries) == 3600
    for switch in network.switches:
        state = switch_state(network, switch, plan, DEFAULT_POLICY)
        assert len(state.meters) == 60 + 4
        none = switch_state(network, switch, planned(2, network, DEFAULT_POLICY, PlanInput(())), DEFAULT_POLICY)
        assert len(state.rules - none.rules) == 1 + 60  # what all have in common, and whose meter is whose


def test_one_pair_more_among_many_that_send_alike_is_a_rule_or_two():
    network, plan = all_to_all(20)
    path = network.path("here3", "there4")
    more = flow_on(network, "more", FlowClass.BACKGROUND, path)
    flows = tuple(e.flow for e in plan.entries if (e.flow.host, e.flow.target) != ("here3", "there4"))
    other = planned(4, network, DEFAULT_POLICY, PlanInput((*flows, more)))
    before, after = (switch_state(network, network.switches[0], one, DEFAULT_POLICY) for one in (plan, other))
    # the pair's, and that of the meter which its host has in the other class
    assert [rule.table_id for rule in sorted(after.rules ^ before.rules, key=str)] == [FLOW_TABLE, SENDER_TABLE]


def test_a_host_that_sends_to_many_has_one_meter_and_its_class_s_after_it():
    network, plan = all_to_all(20)
    switch = network.switches[0]
    state = switch_state(network, switch, plan, DEFAULT_POLICY)
    fake = FakeSwitch(state.rules, state.meters)
    known = {s.key.host: s for s in senders(network, switch, plan, DEFAULT_POLICY, MeterNumbers())}
    addresses = {h.name: str(h.ip) for h in network.hosts}
    for target in ("there0", "there19"):
        fields = {"in_port": 13, "eth_type": 0x0800, "ipv4_src": addresses["here3"], "ipv4_dst": addresses[target]}
        own, of_class = fake.fate(fields | {"ip_dscp": 0}).meter_ids
        assert (own, of_class) == (known["here3"].meter_id, meter_id(network, ("s0", "s1"), FlowClass.URGENT))
    assert sum(e.frame_bps for e in plan.of_host("here3")) <= known["here3"].frame_bps
