"""Every lane's own meter: its allocation fits, and together they are its class's; and the numbers these meters have."""

import doctest
from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.plan.plan import THE_REST, PlanInput, Selector
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import DATABASE, IMAGE, RAW_IMAGES, flow, plan_of
from controller.plan.tests.ring import RING, any_demand
from controller.southbound.errors import MetersExhausted
from controller.southbound.openflow import metadata, meter_numbers
from controller.southbound.openflow.desired import lowered, switch_state
from controller.southbound.openflow.lanes import lanes
from controller.southbound.openflow.messages import messages
from controller.southbound.openflow.meter_numbers import LANE_METER_IDS, MeterNumbers, numbered
from controller.southbound.openflow.rules import FLOW_TABLE
from controller.southbound.openflow.state import METER_IDS, SwitchState
from mininet_tests.testing.networks import chile_illinois
from topology.network import Hop
from topology.protocol import FlowClass
from topology.wire import answers_ppm

NETWORK = chile_illinois()
CHILE, ILLINOIS = NETWORK.switches
MARKED = replace(flow(FlowClass.BACKGROUND, "base20"), name="marked", selector=Selector(dest_port=873), mark=0b000111)


def lanes_of(switch, *flows):
    """What is planned at a switch for these flows, by the two hosts and the mark."""
    found = lanes(NETWORK, switch, plan_of(*flows), DEFAULT_POLICY, MeterNumbers())
    return {(lane.near.name, lane.far.name, lane.mark): lane for lane in found}


@pytest.mark.parametrize("module", [meter_numbers, metadata], ids=lambda module: module.__name__)
def test_examples_in_the_docstrings_are_true(module):
    found = doctest.testmod(module)
    assert (found.failed, found.attempted > 0) == (0, True)


def test_each_of_two_senders_in_a_class_has_a_meter_of_its_allocation_and_no_more():
    plan = plan_of(*IMAGE)
    found = lanes_of(CHILE, *IMAGE)
    for entry in plan.entries:
        assert entry.frame_bps <= found[entry.flow.host, "arch", None].frame_bps < entry.frame_bps + 1000


def test_lanes_that_only_answer_share_what_their_class_has_on_the_way_back():
    limits = plan_of(*IMAGE).links[Hop("ch1", "ls1")].classes[FlowClass.URGENT]
    one, other = (lanes_of(ILLINOIS, *IMAGE)["arch", host, None].frame_bps for host in ("base20", "base21"))
    assert one == other
    assert limits.meter_bps - 2000 < one + other < limits.meter_bps + 2000


def test_a_lane_with_others_in_its_class_may_send_less_at_once_than_one_alone():
    at_once_s = []
    for flows in (IMAGE, IMAGE[:1]):
        number = lanes_of(CHILE, *flows)["base20", "arch", None].meter_id
        meters = switch_state(NETWORK, CHILE, plan_of(*flows), DEFAULT_POLICY).meters
        at_once_s += [m.burst_kbit / m.rate_kbps for m in meters if m.meter_id == number]
    assert at_once_s == pytest.approx([0.02, 0.5], rel=0.001)


def test_nobody_has_a_meter_of_his_own_who_is_not_planned():
    assert lanes_of(CHILE).keys() == set()
    assert lanes_of(CHILE, DATABASE).keys() == {("base22", "arch", None)}


def test_two_classes_of_one_pair_have_a_lane_and_a_meter_each():
    found = lanes_of(CHILE, IMAGE[0], MARKED)
    rest, marked = found["base20", "arch", None], found["base20", "arch", MARKED.mark]
    assert (rest.flow_class, marked.flow_class) == (FlowClass.URGENT, FlowClass.BACKGROUND)
    assert rest.meter_id != marked.meter_id
    (answering,) = lanes_of(ILLINOIS, IMAGE[0], MARKED).values()
    assert (answering.flow_class, answering.mark) == (FlowClass.URGENT, None)  # nothing marks answers: all ride there


def test_a_lane_keeps_its_meter_while_others_come_and_go():
    numbers, seen = MeterNumbers(), set()
    for flows in ((RAW_IMAGES,), (RAW_IMAGES, *IMAGE), (DATABASE, RAW_IMAGES), (RAW_IMAGES, MARKED)):
        known = lanes(NETWORK, CHILE, plan_of(*flows), DEFAULT_POLICY, numbers)
        seen |= {lane.meter_id for lane in known if lane.near.name == "base23"}
    assert len(seen) == 1


names = st.sampled_from("abcdefgh")
places = st.dictionaries(st.tuples(names, names, st.none() | st.integers(0, 3)), st.integers(0, 10**6), max_size=40)


@given(st.lists(places, max_size=4))
def test_numbers_are_the_lane_s_own_and_kept(plans):
    before = {}
    for homes in plans:
        found = numbered("ls1", homes, before)
        assert found.keys() == homes.keys()
        assert len(set(found.values())) == len(found)
        assert set(found.values()) <= set(LANE_METER_IDS) <= set(METER_IDS)
        assert all(found[key] == before[key] for key in homes if key in before)
        assert not {found[key] for key in homes if key not in before} & set(before.values())
        before = found


def test_more_lanes_than_numbers_are_refused_in_words():
    most = len(LANE_METER_IDS)
    homes = {("a", str(n), None): n for n in range(most)}
    assert len(set(numbered("ls1", homes, {}).values())) == most
    with pytest.raises(MetersExhausted, match=r"ls1 would need 8,001 meters .* there are 8,000"):
        numbered("ls1", homes | {("a", "z", None): 0}, {})


def test_a_lane_that_comes_begins_at_its_own_rate_and_its_class_at_what_is_installed():
    before, after = (switch_state(NETWORK, CHILE, plan_of(*flows), DEFAULT_POLICY) for flows in ((), IMAGE))
    kbps = {m.meter_id: m.rate_kbps for m in after.meters}
    begun = {m.meter_id: m.rate_kbps for m in lowered(after, before).meters}
    own, of_class = {n for n in kbps if n >= LANE_METER_IDS.start}, {n for n in kbps if n < LANE_METER_IDS.start}
    assert len(own) == 2
    assert all(begun[n] == kbps[n] for n in own)
    installed = {m.meter_id: m.rate_kbps for m in before.meters}
    assert all(begun[n] <= installed[n] for n in of_class)


def test_what_comes_and_goes_with_a_plan_looks_at_nothing_that_a_cached_flow_has_not_been_looked_at_for():
    numbers = MeterNumbers()
    plans = [plan_of(), plan_of(*IMAGE), plan_of(IMAGE[0], MARKED), plan_of(MARKED, DATABASE)]
    states = [switch_state(NETWORK, CHILE, plan, DEFAULT_POLICY, numbers) for plan in plans]
    always = frozenset.intersection(*(frozenset(rule.key for rule in state.rules) for state in states))
    for state in states:
        for table_id, _, matched in {rule.key for rule in state.rules} - always:
            assert table_id == FLOW_TABLE
            assert {name for name, _ in matched} <= {"metadata", "eth_type", "ip_dscp"}


def test_an_announcement_changes_no_rule_but_its_own():
    numbers = MeterNumbers()
    before, after = (
        switch_state(NETWORK, CHILE, plan_of(*flows), DEFAULT_POLICY, numbers)
        for flows in ((DATABASE, RAW_IMAGES), (DATABASE, RAW_IMAGES, IMAGE[0], MARKED))
    )
    assert len(after.rules - before.rules) == 2
    assert before.rules < after.rules
    sent = messages(SwitchState(before.rules, before.meters), after)
    assert sum(type(message).__name__ == "DeleteMeter" for message in sent) == 2


@settings(deadline=None)  # four switches
@given(any_demand())
def test_no_allocation_exceeds_its_lane_s_meter_and_together_they_are_no_more_than_their_class_s(demand):
    plan = planned(2, RING, DEFAULT_POLICY, demand)
    allocated = {(e.flow.host, e.flow.target): e.frame_bps for e in plan.entries}
    ppm = answers_ppm(RING.framing)
    seen = set()
    for switch in RING.switches:
        known = lanes(RING, switch, plan, DEFAULT_POLICY, MeterNumbers())
        assert len({lane.meter_id for lane in known}) == len(known)
        together, needed, count = defaultdict(int), defaultdict(int), defaultdict(int)
        for lane in known:
            ends = lane.near.name, lane.far.name
            seen.add(ends)
            need_bps = allocated.get(ends, 0) + -(-allocated.get(ends[::-1], 0) * ppm // 1_000_000)
            assert lane.frame_bps >= need_bps
            where = lane.hop, lane.flow_class
            together[where] += lane.frame_bps
            needed[where] += need_bps
            count[where] += 1
        for (link, flow_class), sum_bps in together.items():
            class_bps = plan.links[link].classes[flow_class].meter_bps
            assert sum_bps < max(class_bps, needed[link, flow_class]) + 1000 * count[link, flow_class]
    assert seen == allocated.keys() | {ends[::-1] for ends in allocated}


@given(any_demand())
def test_each_lane_has_what_it_needs_and_an_equal_part_of_what_the_lanes_of_its_class_do_not(demand):
    plan = planned(2, RING, DEFAULT_POLICY, demand)
    needs_bps, ppm = defaultdict(int), answers_ppm(RING.framing)
    for e in plan.entries:
        rest = e.flow.selector == THE_REST
        needs_bps[e.flow.host, e.flow.target, None if rest else e.flow.mark] += e.frame_bps
        needs_bps[e.flow.target, e.flow.host, None] += -(-e.frame_bps * ppm // 1_000_000)
    for switch in RING.switches:
        known = lanes(RING, switch, plan, DEFAULT_POLICY, MeterNumbers())
        for lane in known:
            beside = [one for one in known if (one.hop, one.flow_class) == (lane.hop, lane.flow_class)]
            needed_bps = [needs_bps[one.key] for one in beside]
            class_bps = plan.links[lane.hop].classes[lane.flow_class].meter_bps
            own_bps = needs_bps[lane.key]
            rate_bps = own_bps + max(0, class_bps - sum(needed_bps)) // len(beside)
            assert lane.frame_bps == -(-rate_bps // 1000) * 1000
            assert lane.is_alone is (beside == [lane])


def test_a_demand_without_flows_has_no_lanes():
    plan = planned(2, RING, DEFAULT_POLICY, PlanInput(()))
    assert all(not lanes(RING, switch, plan, DEFAULT_POLICY, MeterNumbers()) for switch in RING.switches)
