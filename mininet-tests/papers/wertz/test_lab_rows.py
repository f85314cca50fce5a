"""What is forecast of a held flow is what the lab has measured and published."""

import pytest

from mininet_tests.papers.wertz.lab_rows import LabRow, lab_rows, lab_shares

ROWS = lab_rows()


@pytest.mark.parametrize("row", ROWS, ids=[row.what for row in ROWS])
def test_a_forecast_is_within_one_percent_or_half_a_round_trip_of_what_the_lab_measured(row):
    assert row.aim.ok, row.aim


def test_a_forecast_that_is_further_off_is_not():
    assert not LabRow("", "", 10.0, 10.2, 0.05).aim.ok
    assert not LabRow("", "", 0.157, 0.3, 0.09).aim.ok


def test_shares_of_a_circuit_are_within_two_thousandths_of_what_the_lab_measured():
    found = lab_shares()
    assert len(found) == 3
    assert all(aim.ok for aim in found.values()), found
