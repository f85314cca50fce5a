"""Lanes of hosts that have IPv6, alone or beside IPv4: promises, rules, allocations, and a circuit's death."""

from datetime import datetime

import pytest
from fastapi.testclient import TestClient

from controller.northbound.tests.site import api_of, send_by_both_lanes
from controller.plan.announcements import HANDOVER_US
from controller.plan.invariant import violations
from controller.plan.policy import DEFAULT_POLICY
from controller.promise_watch import PromiseWatch
from controller.southbound.openflow.circuit_ports import QUEUE_ID
from controller.southbound.openflow.desired import switch_state
from controller.southbound.openflow.messages import messages
from controller.southbound.openflow.state import SwitchState
from controller.southbound.openflow.tests.fake_switch import FakeSwitch
from controller.tests.fakes import FakeSite
from mininet_tests.testing.networks import two_lanes_of
from topology.protocol import FlowClass

SIZE_BYTES = 2_688_000_000
IMAGE = {"id": "image", "bytes": SIZE_BYTES, "from": ["base20"], "to": "arch", "lanes": 2}
NORTH_AT_LS1, SOUTH_AT_LS1 = 8, 9
ETH0, ETH1, ARCH = "2001:db8:1::20", "2001:db8:1::120", ("2001:db8:2::100", "2001:db8:2::200")
IPV6, TCP = 0x86DD, 6
FRAME_BITS = 8 * 1538  # on the wire, of 1500 bytes
PAYLOAD_BYTES = {(4,): 1448, (6,): 1428, (4, 6): 1428}  # of one: IPv6's header is 20 bytes longer (RFC 8200)


def site_of(*families: int) -> FakeSite:
    """A site whose hosts have addresses of these families, and whose agents are there."""
    found = FakeSite(two_lanes_of(*families), ())
    found.attach_all()
    found.converge()
    return found


@pytest.fixture(params=[(6,), (4, 6)], ids=["ipv6", "both"])
def families(request):
    return request.param


@pytest.fixture
def site(families):
    return site_of(*families)


@pytest.fixture
def client(site):
    return TestClient(api_of(site))


def told(site, host):
    return [allocations for name, allocations in site.hosts.sent if name == host][-1]


def switch_of(site):
    """The switch in Chile with the plan's rules in it."""
    network, fake = site.state.site.network, FakeSwitch()
    wanted = switch_state(network, network.switches[0], site.reports.view().desired, DEFAULT_POLICY)
    for message in messages(wanted, SwitchState()):
        fake.apply(message)
    return fake


def fate(switch, source, target, in_port):
    packet = {"eth_type": IPV6, "ipv6_src": source, "ipv6_dst": target, "ip_proto": TCP, "ip_dscp": 0}
    return switch.fate(packet | {"in_port": in_port})


def wire_bits(made):
    """What a promise's lanes carry together by their rates, bits on the wire."""
    return sum(rate["rate_bps"] * lasts_s(rate) for lane in made["lanes"] for rate in lane["rates"])


def lasts_s(rate):
    """How long it counts: it is planned a moment sooner."""
    begin, end = (datetime.fromisoformat(rate[name]) for name in ("from", "until"))
    return (end - begin).total_seconds() - HANDOVER_US / 1e6


def test_a_promise_over_ipv6_counts_the_longer_header_of_each_packet(client, families):
    made = client.post("/v1/announcements", json=IMAGE).json()
    assert [lane["host"] for lane in made["lanes"]] == ["base20", "base20.eth1"]
    assert ["north" in lane["path"] for lane in made["lanes"]] == [True, False]
    assert sum(lane["bytes"] for lane in made["lanes"]) == SIZE_BYTES
    by_ipv4 = TestClient(api_of(site_of(4))).post("/v1/announcements", json=IMAGE).json()
    for promise, payload_bytes in ((made, PAYLOAD_BYTES[families]), (by_ipv4, PAYLOAD_BYTES[4,])):
        assert wire_bits(promise) == pytest.approx(SIZE_BYTES / payload_bytes * FRAME_BITS, rel=1e-6)
    assert made["promised_in_s"] > by_ipv4["promised_in_s"]


def test_packets_of_each_interface_have_the_meter_and_the_circuit_of_their_lane(client, site):
    client.post("/v1/announcements", json=IMAGE)
    send_by_both_lanes(site)
    switch = switch_of(site)
    for target in ARCH:
        north, south = fate(switch, ETH0, target, 1), fate(switch, ETH1, target, 2)
        assert (north.output_port, south.output_port) == (NORTH_AT_LS1, SOUTH_AT_LS1)
        assert [one.queue_id for one in (north, south)] == [QUEUE_ID[FlowClass.URGENT]] * 2
        assert north.meter_ids
        assert south.meter_ids
        assert set(north.meter_ids).isdisjoint(south.meter_ids)
    assert not violations(site.reports.view().layers)


def test_an_allocation_of_a_lane_names_the_addresses_of_its_interface(client, site, families):
    client.post("/v1/announcements", json=IMAGE)
    send_by_both_lanes(site)
    known = {4: ("10.20.20.20/32", "10.20.20.120/32"), 6: (f"{ETH0}/128", f"{ETH1}/128")}
    dealt = {one.name: (one.lanes, [str(own) for own in one.sources]) for one in told(site, "base20").entries}
    assert dealt == {
        "image/base20": ("image", [known[family][0] for family in families]),
        "image/base20.eth1": ("image", [known[family][1] for family in families]),
    }
    dests = {str(dest) for one in told(site, "base20").entries for dest in (one.dest, *one.also)}
    assert {f"{address}/128" for address in ARCH} <= dests


def test_a_receiver_that_connects_is_told_all_addresses_of_each_lane(client, site, families):
    made = client.post("/v1/announcements", json=IMAGE | {"connects": "receiver"}).json()
    site.converge()
    known = {4: ("10.20.20.20/32", "10.20.20.120/32"), 6: (f"{ETH0}/128", f"{ETH1}/128")}
    assert [([str(one) for one in lane.addresses], lane.size_bytes) for lane in told(site, "arch").called] == [
        ([known[family][number] for family in families], made["lanes"][number]["bytes"]) for number in (0, 1)
    ]


@pytest.mark.parametrize(("dies", "stays"), [(NORTH_AT_LS1, SOUTH_AT_LS1), (SOUTH_AT_LS1, NORTH_AT_LS1)])
def test_both_lanes_go_by_the_circuit_that_is_left_and_the_promise_is_late_at_once(client, site, dies, stays):
    made = client.post("/v1/announcements", json=IMAGE).json()
    send_by_both_lanes(site)
    site.port_said(1, dies, is_live=False)
    site.converge()
    switch = switch_of(site)
    fates = [fate(switch, source, ARCH[0], port) for source, port in ((ETH0, 1), (ETH1, 2))]
    assert [one.output_port for one in fates] == [stays] * 2
    assert len({one.meter_ids[0] for one in fates}) == 2, "each lane has a meter; that of the circuit's class is both's"
    site.use_cases.tick()
    PromiseWatch(site.state).look()
    (late,) = [event for event in site.state.events.since(0).events if event.name == "announcement.late"]
    fields = dict(late.fields)
    assert fields["announcement"] == made["id"]
    assert fields["promised"] == made["promised"] < fields["expected"]


@pytest.mark.parametrize(("families", "eth1"), [((4,), (6,)), ((6,), (4,))])
def test_interfaces_without_a_family_in_common_are_no_lanes(families, eth1):
    network = two_lanes_of(*families, eth1=eth1)
    answer = TestClient(api_of(FakeSite(network, ()))).post("/v1/announcements", json=IMAGE)
    assert (answer.status_code, answer.json()["field"]) == (422, "lanes")
    assert "no two interfaces of base20 have a family of IP in common that arch has too" in answer.json()["detail"]


@pytest.mark.parametrize(("families", "eth1"), [((4, 6), (6,)), ((4,), (4, 6)), ((6,), (4, 6))])
def test_one_family_in_common_is_enough_for_lanes(families, eth1):
    client = TestClient(api_of(FakeSite(two_lanes_of(*families, eth1=eth1), ())))
    answer = client.post("/v1/announcements", json=IMAGE)
    assert answer.status_code == 201, answer.text
    assert [lane["host"] for lane in answer.json()["lanes"]] == ["base20", "base20.eth1"]
