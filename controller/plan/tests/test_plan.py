"""The plan at each layer."""

from hypothesis import given

from controller.plan.invariant import Layers, Violation, violations
from controller.plan.plan import Plan, planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import DATABASE, GIGABIT, IMAGE, RAW_IMAGES, any_flows, any_path, plan_of
from topology.protocol import FlowClass


def layers(plan: Plan) -> Layers:
    """What a plan lets through, were all of it installed."""
    hosts = {c: sum(e.frame_bps for e in plan.entries if e.flow.flow_class is c) for c in FlowClass}
    return Layers(
        hosts,
        {c: limits.meter_bps for c, limits in plan.classes.items()},
        {c: limits.queue_bps for c, limits in plan.classes.items()},
        plan.circuit_bps,
    )


@given(any_path, any_flows)
def test_hosts_meter_queue_and_circuit_hold_each_other_in_any_plan(path, flows):
    assert violations(layers(planned(2, path, DEFAULT_POLICY, flows))) == ()


@given(any_path, any_flows)
def test_a_host_paces_at_no_more_than_its_part_of_the_meter(path, flows):
    for entry in planned(2, path, DEFAULT_POLICY, flows).entries:
        mss, frame = path.framing.mss_bytes, path.framing.mtu_bytes + 14
        assert entry.payload_bps * frame <= entry.frame_bps * mss


def test_the_check_sees_a_meter_above_its_queue():
    good = layers(plan_of(DATABASE))
    bad = Layers(good.hosts_bps, {**good.meters_bps, FlowClass.URGENT: 10**9}, good.queues_bps, good.circuit_bps)
    assert any(v.flow_class is FlowClass.URGENT and v.upper == "meter" for v in violations(bad))


def test_the_check_sees_a_total_above_the_circuit():
    share = dict.fromkeys(FlowClass, 300)
    assert violations(Layers(share, share, share, 1000)) == (Violation(None, "queues", 1200, "circuit", 1000),)


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


def test_without_an_image_the_raw_images_have_the_rest():
    entry = plan_of(DATABASE, RAW_IMAGES).of_host("base23")[0]
    assert 0.948 < entry.frame_bps / plan_of().circuit_bps < 0.95


@given(any_flows)
def test_the_plan_does_not_depend_on_the_order_of_its_flows(flows):
    assert planned(2, GIGABIT, DEFAULT_POLICY, flows) == planned(
        2, GIGABIT, DEFAULT_POLICY, sorted(flows, key=lambda f: f.host)
    )
