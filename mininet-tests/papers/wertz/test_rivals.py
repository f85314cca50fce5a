"""What is printed of others' flows has in it what the lab has published of rivals."""

import pytest

from controller.whatif.response import ALGORITHMS
from mininet_tests.papers.wertz.rivals import RivalRow, rival_aims, rival_rows

ROWS = rival_rows()


def test_there_is_a_row_for_each_rival_that_was_published_of_an_algorithm_that_is_known():
    assert {row.name for row in ROWS} == {f"{name} x {streams}" for name in ALGORITHMS for streams in (1, 8, 27, 64)}


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_what_was_measured_of_a_rival_is_within_the_range_that_is_printed(row):
    assert row.aim.ok, row.aim


def test_a_range_that_a_rival_is_outside_of_is_told():
    missed = RivalRow("reno x 1", (237.0, 238.0, 304.0), 2.0, 237.5)
    assert not missed.aim.ok
    assert not rival_aims([missed])["rivals outside the printed range"].ok
