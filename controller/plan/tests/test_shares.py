"""Shares: exact sums, guarantees, priorities."""

import doctest
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.plan import shares
from controller.plan.policy import DEFAULT_POLICY, PPM, ClassPolicy, Policy
from controller.plan.shares import class_shares, split
from topology.protocol import FlowClass

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


def test_examples_in_the_docstrings_are_true():
    assert doctest.testmod(shares).failed == 0


@given(st.integers(0, 10**12), st.lists(st.integers(0, 10**6), min_size=1, max_size=9))
def test_the_parts_of_a_split_sum_to_the_whole_and_none_is_a_unit_off(total, weights):
    parts = split(total, weights)
    whole = sum(weights)
    assert sum(parts) == (total if whole else 0)
    assert all(abs(part * whole - total * weight) < whole for part, weight in zip(parts, weights, strict=True) if whole)


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


def test_guarantees_above_the_circuit_are_refused():
    classes = dict.fromkeys(FlowClass, ClassPolicy(300_000, 300_000, 0, 0))
    with pytest.raises(ValueError, match="come to 120% of the circuit"):
        Policy(classes)


def test_a_policy_without_a_class_is_refused():
    with pytest.raises(ValueError, match="says nothing about urgent"):
        Policy({FlowClass.PREDICTABLE: ClassPolicy(1, 1, 0, 0)})
