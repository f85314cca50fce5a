"""Ports that the network knows by name alone: their numbers are what their switch shows."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import IMAGE, plan_of
from controller.plan.wiring import (
    BRIDGE,
    NOWHERE,
    SeenPort,
    is_carried,
    port_faults,
    port_links,
    with_port_numbers,
)
from controller.southbound.openflow.circuit_ports import QUEUE_ID
from controller.southbound.openflow.desired import switch_state
from controller.southbound.openflow.tests.fake_switch import FakeSwitch
from mininet_tests.testing.drawn import sections
from mininet_tests.testing.networks import chile_illinois
from topology.network_file import network_of
from topology.problems import Problems
from topology.protocol import FlowClass
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


def test_another_port_of_the_switch_that_comes_or_goes_makes_no_other_network():
    others = {99: SeenPort("vnet9", is_live=True)}
    assert with_port_numbers(NAMED, "ls1", SEEN) is with_port_numbers(NAMED, "ls1", SEEN | others)


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


def test_a_number_that_another_port_has_by_now_is_not_used_for_the_one_that_the_file_gives_it():
    unnamed = relinked(
        KNOWN, KNOWN.framing, lambda hop, link: replace(link, port_no=0) if hop.head == "base21" else link
    )
    shown = {port_no: port for port_no, port in SEEN.items() if port.name not in ("ls1-eth1", "ls1-eth2")}
    shown[1] = SeenPort("ls1-eth2", is_live=True)  # base20's number, while its port is away
    (fault,) = port_faults(unnamed, "ls1", shown)
    assert str(fault) == "ls1: port 1 ls1-eth1 to base20 is port 1 ls1-eth2"
    network = with_port_numbers(unnamed, "ls1", shown)
    assert network.link("ls1", "base21").port_no == 1
    assert network.link("ls1", "base20").port_no >= NOWHERE
    assert with_port_numbers(unnamed, "ls1", {**SEEN}).link("ls1", "base20").port_no == 1


def test_of_two_ports_that_have_each_other_s_number_neither_gets_what_is_for_the_other():
    swapped = {**SEEN, 1: SEEN[2], 2: SEEN[1]}
    network = with_port_numbers(KNOWN, "ls1", swapped)
    assert {network.link("ls1", name).port_no for name in ("base20", "base21")} == {NOWHERE, NOWHERE + 1}
    assert with_port_numbers(KNOWN, "ls1", SEEN) is KNOWN


def at_bridge(name: str) -> dict[int, SeenPort]:
    """What the switch shows where one of its ports is the bridge's own."""
    rest = {port_no: port for port_no, port in SEEN.items() if port.name != name}
    return {**rest, BRIDGE: SeenPort(name, is_live=True)}


def test_a_host_may_be_at_the_bridge_s_own_port():
    seen = at_bridge("ls1-eth1")
    assert port_faults(NAMED, "ls1", seen) == ()
    network = with_port_numbers(NAMED, "ls1", seen)
    fake = FakeSwitch(switch_state(network, network.switches[0], plan_of(*IMAGE), DEFAULT_POLICY).rules)
    ends = str(KNOWN.host("base20").ip), str(KNOWN.host("arch").ip)
    packet = {"eth_type": 0x0800, "ipv4_src": ends[0], "ipv4_dst": ends[1], "in_port": BRIDGE, "ip_dscp": 0}
    assert fake.fate(packet).queue_id == QUEUE_ID[FlowClass.URGENT]
    back = {"eth_type": 0x0800, "ipv4_src": ends[1], "ipv4_dst": ends[0], "in_port": 9, "ip_dscp": 0}
    assert fake.fate(back).output_port == BRIDGE


def test_a_circuit_at_the_bridge_s_own_port_is_a_fault_and_leaves_by_no_port():
    seen = at_bridge("ls1-wan")
    (fault,) = port_faults(NAMED, "ls1", seen)
    assert str(fault) == "ls1: port ls1-wan to ch1 is the bridge's own port"
    assert "a port of its own" in fault.todo
    assert not fault.is_down
    network = with_port_numbers(NAMED, "ls1", seen)
    assert NOWHERE <= network.link("ls1", "ch1").port_no <= 0xFFFF
    assert switch_state(network, network.switches[0], plan_of(*IMAGE), DEFAULT_POLICY).rules


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
