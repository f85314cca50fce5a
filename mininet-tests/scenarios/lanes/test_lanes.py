"""Programs over two lanes in the lab: undisturbed, and when one of the circuits dies midway."""

import pytest

from mininet_tests.lab.played import played
from mininet_tests.lab.saturation import LEAST_IDLE_SHARE

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.timeout(1500)]
RATE = "100 Mbit/s"  # the times are those at 1 Gbit/s, for a tenth of the size
CASES = ("undisturbed", "north dies")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What one run of curl has come to."""
    asked = ["--program", "curl", "--rate", RATE, *(word for case in CASES for word in ("--case", case))]
    found = played(
        "scenarios.lanes.run",
        tmp_path_factory.mktemp("lanes"),
        *asked,
        dilation=6,
        timeout_s=1400,
        report="report.json",
    )
    assert found["idle_share"] >= LEAST_IDLE_SHARE, f"the CPU was full: idle {found['idle_share']:.1%}"
    assert len(found["runs"]) == len(CASES)
    return found


def test_both_lanes_are_used_in_order_and_the_rest_of_a_dead_one_moves(report):
    assert report["falls_short"] == [], report["aims"]
