"""Two circuits in the lab: what becomes of urgent, predictable and background traffic when one of them dies."""

import pytest

from mininet_tests.lab.played import played
from mininet_tests.lab.saturation import LEAST_IDLE_SHARE
from mininet_tests.scenarios.failover.run import CASES, PORTS

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(1500),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What one run of all cases has come to."""
    found = played(
        "scenarios.failover.run", tmp_path_factory.mktemp("failover"), dilation=3, timeout_s=1200, report="report.json"
    )
    assert found["idle_share"] >= LEAST_IDLE_SHARE, f"the CPU was full: idle {found['idle_share']:.1%}"
    return found


def test_urgent_and_predictable_traffic_is_back_at_its_plan_and_nothing_else_falls_short(report):
    assert set(report["cases"]) == set(CASES)
    assert report["falls_short"] == [], report["aims"]


@pytest.mark.parametrize("case", CASES)
def test_the_plan_in_force_is_the_one_that_was_ready(report, case):
    seen = report["cases"][case]
    assert set(seen["planned_payload_bps"]) == set(PORTS)
