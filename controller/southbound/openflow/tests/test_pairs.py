"""Every pair's own meter: its allocation fits, and together they are its class's."""

from collections import defaultdict

import pytest
from hypothesis import given, settings

from controller.plan.plan import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import DATABASE, IMAGE, RAW_IMAGES, plan_of
from controller.plan.tests.ring import RING, any_demand
from controller.southbound.openflow.desired import switch_state
from controller.southbound.openflow.pairs import pairs
from controller.southbound.openflow.state import METER_IDS
from topology.named import chile_illinois
from topology.network import Hop
from topology.protocol import FlowClass
from topology.wire import answers_ppm

NETWORK = chile_illinois()
CHILE, ILLINOIS = NETWORK.switches


def rates_bps(switch, *flows):
    """What the meter of each pair at a switch lets through, by the two hosts."""
    return {(p.near.name, p.far.name): p.frame_bps for p in pairs(NETWORK, switch, plan_of(*flows))}


def test_each_of_two_senders_in_a_class_has_a_meter_of_its_allocation_and_no_more():
    plan = plan_of(*IMAGE)
    found = rates_bps(CHILE, *IMAGE)
    for entry in plan.entries:
        assert entry.frame_bps <= found[entry.flow.host, "arch"] < entry.frame_bps + 1000


def test_pairs_that_only_answer_share_what_their_class_has_on_the_way_back():
    limits = plan_of(*IMAGE).links[Hop("ch1", "ls1")].classes[FlowClass.URGENT]
    found = rates_bps(ILLINOIS, *IMAGE)
    assert found["arch", "base20"] == found["arch", "base21"]
    assert limits.meter_bps - 2000 < found["arch", "base20"] + found["arch", "base21"] < limits.meter_bps + 2000


def test_a_pair_with_others_in_its_class_may_send_less_at_once_than_one_alone():
    both, one = (switch_state(NETWORK, CHILE, plan_of(*flows), DEFAULT_POLICY) for flows in (IMAGE, IMAGE[:1]))
    (number,) = (p.meter_id for p in pairs(NETWORK, CHILE, plan_of()) if p.near.name == "base20")
    at_once_s = [m.burst_kbit / m.rate_kbps for s in (both, one) for m in s.meters if m.meter_id == number]
    assert at_once_s == pytest.approx([0.02, 0.5], rel=0.001)


def test_a_pair_that_nobody_has_planned_has_what_is_unplanned():
    limits = plan_of(DATABASE).links[Hop("ls1", "ch1")].classes[FlowClass.UNPLANNED]
    assert rates_bps(CHILE, DATABASE)["base20", "arch"] == limits.meter_bps


def test_a_pair_s_meter_has_the_same_number_whatever_the_plan():
    states = [switch_state(NETWORK, CHILE, plan_of(*flows), DEFAULT_POLICY) for flows in ((RAW_IMAGES,), IMAGE, ())]
    assert len({frozenset(m.meter_id for m in s.meters) for s in states}) == 1
    assert len({frozenset(r.key for r in s.rules) for s in states}) == 1


@settings(deadline=None)  # four switches
@given(any_demand())
def test_no_allocation_exceeds_its_pair_s_meter_and_together_they_are_no_more_than_their_class_s(demand):
    plan = planned(2, RING, DEFAULT_POLICY, demand)
    allocated = {(e.flow.host, e.flow.target): e.frame_bps for e in plan.entries}
    ppm = answers_ppm(RING.framing)
    for switch in RING.switches:
        known = pairs(RING, switch, plan)
        assert {p.meter_id for p in known} <= set(METER_IDS)
        assert len({p.meter_id for p in known}) == len(known)
        together, needed, count = defaultdict(int), defaultdict(int), defaultdict(int)
        for pair in known:
            ends = pair.near.name, pair.far.name
            need_bps = allocated.get(ends, 0) + -(-allocated.get(ends[::-1], 0) * ppm // 1_000_000)
            assert pair.frame_bps >= need_bps
            where = pair.hop, pair.flow_class
            together[where] += pair.frame_bps
            needed[where] += need_bps
            count[where] += 1
        for (link, flow_class), sum_bps in together.items():
            class_bps = plan.links[link].classes[flow_class].meter_bps
            if flow_class is not FlowClass.UNPLANNED:
                assert sum_bps < max(class_bps, needed[link, flow_class]) + 1000 * count[link, flow_class]
