"""Ports that the network knows by name alone: their numbers are what their switch shows."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import IMAGE, plan_of
from controller.plan.wiring import NOWHERE, SeenPort, is_carried, port_faults, port_links, with_port_numbers
from controller.southbound.openflow.desired import switch_state
from mininet_tests.testing.drawn import sections
from mininet_tests.testing.networks import chile_illinois
from topology.network_file import network_of
from topology.problems import Problems
from topology.relinking import relinked

KNOWN = chile_illinois()
NAMED = relinked(KNOWN, KNOWN.framing, lambda _, link: replace(link, port_no=0))
SEEN = {link.port_no: SeenPort(link.port_name, is_live=True) for _, link in port_links(KNOWN, "ls1")}


def test_rules_are_those_of_a_network_that_says_the_numbers_that_the_switch_shows():
    (switch, _), plan = KNOWN.switches, plan_of(*IMAGE)
    wanted = switch_state(KNOWN, switch, plan, DEFAULT_POLICY)
    assert switch_state(with_port_numbers(NAMED, "ls1", SEEN), switch, plan, DEFAULT_POLICY) == wanted
    assert switch_state(NAMED, switch, plan, DEFAULT_POLICY) != wanted
    assert with_port_numbers(NAMED, "ls1", SEEN) is with_port_numbers(NAMED, "ls1", dict(SEEN))


def test_a_port_that_has_another_number_now_is_no_fault_and_its_rules_follow_it():
    moved = {port_no + 40: port for port_no, port in SEEN.items()}
    assert port_faults(NAMED, "ls1", moved) == ()
    assert len(port_faults(KNOWN, "ls1", moved)) == len(SEEN)
    assert with_port_numbers(NAMED, "ls1", moved).link("ls1", "ch1").port_no == 49


def test_a_port_that_is_missing_is_a_fault_and_what_is_for_it_goes_to_no_port():
    without = {port_no: port for port_no, port in SEEN.items() if port.name != "ls1-wan"}
    (fault,) = port_faults(NAMED, "ls1", without)
    assert str(fault) == "ls1: port ls1-wan to ch1 is missing"
    assert fault.todo == "ovs-vsctl add-port ls1 ls1-wan"
    assert with_port_numbers(NAMED, "ls1", without).link("ls1", "ch1").port_no >= NOWHERE


def test_a_port_that_is_dead_is_down_under_any_number():
    dead = {**SEEN, 9: SeenPort("ls1-wan", is_live=False)}
    (fault,) = port_faults(NAMED, "ls1", dead)
    assert (fault.is_down, fault.found) == (True, "down")


@given(sections(), st.data())
def test_every_port_of_any_network_has_its_own_number_and_those_that_are_said_stay(section, data):
    network = network_of(section, Problems())
    for switch in network.switches:
        links = [link for _, link in port_links(network, switch.name)]
        shown = data.draw(st.lists(st.sampled_from(links), unique=True)) if links else []
        free = iter(range(1000, 2000))
        seen = {link.port_no or next(free): SeenPort(link.port_name, is_live=True) for link in shown}
        found = [link for _, link in port_links(with_port_numbers(network, switch.name, seen), switch.name)]
        assert len({link.port_no for link in found}) == len(links)
        assert all(now.port_no == before.port_no for now, before in zip(found, links, strict=True) if before.port_no)
        assert all(is_carried(now, seen) is (before in shown) for now, before in zip(found, links, strict=True))
