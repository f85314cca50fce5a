"""Two circuits in the lab: what becomes of urgent, predictable and background traffic when one of them dies."""

import pytest

from mininet_tests.lab.played import played
from mininet_tests.lab.saturation import LEAST_IDLE_SHARE
from mininet_tests.scenarios.failover.run import CASES, PORTS

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(1500),
]
AT_BOTH_ENDS = "both"  # as a fibre is cut; the others are in the long tier


@pytest.fixture(
    scope="module",
    params=[
        (AT_BOTH_ENDS,),
        pytest.param(tuple(case for case in CASES if case != AT_BOTH_ENDS), marks=pytest.mark.long),
    ],
    ids=["at both ends", "at one end"],
)
def report(request, tmp_path_factory):
    """What one run of some cases has come to."""
    asked = [argument for case in request.param for argument in ("--case", case)]
    found = played(
        "scenarios.failover.run",
        tmp_path_factory.mktemp("failover"),
        *asked,
        dilation=3,
        timeout_s=1200,
        report="report.json",
    )
    assert found["idle_share"] >= LEAST_IDLE_SHARE, f"the CPU was full: idle {found['idle_share']:.1%}"
    assert set(found["cases"]) == set(request.param)
    return found


def test_urgent_and_predictable_traffic_is_back_at_its_plan_and_nothing_else_falls_short(report):
    assert report["falls_short"] == [], report["aims"]


def test_the_plan_in_force_is_the_one_that_was_ready(report):
    assert all(set(seen["planned_payload_bps"]) == set(PORTS) for seen in report["cases"].values())
