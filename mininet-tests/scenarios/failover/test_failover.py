"""Two circuits in the lab: what becomes of urgent, predictable and background traffic when one of them dies."""

import pytest

from mininet_tests.lab.played import played
from mininet_tests.lab.saturation import LEAST_IDLE_SHARE
from mininet_tests.scenarios.failover.run import BACKGROUND, CASES, PORTS, PREDICTABLE, URGENT

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


@pytest.mark.parametrize("case", CASES)
def test_urgent_traffic_is_back_at_its_plan(report, case):
    seen = report["cases"][case]
    print(f"{case}: back after {seen['back_at_plan_ms']} ms, aim {seen['allowed_ms']:g} ms")
    assert seen["back_at_plan_ms"][URGENT] is not None
    assert seen["back_at_plan_ms"][URGENT] <= seen["allowed_ms"]


@pytest.mark.parametrize("case", CASES)
def test_the_plan_in_force_is_the_one_that_was_ready(report, case):
    seen = report["cases"][case]
    assert seen["planned_payload_bps"] == seen["prepared_payload_bps"]
    assert set(seen["planned_payload_bps"]) == set(PORTS)


@pytest.mark.parametrize("case", CASES)
def test_what_was_planned_on_the_circuit_that_stays_loses_nothing(report, case):
    seen = report["cases"][case]
    assert seen["least_share_of_plan"][BACKGROUND] > 0.9
    assert seen["retransmitted_segments"]["while_down"][BACKGROUND] == 0


@pytest.mark.parametrize("case", CASES)
def test_predictable_traffic_is_protected_too(report, case):
    seen = report["cases"][case]
    assert seen["back_at_plan_ms"][PREDICTABLE] is not None
    assert seen["back_at_plan_ms"][PREDICTABLE] <= seen["allowed_ms"]


@pytest.mark.parametrize("case", CASES)
def test_the_return_loses_nothing(report, case):
    seen = report["cases"][case]
    assert seen["retransmitted_segments"]["on_return"] == dict.fromkeys(PORTS, 0)
    assert not any(seen["edge_drops"]["on_return"].values())


def test_no_layer_lets_through_more_than_the_next(report):
    assert not any(seen["violations"] for seen in report["cases"].values())
