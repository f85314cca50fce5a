"""What of a network can be booked, and what a rate takes of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.plan.keys import ClassShare, Pool, resource_of
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.resources import capacities, circuit_rate_bps, joint, need, of_circuit
from mininet_tests.testing.networks import chile_illinois
from topology.network import Hop
from topology.protocol import FlowClass
from topology.wire import PPM

NETWORK = chile_illinois()
PATH = ("base20", "ls1", "ch1", "arch")
WAN, BACK = Hop("ls1", "ch1"), Hop("ch1", "ls1")


@pytest.mark.parametrize("resource", [*capacities(NETWORK, DEFAULT_POLICY), Pool("a ls1->ch1 urgent")], ids=str)
def test_what_can_be_booked_is_the_same_once_it_was_text(resource):
    assert resource_of(str(resource)) == resource


@pytest.mark.parametrize("text", ["", "ls1", "->ch1", "ls1->"])
def test_a_text_that_is_no_resources_is_refused(text):
    with pytest.raises(ValueError, match="names nothing"):
        resource_of(text)


def test_the_guarantees_are_not_for_sale():
    found = capacities(NETWORK, DEFAULT_POLICY)
    assert found[Hop("base20", "ls1")] == 10**9
    assert found[WAN] == found[BACK] == 938_800_000
    assert found[ClassShare(WAN, FlowClass.URGENT)] == 999_800_000
    assert found[ClassShare(WAN, FlowClass.PREDICTABLE)] == 0


def test_a_rate_takes_the_whole_way_there_and_the_answers_part_of_circuits_back():
    taken = dict(need(NETWORK, (PATH,), FlowClass.URGENT).shares_ppm)
    there = Hop("base20", "ls1"), WAN, ClassShare(WAN, FlowClass.URGENT), Hop("ch1", "arch")
    assert {taken[resource] for resource in there} == {PPM}
    assert 0 < taken[BACK] == taken[ClassShare(BACK, FlowClass.URGENT)] < PPM // 10
    assert Hop("arch", "ch1") not in taken


def test_several_senders_add_up_where_they_meet():
    ways = [need(NETWORK, ((host, *PATH[1:]),), FlowClass.URGENT) for host in ("base20", "base21")]
    taken = dict(joint(ways).shares_ppm)
    assert (taken[Hop("base20", "ls1")], taken[WAN]) == (PPM, 2 * PPM)


def test_of_a_path_and_its_backup_one_is_used_at_a_time():
    assert need(NETWORK, (PATH, PATH), FlowClass.URGENT) == need(NETWORK, (PATH,), FlowClass.URGENT)


@given(st.integers(1, 10**11), st.sampled_from([FlowClass.URGENT, FlowClass.BACKGROUND]))
def test_a_circuit_of_the_rate_that_is_bought_has_what_was_booked_for_sale(booked_bps, flow_class):
    rate_bps = circuit_rate_bps(booked_bps, flow_class, DEFAULT_POLICY)
    for_sale = of_circuit(WAN, rate_bps, DEFAULT_POLICY)
    assert min(for_sale[WAN], for_sale[ClassShare(WAN, flow_class)]) >= booked_bps
    less = of_circuit(WAN, rate_bps * 99 // 100 - 8, DEFAULT_POLICY)
    assert min(less[WAN], less[ClassShare(WAN, flow_class)]) < booked_bps
