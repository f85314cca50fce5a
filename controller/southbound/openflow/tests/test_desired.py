"""What a plan means on a switch, asked of a switch: where does this packet go, through which meter and queue?"""

from dataclasses import replace
from ipaddress import IPv4Address

import pytest

from controller.plan.flows import flow_on
from controller.plan.plan import PlanInput, Selector
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import DATABASE, IMAGE, RAW_IMAGES, flow, plan_of
from controller.southbound.openflow.circuit_ports import QUEUE_ID, meter_id
from controller.southbound.openflow.desired import switch_state
from controller.southbound.openflow.messages import messages
from controller.southbound.openflow.state import SwitchState
from controller.southbound.openflow.tests.fake_switch import FakeSwitch
from controller.southbound.ovsdb.desired_queues import port_queues
from controller.southbound.ovsdb.queues import check_queues
from mininet_tests.testing.networks import chile_illinois
from topology.network import Hop, Host, Link, Network, Switch
from topology.protocol import FlowClass
from topology.relinking import tagged
from topology.wire import Framing

NETWORK = chile_illinois()
CHILE, ILLINOIS = NETWORK.switches
TAGGED = tagged(NETWORK, {"chile-illinois": 300})
MARK = 0b000111  # of the local-use pool (RFC 2474 section 6)
BESIDE = replace(flow(FlowClass.BACKGROUND, "base20"), name="beside", selector=Selector(dest_port=873), mark=MARK)
ASKED = {"in_port": 1, "eth_type": 0x0806, "arp_spa": "10.20.20.20", "arp_tpa": "10.20.20.100"}
WAN_PORT, VID, PRESENT = 9, 300, 0x1000
PORT_OF = {f"base{n}": n - 19 for n in range(20, 24)}


def switch(which=CHILE, flows=(DATABASE, RAW_IMAGES), network=NETWORK):
    """A switch that holds the plan for these flows."""
    fake = FakeSwitch()
    plan = plan_of(*flows, network=network)
    for message in messages(switch_state(network, which, plan, DEFAULT_POLICY), SwitchState()):
        fake.apply(message)
    return fake


def packet(source, target, port=1, **more):
    """An IP packet between two hosts, or from an address nobody knows."""
    addresses = {h.name: str(h.ip) for h in NETWORK.hosts}
    fields = {"in_port": port, "eth_type": 0x0800, "ipv4_src": addresses.get(source, source)}
    return fields | {"ipv4_dst": addresses.get(target, target), "ip_proto": 6, "tcp_src": 4000, "tcp_dst": 5001} | more


@pytest.mark.parametrize(
    ("host", "flow_class"), [("base22", FlowClass.PREDICTABLE), ("base23", FlowClass.BACKGROUND)], ids=str
)
def test_an_allocated_flow_crosses_the_circuit_in_its_class(host, flow_class):
    fate = switch().fate(packet(host, "arch", port=PORT_OF[host]))
    assert (fate.output_port, fate.queue_id, fate.meter_ids[-1], fate.dscp) == (
        WAN_PORT,
        QUEUE_ID[flow_class],
        meter_id(NETWORK, ("ls1", "ch1"), flow_class),
        DEFAULT_POLICY.classes[flow_class].dscp,
    )


def test_an_announced_image_is_urgent_and_before_it_is_announced_it_is_not():
    assert switch().fate(packet("base20", "arch")).queue_id == QUEUE_ID[FlowClass.UNPLANNED]
    assert switch(flows=IMAGE).fate(packet("base20", "arch")).queue_id == QUEUE_ID[FlowClass.URGENT]


def test_a_dscp_that_a_host_sets_itself_buys_nothing():
    fate = switch().fate(packet("base21", "arch", port=2, ip_dscp=46))
    assert (fate.queue_id, fate.dscp) == (QUEUE_ID[FlowClass.UNPLANNED], 0)


def test_a_stranger_is_unplanned_and_policed():
    fate = switch().fate(packet("10.20.20.77", "arch"))
    assert fate.meter_ids == (meter_id(NETWORK, ("ls1", "ch1"), FlowClass.UNPLANNED),)


def test_answers_ride_in_the_class_of_their_flow():
    fate = switch(ILLINOIS).fate(packet("arch", "base23"))
    assert (fate.output_port, fate.queue_id) == (WAN_PORT, QUEUE_ID[FlowClass.BACKGROUND])


def test_what_another_edge_has_policed_passes_to_its_host_untouched():
    fate = switch(ILLINOIS).fate(packet("base23", "arch", port=WAN_PORT))
    assert (fate.output_port, fate.meter_ids, fate.dscp) == (1, (), None)


def test_traffic_inside_the_site_is_nobodys_business():
    fate = switch().fate(packet("base20", "base21"))
    assert (fate.output_port, fate.meter_ids) == (2, ())


def test_who_uses_a_planned_host_s_address_from_another_port_is_a_stranger():
    fate = switch(flows=IMAGE).fate(packet("base20", "arch", port=4))
    assert (fate.queue_id, fate.meter_ids) == (
        QUEUE_ID[FlowClass.UNPLANNED],
        (meter_id(NETWORK, ("ls1", "ch1"), FlowClass.UNPLANNED),),
    )


def asks(source, target, port):
    """An ARP request."""
    addresses = {h.name: str(h.ip) for h in NETWORK.hosts}
    fields = {"in_port": port, "eth_type": 0x0806, "arp_spa": addresses.get(source, source)}
    return fields | {"arp_tpa": addresses[target]}


def told_apart(*flows):
    """A switch with what several promises of base20 and the archive come to, and what meets it there."""
    fake = switch(flows=flows)
    marked, rest, arp = (
        fake.fate(p) for p in (packet("base20", "arch", ip_dscp=MARK), packet("base20", "arch", ip_dscp=0), ASKED)
    )
    return fake, marked, rest, arp


def test_two_promises_of_one_pair_are_told_apart_by_the_mark_and_each_has_its_class_and_its_meter():
    _, marked, rest, arp = told_apart(IMAGE[0], BESIDE)
    assert (marked.queue_id, rest.queue_id) == (QUEUE_ID[FlowClass.BACKGROUND], QUEUE_ID[FlowClass.URGENT])
    assert (marked.dscp, rest.dscp) == tuple(
        DEFAULT_POLICY.classes[c].dscp for c in (FlowClass.BACKGROUND, FlowClass.URGENT)
    )
    assert marked.meter_ids[1:] == (meter_id(NETWORK, ("ls1", "ch1"), FlowClass.BACKGROUND),)
    assert marked.meter_ids[0] != rest.meter_ids[0] == arp.meter_ids[0]


def test_beside_a_promise_for_one_port_alone_everything_else_of_the_pair_is_unplanned_and_arp_rides_with_it():
    _, marked, rest, arp = told_apart(BESIDE)
    assert marked.queue_id == arp.queue_id == QUEUE_ID[FlowClass.BACKGROUND]
    assert marked.meter_ids[0] == arp.meter_ids[0]
    assert rest.queue_id == QUEUE_ID[FlowClass.UNPLANNED]
    assert rest.meter_ids == (meter_id(NETWORK, ("ls1", "ch1"), FlowClass.UNPLANNED),)


def test_a_mark_that_is_another_pair_s_buys_nothing():
    fake, *_ = told_apart(BESIDE)
    assert fake.fate(packet("base21", "arch", port=2, ip_dscp=MARK)).queue_id == QUEUE_ID[FlowClass.UNPLANNED]


def test_a_site_of_400_hosts_that_sends_to_400_fits_a_table_of_4000_rules():
    network = many(400)
    flows = [
        flow_on(network, f"f{n}", FlowClass.URGENT, network.path(f"here{n}", f"there{(7 * n) % 400}"))
        for n in range(400)
    ]
    plan = planned(2, network, DEFAULT_POLICY, PlanInput(tuple(flows)))
    assert len(plan.entries) == 400
    for which in network.switches:
        state = switch_state(network, which, plan, DEFAULT_POLICY)
        assert len(state.rules) < 4000
        assert len(state.meters) == 400 + 4
        assert len({rule.key for rule in state.rules}) == len(state.rules)


def many(count):
    """Two sites of as many hosts each."""
    sites = [("here", IPv4Address("10.1.0.0")), ("there", IPv4Address("10.2.0.0"))]
    hosts = [
        Host(f"{site}{n}", site, first + n + 1, f"02:00:00:{k:02x}:{n >> 8:02x}:{n & 255:02x}")
        for k, (site, first) in enumerate(sites)
        for n in range(count)
    ]
    network = Network("many", Framing(), (*hosts, Switch("s0", "here", 1), Switch("s1", "there", 2)))
    for host in hosts:
        number = int(host.name.removeprefix(host.site)) + 10
        switch_name = "s0" if host.site == "here" else "s1"
        ends = Link(10**10, 0, 10**6, 1, "eth0"), Link(10**10, 0, 10**6, number, f"p{number}")
        network.add_trunk(host.name, switch_name, *ends)
    wan = Link(10**12, 1000, 10**6, 1, "wan", circuit="wide")
    network.add_trunk("s0", "s1", wan, wan)
    return network


def test_arp_reaches_the_host_that_is_asked_for():
    assert switch().fate(asks("base20", "arch", 1)).output_port == WAN_PORT
    assert switch().fate(asks("base20", "base21", 1)).output_port == 2
    assert switch().fate(asks("arch", "base21", WAN_PORT)).output_port == 2


def test_arp_between_planned_hosts_shares_their_meter_and_their_queue():
    fates = [switch(flows=IMAGE).fate(p) for p in (asks("base20", "arch", 1), packet("base20", "arch"))]
    assert [f.queue_id for f in fates] == [QUEUE_ID[FlowClass.URGENT]] * 2
    assert fates[0].meter_ids[0] == fates[1].meter_ids[0]
    assert fates[0].dscp is None


@pytest.mark.parametrize("target", ["arch", "base21"])
@pytest.mark.parametrize(("name_of", "port"), [("base20", 4), ("base20", WAN_PORT), ("arch", 4)])
def test_arp_in_a_known_host_s_name_ends_unless_it_comes_from_where_the_host_is(name_of, port, target):
    assert switch(flows=IMAGE).fate(asks(name_of, target, port)).output_port is None


def test_the_arp_of_a_stranger_is_policed_with_all_that_is_unplanned():
    fate = switch(flows=IMAGE).fate(asks("10.20.20.77", "arch", 5))
    assert (fate.queue_id, fate.meter_ids) == (
        QUEUE_ID[FlowClass.UNPLANNED],
        (meter_id(NETWORK, ("ls1", "ch1"), FlowClass.UNPLANNED),),
    )


def test_what_is_neither_ip_nor_arp_ends_here():
    assert switch().fate({"in_port": 1, "eth_type": 0x86DD}).output_port is None


def test_the_queues_of_the_circuit_port_can_be_set_and_sum_to_no_more_than_the_port():
    (queues,) = port_queues(NETWORK, CHILE, plan_of(DATABASE, RAW_IMAGES, *IMAGE)).values()
    check_queues(queues)
    assert sum(q.min_bps for q in queues.queues) <= queues.port_max_bps


def test_only_circuit_ports_have_queues():
    assert list(port_queues(NETWORK, ILLINOIS, plan_of())) == ["ch1-wan"]


def tagged_switch(which=CHILE):
    """A switch whose circuit is handed over as a VLAN."""
    return switch(which, network=TAGGED)


def test_what_leaves_by_a_circuit_in_a_vlan_has_its_tag_and_the_meter_and_queue_it_would_have_without():
    for host in ("base20", "base22", "base23", "10.20.20.77"):
        plain, fate = switch().fate(packet(host, "arch")), tagged_switch().fate(packet(host, "arch"))
        assert (plain.vlan_vids, fate.vlan_vids) == ((), (VID,))
        assert (fate.meter_ids, fate.queue_id, fate.dscp) == (plain.meter_ids, plain.queue_id, plain.dscp)
        assert fate.output_port == WAN_PORT


def test_what_arrives_in_the_circuits_vlan_reaches_its_host_without_the_tag():
    fate = tagged_switch(ILLINOIS).fate(packet("base23", "arch", port=WAN_PORT, vlan_vid=PRESENT | VID))
    assert (fate.output_port, fate.vlan_vids, fate.meter_ids, fate.dscp) == (1, (), (), None)


@pytest.mark.parametrize("tag", [{}, {"vlan_vid": PRESENT | 301}], ids=["none", "another"])
def test_what_arrives_on_the_circuits_port_outside_its_vlan_ends_there(tag):
    assert tagged_switch(ILLINOIS).fate(packet("base23", "arch", port=WAN_PORT, **tag)).output_port is None


@pytest.mark.parametrize("vlan_vid", [VID, 301])
def test_what_a_host_has_tagged_itself_does_not_reach_a_circuit_in_a_vlan(vlan_vid):
    assert tagged_switch().fate(packet("base23", "arch", vlan_vid=PRESENT | vlan_vid)).output_port is None


def test_arp_crosses_a_circuit_in_a_vlan_both_ways():
    asked = {"eth_type": 0x0806, "arp_spa": "10.20.20.20", "arp_tpa": str(NETWORK.host("arch").ip)}
    sent = tagged_switch().fate(asked | {"in_port": 1})
    assert (sent.output_port, sent.vlan_vids) == (WAN_PORT, (VID,))
    received = tagged_switch(ILLINOIS).fate(asked | {"in_port": WAN_PORT, "vlan_vid": PRESENT | VID})
    assert (received.output_port, received.vlan_vids) == (1, ())


def test_a_tag_makes_the_same_circuit_narrower_by_its_four_bytes_in_every_layer_above():
    plain, fewer = (
        plan_of(DATABASE, RAW_IMAGES, network=network).links[Hop("ls1", "ch1")] for network in (NETWORK, TAGGED)
    )
    assert fewer.circuit_bps == 10**9 * 1514 // 1542 < plain.circuit_bps == 10**9 * 1514 // 1538
    for flow_class, limits in fewer.classes.items():
        assert limits.queue_bps == limits.wire_bps * 1514 // 1542 < plain.classes[flow_class].queue_bps
