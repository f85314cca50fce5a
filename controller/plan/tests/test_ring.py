"""The plan on a ring: every direction of every circuit by itself, flows by either way."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from controller.plan.invariant import violations
from controller.plan.plan import PlanInput
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.ring import LINKS, RATE_BPS, RING, any_demand, flow, layers, ways
from controller.plan.transitions import lesser_of
from topology.network import Hop
from topology.protocol import FlowClass
from topology.wire import Layer, converted_bps, cwnd_segments

URGENT, BACKGROUND, PREDICTABLE = FlowClass.URGENT, FlowClass.BACKGROUND, FlowClass.PREDICTABLE


def plan_for(*flows, **more):
    """The plan for some flows on the ring."""
    return planned(2, RING, DEFAULT_POLICY, PlanInput(flows, **more))


def frames(wire_bps):
    """A rate of the wire in frames."""
    return converted_bps(wire_bps, Layer.WIRE, Layer.FRAME, RING.framing)


@settings(deadline=None)  # a busy machine takes longer to draw than to plan
@given(any_demand())
def test_on_every_link_the_layers_hold_each_other_whatever_is_asked_promised_or_cut(demand):
    assert violations(layers(planned(2, RING, DEFAULT_POLICY, demand))) == ()


def test_a_flow_by_one_way_takes_nothing_from_a_flow_by_the_other():
    near, far = (flow(URGENT, "albu10", "live20", way=way) for way in (0, 1))
    other = flow(URGENT, "albu20", "live10", way=1)
    alone = {e.flow.host: e.frame_bps for e in plan_for(near).entries}
    both = {e.flow.host: e.frame_bps for e in plan_for(near, other).entries}
    shared = {e.flow.host: e.frame_bps for e in plan_for(far, other).entries}
    assert both["albu10"] == alone["albu10"]
    assert shared["albu10"] < alone["albu10"] * 0.51


def test_the_narrowest_circuit_on_the_way_decides():
    long = flow(URGENT, "albu10", "live10", way=1)
    narrow = {link: RATE_BPS // 10 for link in long.links if link in LINKS and "pop" in link.head}
    (entry,) = plan_for(long, capacity_bps=narrow).entries
    assert 0.9 * frames(RATE_BPS // 10) < entry.frame_bps < frames(RATE_BPS // 10)


def test_a_window_follows_the_round_trip_of_the_flows_own_way():
    (near,), (far,) = (plan_for(flow(URGENT, "albu10", "live10", way=way)).entries for way in (0, 1))
    rtts_us = [RING.path_rtt_us(path) for path in ways("albu10", "live10")]
    assert near.frame_bps == far.frame_bps
    for one, rtt_us in zip((near, far), rtts_us, strict=True):
        bare = cwnd_segments(one.payload_bps, rtt_us, RING.framing.mss_bytes)
        slack = cwnd_segments(one.payload_bps, 2_000, RING.framing.mss_bytes)
        assert one.window_segments == bare + slack > 1.02 * bare


def test_answers_against_data_of_the_same_class_have_room_in_the_meter():
    there, back = flow(URGENT, "albu10", "live10"), flow(URGENT, "live10", "albu20")
    plan = plan_for(there, back)
    (link,) = (name for name in there.links if name in LINKS)
    meter_bps = plan.links[link].classes[URGENT].meter_bps
    (entry,) = plan.of_host("albu10")
    assert entry.frame_bps == pytest.approx(meter_bps * (1 - 0.0767), rel=0.001)
    assert plan_for(there).of_host("albu10")[0].frame_bps == plan_for(there).links[link].classes[URGENT].meter_bps


@pytest.mark.parametrize("way", [0, 1])
def test_answers_that_ride_with_the_data_of_another_class_have_room_in_that(way):
    there, back = flow(URGENT, "albu10", "live10"), flow(BACKGROUND, "live10", "albu10", way=way)
    plan = plan_for(there, back)
    (entry,) = plan.of_host("live10")
    sent_bps = plan.links[Hop("albu1", "live1")].classes[URGENT].meter_bps
    for name in (name for name in back.links if name in LINKS):
        answers_bps = sent_bps * 767 // 10_000
        assert entry.frame_bps + answers_bps <= plan.links[name].classes[BACKGROUND].meter_bps


def test_answers_to_a_wide_direction_leave_half_of_a_narrow_one_to_its_own_data():
    there, back = flow(URGENT, "albu10", "live10"), flow(URGENT, "live10", "albu20")
    plan = plan_for(there, back, capacity_bps={Hop("live1", "albu1"): RATE_BPS // 100})
    (entry,) = plan.of_host("live10")
    assert entry.frame_bps == plan.links[Hop("live1", "albu1")].classes[URGENT].meter_bps // 2


def test_the_answers_share_back_is_the_same_as_the_datas_there():
    long = flow(URGENT, "albu10", "live10", way=1)
    plan = plan_for(long)
    shares = {name: plan.links[name].classes[URGENT].wire_bps for name in LINKS}
    ends = {frozenset(name) for name in long.links if name in LINKS}
    for name, share_bps in shares.items():
        wide = frozenset(name) in ends
        assert (share_bps > RATE_BPS // 2) is wide, name


def test_what_a_flow_does_not_want_the_others_of_its_class_get():
    modest = replace(flow(URGENT, "albu10", "live10"), wanted_bps=100_000_000)
    other = flow(URGENT, "albu20", "live10")
    by_host = {e.flow.host: e.frame_bps for e in plan_for(modest, other).entries}
    assert by_host["albu10"] == frames(100_000_000)
    assert by_host["albu20"] > frames(800_000_000)


def test_a_promise_is_kept_against_the_answers_of_flows_the_other_way_that_are_promised_nothing():
    promised = replace(flow(URGENT, "albu10", "live10"), floor_bps=50_000_000, wanted_bps=50_000_000)
    raw = replace(flow(BACKGROUND, "albu20", "live20"), wanted_bps=900_000_000)
    against = flow(URGENT, "live10", "albu20")
    (link,) = (name for name in promised.links if name in LINKS)
    reserved = {(link, URGENT): 50_000_000, (link, BACKGROUND): 888_000_000}
    plan = plan_for(promised, raw, against, reserved_bps=reserved)
    by_host = {e.flow.host: e.frame_bps for e in plan.entries}
    assert by_host["albu10"] == frames(50_000_000)


@pytest.mark.parametrize("cut_bps", [0, 1, 1_000, 100_000_000])
def test_a_cut_circuit_serves_policy_guarantees_then_promises_by_priority(cut_bps):
    image, raw = flow(URGENT, "albu10", "live10"), flow(BACKGROUND, "albu20", "live10")
    (link,) = (name for name in raw.links if name in LINKS)
    reserved = {(link, URGENT): 80_000_000, (link, BACKGROUND): 80_000_000}
    plan = plan_for(image, raw, capacity_bps={link: cut_bps}, reserved_bps=reserved)
    shares = {c: limits.wire_bps for c, limits in plan.links[link].classes.items()}
    assert sum(shares.values()) <= cut_bps
    for c, limits in DEFAULT_POLICY.classes.items():
        assert shares[c] >= cut_bps * limits.guarantee_ppm // 10**6
    if cut_bps == 100_000_000:
        assert shares[URGENT] == 80_020_000
        assert shares[BACKGROUND] == 100_000_000 - 80_020_000 - shares[PREDICTABLE] - shares[FlowClass.UNPLANNED]


def test_flows_over_a_circuit_that_is_gone_have_no_allocation():
    gone, other = flow(URGENT, "albu10", "live10"), flow(URGENT, "albu20", "live10", way=1)
    (link,) = (name for name in gone.links if name in LINKS)
    assert [e.flow for e in plan_for(gone, other, capacity_bps={link: 0}).entries] == [other]


def test_a_flow_that_moves_to_the_other_way_is_silent_until_that_has_room():
    moving = flow(URGENT, "albu10", "live10")
    moved = replace(moving, path=ways("albu10", "live10")[1])
    old, new = (planned(e, RING, DEFAULT_POLICY, PlanInput((f,))) for e, f in ((2, moving), (4, moved)))
    assert lesser_of(old, new).entries == ()


def test_a_flow_whose_promise_alone_changes_is_not_interrupted():
    steady = flow(URGENT, "albu10", "live10")
    raised = replace(steady, floor_bps=500_000_000)
    old, new = (planned(e, RING, DEFAULT_POLICY, PlanInput((f,))) for e, f in ((2, steady), (4, raised)))
    assert [e.frame_bps for e in lesser_of(old, new).entries] == [e.frame_bps for e in old.entries]
