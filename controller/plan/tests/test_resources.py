"""What of a network can be booked, and what a rate takes of it."""

import doctest

from hypothesis import given
from hypothesis import strategies as st

from controller.plan import resources
from controller.plan.policy import DEFAULT_POLICY, PPM
from controller.plan.resources import capacities, circuit_rate_bps, joint, need, of_circuit
from topology.named import chile_illinois
from topology.protocol import FlowClass

NETWORK = chile_illinois()
PATH = ("base20", "ls1", "ch1", "arch")


def test_examples_in_the_docstrings_are_true():
    assert doctest.testmod(resources).failed == 0


def test_the_guarantees_are_not_for_sale():
    found = capacities(NETWORK, DEFAULT_POLICY)
    assert found["base20->ls1"] == 10**9
    assert found["ls1->ch1"] == found["ch1->ls1"] == 938_800_000
    assert found["ls1->ch1 urgent"] == 999_800_000
    assert found["ls1->ch1 predictable"] == 0


def test_a_rate_takes_the_whole_way_there_and_the_answers_part_of_circuits_back():
    taken = dict(need(NETWORK, (PATH,), FlowClass.URGENT).shares_ppm)
    assert taken["base20->ls1"] == taken["ls1->ch1"] == taken["ls1->ch1 urgent"] == taken["ch1->arch"] == PPM
    assert 0 < taken["ch1->ls1"] == taken["ch1->ls1 urgent"] < PPM // 10
    assert "arch->ch1" not in taken


def test_several_senders_add_up_where_they_meet():
    ways = [need(NETWORK, ((host, *PATH[1:]),), FlowClass.URGENT) for host in ("base20", "base21")]
    taken = dict(joint(ways).shares_ppm)
    assert (taken["base20->ls1"], taken["ls1->ch1"]) == (PPM, 2 * PPM)


def test_of_a_path_and_its_backup_one_is_used_at_a_time():
    assert need(NETWORK, (PATH, PATH), FlowClass.URGENT) == need(NETWORK, (PATH,), FlowClass.URGENT)


@given(st.integers(1, 10**11), st.sampled_from([FlowClass.URGENT, FlowClass.BACKGROUND]))
def test_a_circuit_of_the_rate_that_is_bought_has_what_was_booked_for_sale(booked_bps, flow_class):
    rate_bps = circuit_rate_bps(booked_bps, flow_class, DEFAULT_POLICY)
    for_sale = of_circuit("ls1", "ch1", rate_bps, DEFAULT_POLICY)
    assert min(for_sale["ls1->ch1"], for_sale[f"ls1->ch1 {flow_class}"]) >= booked_bps
    less = of_circuit("ls1", "ch1", rate_bps * 99 // 100 - 8, DEFAULT_POLICY)
    assert min(less["ls1->ch1"], less[f"ls1->ch1 {flow_class}"]) < booked_bps
