"""Shares: exact sums, guarantees, priorities."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.plan.policy import DEFAULT_POLICY, ClassPolicy, Policy
from controller.plan.shares import class_shares, max_min
from topology.protocol import FlowClass
from topology.wire import PPM

capacities = st.integers(10**6, 10**12)
wishes = st.dictionaries(st.sampled_from(FlowClass), st.integers(0, 10**12))


@st.composite
def policies(draw):
    """Any policy whose guarantees fit."""
    guarantees = draw(st.lists(st.integers(1, PPM // 4), min_size=4, max_size=4))
    caps = [draw(st.integers(g, PPM)) for g in guarantees]
    order = draw(st.permutations(range(4)))
    classes = zip(FlowClass, guarantees, caps, order, strict=True)
    return Policy({c: ClassPolicy(g, cap, prio, 0) for c, g, cap, prio in classes})


parts_of = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)).map(sorted), min_size=1, max_size=8)


@given(st.integers(0, 500), parts_of)
def test_parts_lie_between_floor_and_cap_and_nothing_is_left_while_one_could_grow(total, limits):
    floors, caps = zip(*limits, strict=True)
    parts = max_min(total, floors, caps)
    if sum(floors) <= total:
        assert sum(parts) == min(total, sum(caps))
        assert all(f <= p <= c for f, p, c in zip(floors, parts, caps, strict=True))
    else:
        assert sum(parts) == total
        assert all(p <= f for f, p in zip(floors, parts, strict=True))


@given(st.integers(0, 500), parts_of)
def test_nobody_has_more_than_another_who_could_use_it(total, limits):
    """The definition of max-min: to give one more, take from one that has no more than it."""
    floors, caps = zip(*limits, strict=True)
    parts = max_min(total, floors, caps)
    if sum(floors) <= total:
        for poor, cap in zip(parts, caps, strict=True):
            for rich, floor in zip(parts, floors, strict=True):
                assert poor == cap or rich == floor or rich <= poor + 1


@given(capacities, policies(), wishes, wishes)
def test_what_is_reserved_is_kept_for_a_class_that_wants_it_if_it_all_fits(capacity_bps, policy, wanted, reserved):
    reserved = {c: bps % (capacity_bps // 4) for c, bps in reserved.items()}
    shares_bps = class_shares(capacity_bps, policy, wanted, reserved)
    guaranteed = {c: capacity_bps * p.guarantee_ppm // PPM for c, p in policy.classes.items()}
    assert sum(shares_bps.values()) <= capacity_bps
    if sum(guaranteed.values()) + sum(reserved.values()) <= capacity_bps:
        for c, bps in reserved.items():
            cap_bps = capacity_bps * policy.classes[c].cap_ppm // PPM
            assert shares_bps[c] >= min(wanted.get(c, 0), cap_bps, guaranteed[c] + bps)


@given(capacities, policies(), wishes)
def test_shares_never_exceed_the_circuit(capacity_bps, policy, wanted):
    assert sum(class_shares(capacity_bps, policy, wanted).values()) <= capacity_bps


@given(capacities, policies(), wishes)
def test_every_class_has_its_guarantee_and_never_more_than_its_cap(capacity_bps, policy, wanted):
    for flow_class, share_bps in class_shares(capacity_bps, policy, wanted).items():
        limits = policy.classes[flow_class]
        assert capacity_bps * limits.guarantee_ppm // PPM <= share_bps <= capacity_bps * limits.cap_ppm // PPM


@given(capacities, policies(), wishes)
def test_no_bit_is_unused_while_a_class_below_its_cap_wants_it(capacity_bps, policy, wanted):
    shares_bps = class_shares(capacity_bps, policy, wanted)
    if sum(shares_bps.values()) < capacity_bps:
        for flow_class, wanted_bps in wanted.items():
            cap_bps = capacity_bps * policy.classes[flow_class].cap_ppm // PPM
            assert shares_bps[flow_class] >= min(wanted_bps, cap_bps)


@given(capacities, policies(), wishes)
def test_a_class_gets_more_than_its_guarantee_only_when_those_before_it_are_satisfied(capacity_bps, policy, wanted):
    shares_bps = class_shares(capacity_bps, policy, wanted)
    by_priority = sorted(policy.classes, key=lambda c: policy.classes[c].priority)
    for before, after in pairwise(by_priority):
        if shares_bps[after] > capacity_bps * policy.classes[after].guarantee_ppm // PPM:
            cap_bps = capacity_bps * policy.classes[before].cap_ppm // PPM
            assert shares_bps[before] >= min(wanted.get(before, 0), cap_bps)


def test_an_announced_image_takes_all_but_the_guarantees():
    everything = dict.fromkeys(FlowClass, 10**9)
    assert class_shares(10**9, DEFAULT_POLICY, everything) == {
        FlowClass.PREDICTABLE: 50_000_000,
        FlowClass.URGENT: 939_000_000,
        FlowClass.BACKGROUND: 10_000_000,
        FlowClass.UNPLANNED: 1_000_000,
    }


def test_what_all_others_leave_is_divided_evenly_among_those_that_may_have_it():
    spare = FlowClass.PREDICTABLE, FlowClass.URGENT, FlowClass.BACKGROUND
    wanted = {FlowClass.URGENT: 10**8, FlowClass.BACKGROUND: 10**8}
    shares = class_shares(10**9, DEFAULT_POLICY, wanted, spare=spare)
    assert shares[FlowClass.PREDICTABLE] == 5 * 10**7, "its cap"
    assert shares[FlowClass.URGENT] == shares[FlowClass.BACKGROUND]
    assert sum(shares.values()) == 10**9


def test_guarantees_above_the_circuit_are_refused():
    classes = dict.fromkeys(FlowClass, ClassPolicy(300_000, 300_000, 0, 0))
    with pytest.raises(ValueError, match="come to 120% of the circuit"):
        Policy(classes)


def test_a_policy_without_a_class_is_refused():
    with pytest.raises(ValueError, match="says nothing about urgent"):
        Policy({FlowClass.PREDICTABLE: ClassPolicy(1, 1, 0, 0)})
