"""The hand-over in the lab: how long the circuit is idle when an image comes and goes."""

import pytest

from mininet_tests.lab.played import played

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.timeout(1200),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What came of an image on a warm and on a new connection, at 500 Mbit/s."""
    folder = tmp_path_factory.mktemp("handover")
    return played("scenarios.handover.run", folder, dilation=6, timeout_s=1100, report="report.json")


def test_the_run_is_valid(report):
    assert report["valid"], report["cpu"]


def test_the_circuit_is_idle_for_milliseconds_only_nothing_is_lost_and_the_promise_is_kept(report):
    assert [variant["connection"] for variant in report["variants"]] == ["warm", "fresh"]
    assert report["falls_short"] == [], report["aims"]
