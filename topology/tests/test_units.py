"""Quantities as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology import units


@pytest.mark.parametrize("text", ["10g", "", "-1 Gbit/s", "fast", "1e9", "10 GB"])
def test_what_is_not_a_rate_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match='try "10 Gbit/s"'):
        units.rate_bps(text)


def test_a_fraction_of_a_bit_per_second_is_refused():
    with pytest.raises(ValueError, match="finer than"):
        units.rate_bps("1.5 bit/s")


@given(st.integers(0, 10**13))
def test_any_whole_rate_reads_back_exactly(bps):
    assert units.rate_bps(f"{bps} bit/s") == bps


@given(st.integers(0, 10**9).map(lambda n: n * 1000))
def test_a_shown_rate_reads_back_within_its_three_decimals(bps):
    assert abs(units.rate_bps(units.shown_rate(bps)) - bps) <= max(1, bps // 1000)
