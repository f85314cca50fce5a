"""The hand-over in the lab: how long the circuit is idle when an image comes and goes."""

import pytest

from mininet_tests.lab.played import played

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.timeout(1800),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What came of an image on a warm and on a new connection, at 500 Mbit/s."""
    folder, ours = tmp_path_factory.mktemp("handover"), ("--order", "demand")
    return played("scenarios.handover.run", folder, *ours, dilation=6, timeout_s=1700, report="report.json")


def test_the_run_is_valid(report):
    assert report["valid"], report["cpu"]


# Seen: 15 to 25 ms, and 20 to 35 ms, in bins of 5 ms; the aim is 20. The cautious order takes 190 to 425 ms.
@pytest.mark.parametrize(("change", "most_ms"), [("start_gap_ms", 30), ("end_gap_ms", 45)])
@pytest.mark.parametrize("connection", ["warm", "fresh"])
def test_the_circuit_is_idle_for_milliseconds_only(report, connection, change, most_ms):
    (variant,) = (v for v in report["variants"] if v["connection"] == connection)
    assert variant[change] <= most_ms, variant


def test_nothing_is_lost_by_the_change_of_hands(report):
    assert [(v["drops"], v["retransmitted_segments"]) for v in report["variants"]] == [(0, 0), (0, 0)]
    assert report["violations"] == 0


def test_the_promise_is_kept(report):
    for variant in report["variants"]:
        assert variant["seconds"] <= variant["promised_seconds"]
