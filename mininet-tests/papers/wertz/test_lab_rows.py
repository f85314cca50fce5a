"""What is forecast of a held flow is what the lab has measured and published."""

import pytest

from mininet_tests.papers.wertz.lab_rows import LabRow, lab_rows, lab_shares
from mininet_tests.papers.wertz.lane_rows import OPENINGS, WHY_NOT, cases, lane_rows, not_forecast


@pytest.fixture(scope="module")
def rows():
    """All that the lab has measured, forecast: when it is asked for, not in each process that only looks for tests."""
    return [*lab_rows(), *lane_rows()]


def test_each_forecast_is_within_one_percent_or_half_a_round_trip_of_what_the_lab_measured(rows):
    assert {row.what: row.aim for row in rows if not row.aim.ok} == {}


def test_a_forecast_that_is_further_off_is_not():
    assert not LabRow("", "", 10.0, 10.2, 0.05).aim.ok
    assert not LabRow("", "", 0.157, 0.3, 0.09).aim.ok


def test_shares_of_a_circuit_are_within_two_thousandths_of_what_the_lab_measured():
    found = lab_shares()
    assert len(found) == 3
    assert all(aim.ok for aim in found.values()), found


def test_each_published_program_over_lanes_has_a_forecast_or_a_reason_why_not():
    assert {case.program for case in cases()} <= OPENINGS.keys() | WHY_NOT.keys()
    assert {case.program for case in cases()} >= {"curl", "gridftp", "rclone", "aria2-parts", "mptcp"}
    assert all(one["why"] for one in not_forecast().values())


def test_every_cell_without_losses_of_both_tables_is_forecast(rows):
    assert sum(row.what.startswith("tables 1 and 2") for row in rows) == 36
