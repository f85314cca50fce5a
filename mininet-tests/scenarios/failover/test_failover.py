"""Two circuits in the lab: what becomes of urgent, predictable and background traffic when one of them dies."""

import pytest

from mininet_tests.lab.played import is_long_tier, played
from mininet_tests.lab.saturation import LEAST_IDLE_SHARE
from mininet_tests.scenarios.failover.run import CASES, PORTS

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(2400),
]
AT_BOTH_ENDS = "both"  # as a fibre is cut; the others are in the long tier
EACH = [case if case == AT_BOTH_ENDS else pytest.param(case, marks=pytest.mark.long) for case in CASES]


@pytest.fixture(scope="module")
def report(request, tmp_path_factory):
    """What one run has come to: of all cases in the long tier, and else of one."""
    cases = [*CASES] if is_long_tier(request) else [AT_BOTH_ENDS]
    found = played(
        "scenarios.failover.run",
        tmp_path_factory.mktemp("failover"),
        *(argument for case in cases for argument in ("--case", case)),
        dilation=3,
        timeout_s=1700,
        report="report.json",
    )
    assert found["idle_share"] >= LEAST_IDLE_SHARE, f"the CPU was full: idle {found['idle_share']:.1%}"
    return found


@pytest.mark.parametrize("case", EACH)
def test_urgent_and_predictable_traffic_is_back_at_its_plan_and_nothing_else_falls_short(report, case):
    aims = {name: aim for name, aim in report["aims"].items() if name.startswith(f"{case}: ")}
    assert len(aims) >= 8
    assert {name: aim for name, aim in aims.items() if not aim["ok"]} == {}


def test_nothing_falls_short_that_is_of_no_case(report):
    assert report["falls_short"] == [], report["aims"]


@pytest.mark.parametrize("case", EACH)
def test_the_plan_in_force_is_the_one_that_was_ready(report, case):
    assert set(report["cases"][case]["planned_payload_bps"]) == set(PORTS)
