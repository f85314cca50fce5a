"""What becomes of packets that a site which is not ours sends by its circuits."""

from collections.abc import Mapping

import pytest

from controller.plan.flows import flow_on
from controller.plan.keys import FlowId
from controller.plan.plan import Plan, PlanInput
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import network_in
from controller.plan.wiring import SeenPort, port_links, with_port_numbers
from controller.southbound.openflow.circuit_ports import QUEUE_ID, meter_id
from controller.southbound.openflow.desired import switch_state
from controller.southbound.openflow.messages import messages
from controller.southbound.openflow.state import SwitchState
from controller.southbound.openflow.tests.fake_switch import FakeSwitch, Packet
from mininet_tests.testing.networks import FILES
from topology.network import Hop, Network
from topology.protocol import FlowClass
from topology.yaml_text import read

IP, ARP, IPV6, ICMPV6 = 0x0800, 0x0806, 0x86DD, 58
OCEAN = Hop("dl1", "pt1")
PERTH = "10.50.2.10"
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
        {
            "eth_type": IPV6,
            "ip_proto": ICMPV6,
            "icmpv6_type": 135,
            "icmpv6_code": 0,
            "ipv6_nd_target": CERN_6,
            "ipv6_src": "fe80::1",
        },
        {
            "eth_type": IPV6,
            "ip_proto": ICMPV6,
            "icmpv6_type": 136,
            "icmpv6_code": 0,
            "ipv6_dst": CERN_6,
            "ipv6_src": "fe80::1",
        },
    ],
    ids=["IPv4", "IPv6", "ARP", "solicitation", "advertisement"],
)
def test_what_a_far_site_sends_for_itself_is_not_given_back_by_its_other_circuit(port: str, packet: Packet) -> None:
    fake = delft(planned(2, NETWORK, DEFAULT_POLICY, PlanInput(())))
    assert fake.fate(came("dl-wan", packet)).output_port in (PORT_NO["dl-far"], PORT_NO["dl-rhone"])
    assert fake.fate(came(port, packet)).output_port is None


def plan_of(*flows: tuple[FlowClass, str, str]) -> Plan:
    """The plan for flows of some classes between two hosts each, by the default way."""
    known = [flow_on(NETWORK, FlowId(f"{a}-{z}"), its, NETWORK.path(a, z)) for its, a, z in flows]
    return planned(2, NETWORK, DEFAULT_POLICY, PlanInput(tuple(known)))


def dscp_of(flow_class: FlowClass) -> int:
    """The mark of a class."""
    return DEFAULT_POLICY.classes[flow_class].dscp


@pytest.mark.parametrize("source", [CERN, "10.50.2.11", "10.50.1.11"], ids=["its own", "nobody's", "of a host here"])
@pytest.mark.parametrize("dscp", [0, dscp_of(FlowClass.URGENT), dscp_of(FlowClass.BACKGROUND)])
def test_a_mark_of_a_far_site_buys_nothing_on_another_circuit_of_ours(source: str, dscp: int) -> None:
    fake = delft(plan_of((FlowClass.URGENT, "dl-b", "pt-a"), (FlowClass.BACKGROUND, "pt-a", "dl-a")))
    fate = fake.fate(came("dl-far", {"eth_type": IP, "ipv4_src": source, "ipv4_dst": PERTH, "ip_dscp": dscp}))
    assert (fate.output_port, fate.queue_id) == (PORT_NO["dl-wan"], QUEUE_ID[FlowClass.UNPLANNED])
    assert fate.meter_ids == (meter_id(NETWORK, OCEAN, FlowClass.UNPLANNED),)
    assert fate.dscp == dscp_of(FlowClass.UNPLANNED)


@pytest.mark.parametrize("port", ["dl-far", "dl-rhone"])
@pytest.mark.parametrize(
    ("kind", "mark"),
    [
        ({"eth_type": IP, "ipv4_src": CERN, "ipv4_dst": PERTH, "ip_dscp": 0}, dscp_of(FlowClass.URGENT)),
        ({"eth_type": IP, "ipv4_src": CERN, "ipv4_dst": PERTH, "ip_dscp": 8}, dscp_of(FlowClass.URGENT)),
        ({"eth_type": ARP, "arp_spa": CERN, "arp_tpa": PERTH}, None),
    ],
    ids=["IP", "marked", "ARP"],
)
def test_what_a_far_site_answers_rides_in_the_class_of_what_it_answers(
    port: str, kind: Packet, mark: int | None
) -> None:
    fate = delft(plan_of((FlowClass.URGENT, "pt-a", "cern"))).fate(came(port, kind))
    assert (fate.output_port, fate.queue_id) == (PORT_NO["dl-wan"], QUEUE_ID[FlowClass.URGENT])
    assert fate.meter_ids == (meter_id(NETWORK, OCEAN, FlowClass.URGENT),)
    assert fate.dscp == mark


def test_what_another_edge_of_ours_has_sent_on_to_a_far_site_keeps_its_mark_and_was_policed_there() -> None:
    mark = dscp_of(FlowClass.URGENT)
    packet = {"eth_type": IP, "ipv4_src": PERTH, "ipv4_dst": CERN, "ip_dscp": mark}
    fate = delft(plan_of((FlowClass.URGENT, "pt-a", "cern"))).fate(came("dl-wan", packet))
    assert (fate.output_port, fate.queue_id) == (PORT_NO["dl-far"], QUEUE_ID[FlowClass.URGENT])
    assert (fate.meter_ids, fate.dscp) == ((), None)


def test_what_a_far_site_sends_to_a_host_of_the_switch_leaves_as_it_is() -> None:
    packet = {"eth_type": IP, "ipv4_src": CERN, "ipv4_dst": "10.50.1.11", "ip_dscp": 46}
    fate = delft(plan_of((FlowClass.URGENT, "dl-b", "cern"))).fate(came("dl-far", packet))
    assert (fate.output_port, fate.meter_ids, fate.dscp) == (PORT_NO["dl-b"], (), None)
