"""What becomes of packets that a site which is not ours sends by its circuits."""

from collections.abc import Mapping

import pytest

from controller.plan.plan import Plan, PlanInput
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import network_in
from controller.plan.wiring import SeenPort, port_links, with_port_numbers
from controller.southbound.openflow.desired import switch_state
from controller.southbound.openflow.messages import messages
from controller.southbound.openflow.state import SwitchState
from controller.southbound.openflow.tests.fake_switch import FakeSwitch, Packet
from mininet_tests.testing.networks import FILES
from topology.network import Network
from topology.yaml_text import read

IP, ARP, IPV6, ICMPV6 = 0x0800, 0x0806, 0x86DD, 58
CERN, CERN_6 = "10.60.1.1", "2001:db8:60::1"


def two_circuits_to_cern() -> Network:
    """The three sites, with another circuit from delft to the one that is not ours; ports have numbers."""
    section = read(FILES["three-sites"].read_text(encoding="utf-8")).values
    rhone = {"rate": "100 Mbit/s", "delay": "70 ms", "a": {"switch": "dl1", "port": "dl-rhone"}, "z": {"site": "cern"}}
    section["circuits"]["rhone"] = rhone
    network = network_in(section)
    for switch in network.switches:
        names = [link.port_name for _, link in port_links(network, switch.name)]
        seen = {number: SeenPort(name, is_live=True) for number, name in enumerate(names, start=1)}
        network = with_port_numbers(network, switch.name, seen)
    return network


NETWORK = two_circuits_to_cern()
DELFT = NETWORK.switches[0]
PORT_NO = {link.port_name: link.port_no for _, link in port_links(NETWORK, DELFT.name)}
TAGS: Mapping[str, Packet] = {"dl-far": {"vlan_vid": 0x1000 | 300}, "dl-rhone": {}, "dl-wan": {}}  # of circuits' ports


def delft(plan: Plan) -> FakeSwitch:
    """The switch that both circuits to cern leave, under a plan."""
    fake = FakeSwitch()
    for message in messages(switch_state(NETWORK, DELFT, plan, DEFAULT_POLICY), SwitchState()):
        fake.apply(message)
    return fake


def came(port: str, packet: Packet) -> Packet:
    """A packet as it comes by the port of a circuit."""
    return {**packet, **TAGS[port], "in_port": PORT_NO[port]}


@pytest.mark.parametrize("port", ["dl-far", "dl-rhone"])
@pytest.mark.parametrize(
    "packet",
    [
        {"eth_type": IP, "ipv4_src": "10.60.2.2", "ipv4_dst": CERN, "ip_dscp": 46},
        {"eth_type": IPV6, "ipv6_src": "2001:db8:60::2", "ipv6_dst": CERN_6, "ip_dscp": 0},
        {"eth_type": ARP, "arp_spa": "10.60.2.2", "arp_tpa": CERN},
        {"eth_type": IPV6, "ip_proto": ICMPV6, "icmpv6_type": 135, "ipv6_nd_target": CERN_6, "ipv6_src": "fe80::1"},
        {"eth_type": IPV6, "ip_proto": ICMPV6, "icmpv6_type": 136, "ipv6_dst": CERN_6, "ipv6_src": "fe80::1"},
    ],
    ids=["IPv4", "IPv6", "ARP", "solicitation", "advertisement"],
)
def test_what_a_far_site_sends_for_itself_is_not_given_back_by_its_other_circuit(port: str, packet: Packet) -> None:
    fake = delft(planned(2, NETWORK, DEFAULT_POLICY, PlanInput(())))
    assert fake.fate(came("dl-wan", packet)).output_port in (PORT_NO["dl-far"], PORT_NO["dl-rhone"])
    assert fake.fate(came(port, packet)).output_port is None
