"""Enforcement in the lab: whatever a misbehaving host sends, an urgent image arrives as if nobody had."""

import re

import pytest

from mininet_tests.lab.played import played
from mininet_tests.lab.saturation import LEAST_IDLE_SHARE
from mininet_tests.scenarios.floods.run import PARTNER, QUICK, SENDER

FLOODS = [case.name for case in QUICK if case.kind]
UNPLANNED_METER = re.compile(r"(ls1|ch1) meter 1000")
PAIR_METER = re.compile(r"(ls1|ch1) meter 2\d\d\d")
MESSAGES_WITHOUT_A_FLOOD = 20  # echoes, and what the scenario itself asks for

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.timeout(3600),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What one run of the floods at 100 Mbit/s has seen."""
    folder = tmp_path_factory.mktemp("floods")
    return played("scenarios.floods.run", folder, "--quick", dilation=2, timeout_s=3500, report="report.json")


@pytest.fixture
def case(report, request):
    """What was seen of the case that a test is about."""
    (found,) = (seen for seen in report["cases"] if seen["name"] == request.param)
    return found


def about(*names):
    """Run a test for each of these cases."""
    return pytest.mark.parametrize("case", names, indirect=True, ids=str)


def planned_bps(report, host):
    """What a host's allocation is, bit/s of frames."""
    (found,) = (a for a in report["plan"]["installed"]["allocations"] if a["path"][0] == host)
    return found["payload_bps"] * 1514 / 1448


def test_the_virtual_cpu_had_time_for_all_of_it(report):
    assert min(seen["cpu_idle_share"] for seen in report["cases"]) > LEAST_IDLE_SHARE


def test_undisturbed_a_part_takes_what_its_rate_and_the_round_trip_take(report):
    seconds = [seen["urgent_s"] for seen in report["cases"] if not seen["kind"]]
    assert len(seconds) >= 2
    assert all(0.999 * report["limit_s"] <= s < 1.02 * report["limit_s"] for s in seconds)
    assert max(seconds) < 1.002 * min(seconds)


@about(*FLOODS)
def test_an_urgent_image_takes_as_long_as_undisturbed(case):
    assert case["ratio"] <= 1.01


@about(*FLOODS)
def test_no_planned_flow_sends_anything_again_and_no_queue_drops(case):
    assert case["retransmitted_segments"] == {}
    assert case["queue_drops_packets"] == {}


@about(*(name for name in FLOODS if "partner" not in name and "liar" not in name))
def test_a_stranger_has_what_is_unplanned_whatever_its_mark_name_or_kind(case, report):
    (direction,) = {"ch1->ls1" if case["name"].startswith("back") else "ls1->ch1"}
    unplanned_bps = report["plan"]["layers"][direction]["meters_frame_bps"]["unplanned"]
    assert case["flood_arrived_bps"] <= 1.5 * unplanned_bps
    assert all(UNPLANNED_METER.fullmatch(name) for name in case["meter_drops_packets"])


@about("liar-in-the-same-class")
def test_a_host_that_sends_more_than_its_allocation_has_its_allocation(case, report):
    allocated_bps = planned_bps(report, PARTNER)
    assert 0.95 * allocated_bps < case["flood_arrived_bps"] < 1.02 * allocated_bps
    assert planned_bps(report, SENDER) == pytest.approx(allocated_bps, rel=0.001)


@about("liar-in-the-same-class", "back-by-the-receiver-to-the-partner")
def test_what_a_planned_host_sends_too_much_its_own_meter_drops(case):
    assert case["meter_drops_packets"]
    assert all(PAIR_METER.fullmatch(name) for name in case["meter_drops_packets"])


@about(*FLOODS)
def test_the_controller_hears_nothing_of_a_flood(case):
    assert case["openflow_messages"] < MESSAGES_WITHOUT_A_FLOOD
