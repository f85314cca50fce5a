"""The ring in the lab: a flow over two circuits has its class on both, and nobody else loses by it."""

import pytest

from mininet_tests.lab.played import played

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(2600),
]


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What one run on the ring at 100 Mbit/s has seen."""
    return played(
        "scenarios.ring.run", tmp_path_factory.mktemp("ring"), dilation=2, timeout_s=1100, report="report.json"
    )


def test_flow_and_reservation_have_their_ways_rates_and_classes_on_every_circuit(seen):
    assert len(seen["round_trips_ms"]) == 5
    assert sum(seen["transit_bytes"].values()) > 20_000_000
    assert sum(seen["reserved"]["transit_bytes"].values()) > 15_000_000
    assert len(seen["links_read_back"]) == 8
    assert len(seen["pair"]["promises"]) == 4
    assert seen["falls_short"] == [], seen["aims"]


def test_a_reservation_between_hosts_begins_at_its_start_and_no_sooner(seen):
    reserved = seen["reserved"]
    assert reserved["states"][0] == "committed"
    assert reserved["states"][-1] == "active"
    assert reserved["active_after_s"] >= 5
