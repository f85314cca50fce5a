"""Enforcement in the lab: whatever a misbehaving host sends, an urgent image arrives as if nobody had."""

import pytest

from mininet_tests.lab.played import played
from mininet_tests.scenarios.floods.aims import planned_bps
from mininet_tests.scenarios.floods.run import PARTNER, QUICK, SENDER

FLOODS = [case.name for case in QUICK if case.kind]

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.timeout(1200),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What one run of the floods at 100 Mbit/s has seen."""
    folder = tmp_path_factory.mktemp("floods")
    return played("scenarios.floods.run", folder, "--quick", dilation=2, timeout_s=1100, report="report.json")


def test_nothing_falls_short(report):
    assert report["falls_short"] == [], {name: report["aims"][name] for name in report["falls_short"]}


@pytest.mark.parametrize("name", FLOODS)
def test_every_flood_was_sent_and_has_its_aims(report, name):
    (seen,) = (case for case in report["cases"] if case["name"] == name)
    assert seen["kind"]
    assert f"{name}: image, times undisturbed" in report["aims"]


def test_it_was_undisturbed_twice(report):
    assert sum(not seen["kind"] for seen in report["cases"]) >= 2


def test_both_senders_have_the_same_rate(report):
    assert planned_bps(report, SENDER) == pytest.approx(planned_bps(report, PARTNER), rel=0.001)
