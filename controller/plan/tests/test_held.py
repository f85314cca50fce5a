"""Flows that are held to what their receivers take, in a plan: what that frees goes to others."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.plan.flows import flow_on
from controller.plan.held import WAITING, Intaking, StorePromise, Where, held
from controller.plan.intake import Intake
from controller.plan.keys import FlowId, StorePlace
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import DATABASE, GIGABIT, RAW_IMAGES, plan_of
from topology.protocol import FlowClass
from topology.wire import Layer, converted_bps

MBIT = 10**6
WHERE = Where(GIGABIT, DEFAULT_POLICY)


def image(host, **changes):
    flow = flow_on(GIGABIT, FlowId(f"image/{host}"), FlowClass.URGENT, GIGABIT.path(host, "arch"))
    return replace(flow, standby_bps=MBIT, **changes)


def slow(mbit, *flows, room_bytes=0):
    return Intaking(Intake("arch", mbit * MBIT, room_bytes), [flow.name for flow in flows])


def payload_mbit(plan, *names):
    return [e.payload_bps / MBIT for name in names for e in plan.entries if e.flow.name == name]


def plan_with(receivers, *flows, left=None):
    return plan_of(*held(flows, receivers, left or {}, WHERE))


def test_a_flow_gets_what_its_receiver_takes_and_a_little_and_the_others_get_the_rest():
    one = image("base20")
    before = plan_of(DATABASE, RAW_IMAGES, one)
    plan = plan_with([slow(100, one)], DATABASE, RAW_IMAGES, one)
    (rate,) = payload_mbit(plan, one.name)
    assert 106 < rate <= 106.25
    (others_before,), (others,) = payload_mbit(before, RAW_IMAGES.name), payload_mbit(plan, RAW_IMAGES.name)
    (freed,) = payload_mbit(before, one.name)
    assert others - others_before > 0.99 * (freed - rate)


def test_what_is_promised_is_not_kept_idle_for_a_receiver_that_does_not_take_it():
    one = image("base20", floor_bps=800 * MBIT)
    (rate,) = payload_mbit(plan_with([slow(100, one)], RAW_IMAGES, one), one.name)
    assert rate <= 106.25


def test_a_reservation_keeps_what_it_has_reserved():
    one = replace(image("base20"), standby_bps=0, wanted_bps=500 * MBIT, floor_bps=500 * MBIT)
    assert held([one], [slow(100, one)], {}, WHERE) == (one,)


def test_several_that_send_to_one_receiver_share_what_it_takes():
    two = image("base20"), image("base21")
    rates = payload_mbit(plan_with([slow(100, *two)], RAW_IMAGES, *two), *(flow.name for flow in two))
    assert 105 < sum(rates) <= 106.25
    assert abs(rates[0] - rates[1]) < 0.1


def test_a_receiver_is_given_to_classes_by_their_priority_and_each_keeps_its_guarantee():
    one = image("base20")
    plan = plan_with([slow(100, one, RAW_IMAGES, DATABASE)], DATABASE, RAW_IMAGES, one)
    urgent, background, database = payload_mbit(plan, one.name, RAW_IMAGES.name, DATABASE.name)
    assert database > 45, "its class may have 5% of the circuit, and comes first"
    assert background == pytest.approx(1.06, rel=0.01)
    assert urgent + background + database == pytest.approx(106.25, rel=0.001)


def test_bytes_that_were_announced_may_fill_the_room_by_their_end():
    one = image("base20")
    receiver = slow(100, one, room_bytes=50_000_000)
    (rate,) = payload_mbit(plan_with([receiver], one, left={one.name: 120_000_000}), one.name)
    alone = 100 * 17 / 16 * 120 / (120 - 50)
    assert alone * 0.999 < rate <= alone
    (rate,) = payload_mbit(plan_with([receiver], one, left={one.name: 50_000_000}), one.name)
    assert rate > 700, "all of it fits into the room"


def test_a_receiver_that_takes_next_to_nothing_leaves_the_standby_rate():
    one = image("base20")
    assert held([one], [slow(0, one)], {}, WHERE)[0].wanted_bps == one.standby_bps


def test_what_is_promised_is_kept_while_the_receiver_takes_nearly_that():
    one = image("base20", floor_bps=110 * MBIT)
    assert held([one], [slow(100, one)], {}, WHERE)[0].floor_bps == one.floor_bps
    assert held([one], [slow(50, one)], {}, WHERE)[0].floor_bps < 60 * MBIT


@given(st.lists(st.integers(1, 900), min_size=1, max_size=2), st.integers(0, 900))
def test_held_flows_are_never_given_more_than_their_receivers_take(drains, floor):
    flows = [image(host, floor_bps=floor * MBIT // 2) for host in ("base20", "base21")]
    receivers = [slow(mbit, flow) for mbit, flow in zip(drains, flows, strict=False)]
    plan = plan_with(receivers, DATABASE, RAW_IMAGES, *flows)
    for one in receivers:
        (name,) = one.flows
        assert payload_mbit(plan, name)[0] <= max(one.intake.ceiling_bps * 8 / 7, MBIT) / MBIT


def on_the_wire(payload_bps):
    return converted_bps(round(payload_bps), Layer.PAYLOAD, Layer.WIRE, GIGABIT.framing)


DATA = StorePlace("arch", "data")


def stored_in(seconds, **changes):
    return StorePromise(DATA, seconds * 10**6, **changes)


def test_a_disk_is_first_for_what_is_promised_to_be_on_it_first_and_then_for_the_next():
    first, second, rest = image("base20"), image("base21", floor_bps=160 * MBIT), image("base22")
    receiver = [slow(280, first, second, rest, room_bytes=75_000_000)]
    left, promises = (
        {first.name: 200_000_000, second.name: 200_000_000},
        {first.name: stored_in(6), second.name: stored_in(12)},
    )
    rates_bps = {f.name: f.wanted_bps for f in held([second, first, rest], receiver, left, WHERE, promises)}
    alone_bps = 280 * MBIT * 17 / 16 * 200 / (200 - 75)
    assert rates_bps[first.name] == pytest.approx(on_the_wire(alone_bps), rel=0.001)
    assert rates_bps[second.name] == second.standby_bps
    assert rates_bps[rest.name] == rest.standby_bps
    after = held([second, rest], [slow(280, second, rest)], {second.name: 200_000_000}, WHERE, promises)
    assert after[0].wanted_bps == pytest.approx(on_the_wire(280 * MBIT * 17 / 16), rel=0.001)
    assert after[1].wanted_bps == rest.standby_bps


def test_who_is_not_due_yet_waits_until_what_was_promised_before_is_stored_and_not_only_across():
    second = replace(image("base21"), standby_bps=20 * MBIT)
    receiver, left = [slow(280, second)], {second.name: 200_000_000}

    def planned_bps(**first):
        promises = {FlowId("image/base20"): stored_in(6, **first), second.name: stored_in(12, is_due=False)}
        return held([second], receiver, left, WHERE, promises)[0].wanted_bps

    assert planned_bps(is_under_way=True) == pytest.approx(on_the_wire(280 * MBIT * 17 / 16 / WAITING), rel=0.001)
    whole = pytest.approx(on_the_wire(280 * MBIT * 17 / 16), rel=0.001)
    assert planned_bps(is_under_way=False) == whole, "nothing of it has come yet, or it is stored"
    due = {FlowId("image/base20"): stored_in(6, is_under_way=True), second.name: stored_in(12)}
    assert held([second], receiver, left, WHERE, due)[0].wanted_bps == whole
    elsewhere = {FlowId("a/b"): StorePromise(StorePlace("arch", "fast"), 1, is_under_way=True)}
    assert (
        held([second], receiver, left, WHERE, elsewhere | {second.name: stored_in(12, is_due=False)})[0].wanted_bps
        == whole
    )


def test_senders_of_one_promise_share_the_disk():
    parts = [image(host) for host in ("base20", "base21")]
    left, promises = {one.name: 200_000_000 for one in parts}, {one.name: stored_in(6) for one in parts}
    rates_bps = {f.wanted_bps for f in held(parts, [slow(280, *parts)], left, WHERE, promises)}
    assert max(rates_bps) - min(rates_bps) <= 1_000
    assert sum(2 * [min(rates_bps)]) == pytest.approx(on_the_wire(280 * MBIT * 17 / 16), rel=0.001)
