"""The ring in the lab: a flow over two circuits has its class on both, and nobody else loses by it."""

import pytest

from mininet_tests.lab.played import played
from mininet_tests.scenarios.ring.run import VLAN_VIDS
from topology.named import asc_ring
from topology.network import tagged
from topology.wire import Layer, converted_bps

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What one run on the ring at 100 Mbit/s has seen."""
    return played("scenarios.ring.run", tmp_path_factory.mktemp("ring"), timeout_s=600, report="ring.json")


def test_what_nobody_has_planned_crosses_both_circuits_in_their_delay(seen):
    network = asc_ring(delay_us=20_000)
    rtt_ms = network.path_rtt_us(network.path("albu20", "pop20")) / 1000
    assert len(seen["round_trips_ms"]) == 5
    assert rtt_ms <= min(seen["round_trips_ms"]) < rtt_ms + 1


def test_a_flow_over_two_circuits_gets_what_the_plan_gives_it(seen):
    (allocation,) = seen["plan"]["installed"]["allocations"]
    assert allocation["path"] == ["albu10", "albu1", "losa1", "pop1", "pop10"]
    assert 0.99 * allocation["payload_bps"] < seen["received_payload_bps"] <= 1.001 * allocation["payload_bps"]


def test_where_the_second_circuit_begins_it_is_in_its_class_again(seen):
    bytes_of = seen["transit_bytes"]
    assert bytes_of["background"] > 0.99 * sum(bytes_of.values()) > 20_000_000


def test_every_direction_of_every_circuit_keeps_the_plan(seen):
    assert len(seen["links_read_back"]) == 8
    assert seen["violations"] == []


def test_a_reservation_between_hosts_begins_at_its_start_goes_its_own_way_and_ends_when_it_is_given_back(seen):
    reserved = seen["reserved"]
    assert reserved["states"][0] == "committed"
    assert reserved["states"][-1] == "active"
    assert reserved["active_after_s"] >= 5
    assert reserved["path"] == ["albu20", "albu1", "live1", "pop1", "pop20"]
    assert reserved["released"] == "released"


def test_a_transfer_under_a_reservation_gets_its_rate_in_its_class_on_both_circuits(seen):
    reserved = seen["reserved"]
    framing = tagged(asc_ring(), VLAN_VIDS).framing_of(tuple(reserved["path"]))
    payload_bps = converted_bps(40_000_000, Layer.WIRE, Layer.PAYLOAD, framing)
    assert 0.985 * payload_bps < reserved["received_payload_bps"] <= 1.001 * payload_bps
    assert reserved["transit_bytes"]["urgent"] > 0.99 * sum(reserved["transit_bytes"].values()) > 15_000_000
    assert reserved["violations"] == []
