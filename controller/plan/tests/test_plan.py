"""The plan at each layer, on one circuit and on a ring of them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.plan.invariant import Layers, Violation, violations
from controller.plan.keys import ClassShare, FlowId
from controller.plan.plan import Plan, PlanInput
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import (
    DATABASE,
    GIGABIT,
    IMAGE,
    RAW_IMAGES,
    RING,
    any_network,
    demands_in,
    flow,
    flows_in,
    plan_of,
)
from topology.network import Hop
from topology.protocol import FlowClass
from topology.wire import Layer, converted_bps, cwnd_segments

WAN, BACK = Hop("ls1", "ch1"), Hop("ch1", "ls1")


def layers(plan: Plan) -> dict[str, Layers]:
    """What a plan lets through, were all of it installed."""
    return {
        name: Layers(
            {
                c: sum(e.frame_bps for e in plan.entries if e.flow.flow_class is c and name in e.flow.links)
                for c in FlowClass
            },
            {c: limits.meter_bps for c, limits in link.classes.items()},
            {c: limits.queue_bps for c, limits in link.classes.items()},
            link.circuit_bps,
        )
        for name, link in plan.links.items()
    }


@given(any_network.flatmap(lambda n: st.tuples(st.just(n), demands_in(n))))
def test_hosts_meter_queue_and_circuit_hold_each_other_in_any_plan(drawn):
    network, demand = drawn
    assert violations(layers(planned(2, network, DEFAULT_POLICY, demand))) == ()


@given(any_network.flatmap(lambda n: st.tuples(st.just(n), demands_in(n))))
def test_a_host_paces_at_no_more_than_its_part_of_the_meter(drawn):
    network, demand = drawn
    for entry in planned(2, network, DEFAULT_POLICY, demand).entries:
        framing = network.framing_of(entry.flow.path)
        mss, frame = framing.mss_bytes, framing.mtu_bytes + 14
        assert entry.payload_bps * frame <= entry.frame_bps * mss


@given(flows_in(RING))
def test_every_flow_gets_something_on_a_ring(flows):
    assert {e.flow for e in planned(2, RING, DEFAULT_POLICY, PlanInput(flows)).entries} == set(flows)


@pytest.mark.parametrize(("rate_bps", "is_told"), [(1, False), (2, False), (9, False), (10, True)], ids=str)
def test_a_host_is_told_no_rate_of_less_than_a_byte_per_second_which_its_kernel_cannot_hold(rate_bps, is_told):
    slow = replace(IMAGE[0], wanted_bps=rate_bps, floor_bps=rate_bps)
    told = {entry.flow.name: entry.payload_bps for entry in plan_of(slow, DATABASE).entries}
    assert (slow.name in told, min(told.values()) >= 8) == (is_told, True)


@given(any_network.flatmap(lambda n: st.tuples(st.just(n), demands_in(n))), st.randoms())
def test_the_plan_does_not_depend_on_the_order_of_its_flows(drawn, random):
    network, demand = drawn
    shuffled = PlanInput(
        tuple(random.sample(demand.flows, len(demand.flows))), demand.capacity_bps, demand.reserved_bps
    )
    assert planned(2, network, DEFAULT_POLICY, demand) == planned(2, network, DEFAULT_POLICY, shuffled)


def test_the_check_sees_a_meter_above_its_queue():
    good = layers(plan_of(DATABASE))[WAN]
    bad = Layers(good.hosts_bps, {**good.meters_bps, FlowClass.URGENT: 10**9}, good.queues_bps, good.circuit_bps)
    assert any(v.flow_class is FlowClass.URGENT and v.upper == "meter" for v in violations({WAN: bad}))


def test_the_check_sees_a_total_above_the_circuit():
    share = dict.fromkeys(FlowClass, 300)
    found = violations({WAN: Layers(share, share, share, 1000)})
    assert found == (Violation(WAN, None, "queues", 1200, "circuit", 1000),)


def test_the_papers_four_flows_get_the_papers_shares():
    plan = plan_of(DATABASE, RAW_IMAGES, *IMAGE)
    percent = {e.flow.name: round(100 * e.payload_bps / 941_482_444, 1) for e in plan.entries}
    assert percent == {
        "background/base23": 1.0,
        "predictable/base22": 5.0,
        "urgent/base20": 46.9,
        "urgent/base21": 46.9,
    }


def test_a_window_has_its_stated_slack_over_the_papers():
    image = next(e for e in plan_of(DATABASE, RAW_IMAGES, *IMAGE).entries if e.flow.host == "base20")
    assert 6_939 < image.window_segments < 1.02 * 6_939


@pytest.mark.parametrize("rtt_us", [1, 1_000, 20_000, 99_999, 100_000, 100_001, 180_000, 800_000])
@pytest.mark.parametrize(("rate_bps", "least"), [(10**6, 0.2), (10**9, 172.7), (10**10, 181)])
def test_on_a_short_path_the_slack_of_a_window_is_two_milliseconds_or_four_super_packets(rate_bps, least, rtt_us):
    bare, window = (f(rate_bps, rtt_us, 1448) for f in (cwnd_segments, DEFAULT_POLICY.window_segments))
    assert window - bare == pytest.approx(max(least, 0.02 * bare), abs=1)


def test_without_an_image_the_raw_images_have_the_rest():
    plan = plan_of(DATABASE, RAW_IMAGES)
    assert 0.948 < plan.of_host("base23")[0].frame_bps / plan.links[WAN].circuit_bps < 0.95


def test_answers_find_the_same_share_on_the_way_back():
    plan = plan_of(DATABASE, RAW_IMAGES)
    assert plan.links[WAN] == plan.links[BACK]


def test_data_both_ways_leaves_room_for_the_answers_of_the_other():
    there, back = flow(FlowClass.BACKGROUND, "base23"), flow(FlowClass.BACKGROUND, "arch", "base20")
    alone, both = (plan_of(*flows).of_host("base23")[0].frame_bps for flows in ((there,), (there, back)))
    assert 0.90 < both / alone < 0.93


promises = st.lists(
    st.tuples(
        st.sampled_from([FlowClass.URGENT, FlowClass.BACKGROUND]),
        st.sampled_from(["base21", "base22", "base23"]),
        st.booleans(),
        st.integers(1_000_000, 150_000_000),
    ),
    max_size=4,
    unique_by=lambda drawn: drawn[1:3],
)


@given(promises)
def test_whoever_stands_by_is_given_that_much_whatever_is_promised_to_others_both_ways(drawn):
    promised, reserved = [], {}
    for flow_class, host, is_back, bps in drawn:
        ends = ("arch", host) if is_back else (host, "arch")
        one = replace(flow(flow_class, *ends), name=FlowId(f"{host}-{is_back}"))
        promised.append(replace(one, floor_bps=bps, wanted_bps=bps))
        share = ClassShare(BACK if is_back else WAN, flow_class)
        reserved[share] = reserved.get(share, 0) + bps
    standing = replace(flow(FlowClass.URGENT, "base20"), wanted_bps=20_000_000, standby_bps=20_000_000)
    plan = planned(2, GIGABIT, DEFAULT_POLICY, PlanInput((*promised, standing, RAW_IMAGES), {}, reserved))
    (given_bps,) = (e.frame_bps for e in plan.entries if e.flow.name == standing.name)
    standby_bps = converted_bps(20_000_000, Layer.WIRE, Layer.FRAME, GIGABIT.framing)
    assert given_bps // 1000 >= standby_bps // 1000 - len(drawn)  # meters count whole kbit/s


def test_a_promise_comes_before_the_rest_of_its_class():
    promised = flow(FlowClass.URGENT, "base20")
    promised = type(promised)(*(getattr(promised, f) for f in promised.__slots__[:6]), None, 700_000_000)
    plan = plan_of(promised, flow(FlowClass.URGENT, "base21"))
    floor_bps = converted_bps(700_000_000, Layer.WIRE, Layer.FRAME, GIGABIT.framing)
    assert plan.of_host("base20")[0].frame_bps == floor_bps
    assert plan.of_host("base21")[0].frame_bps < floor_bps


def test_what_is_reserved_for_a_lower_class_is_not_taken_by_a_higher_one_but_lent_while_idle():
    reserved = {(WAN, FlowClass.BACKGROUND): 300_000_000}

    def background(*flows):
        plan = planned(2, GIGABIT, DEFAULT_POLICY, PlanInput(flows, {}, reserved))
        return plan.links[WAN].classes[FlowClass.BACKGROUND].wire_bps

    assert background(*IMAGE, RAW_IMAGES) == 310_000_000
    assert background(*IMAGE) == 10_000_000


def test_a_circuit_that_is_not_there_gives_nobody_anything():
    plan = planned(2, GIGABIT, DEFAULT_POLICY, PlanInput((RAW_IMAGES,), {WAN: 0, BACK: 0}))
    assert plan.entries == ()
    assert violations(layers(plan)) == ()


def test_a_flow_over_several_circuits_gets_the_least_of_them():
    near, far = flow(FlowClass.URGENT, "albu10", "losa10", RING), flow(FlowClass.URGENT, "albu20", "pop10", RING)
    plan = planned(2, RING, DEFAULT_POLICY, PlanInput((near, far)))
    shares = {e.flow.host: e.frame_bps for e in plan.entries}
    assert shares["albu10"] == shares["albu20"]
    assert plan.links[Hop("losa1", "pop1")].classes[FlowClass.URGENT].meter_bps > shares["albu20"]


def test_the_window_follows_the_flows_own_path():
    near, far = (flow(FlowClass.URGENT, "albu10", target, RING) for target in ("losa10", "pop10"))
    windows = [planned(2, RING, DEFAULT_POLICY, PlanInput((one,))).entries[0].window_segments for one in (near, far)]
    assert windows[1] / windows[0] == pytest.approx(5, rel=0.01)
