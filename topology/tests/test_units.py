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


@pytest.mark.parametrize(
    "text", ["1 Gbit/s", "1Gb", "1 GBit/s", "1gbps", "1 Gb/s", "1Gbits/s", "1000 mbit", "0.001 Tbps", "1000000KBit/s"]
)
def test_a_rate_is_read_as_people_write_it(text):
    assert units.rate_bps(text) == 10**9


@pytest.mark.parametrize("text", ["1GB", "1 GB/s", "1 GBps", "1MB", "1 Gbyte/s"])
def test_bytes_are_never_taken_for_bits(text):
    with pytest.raises(ValueError, match="is not a rate"):
        units.rate_bps(text)


@pytest.mark.parametrize(
    ("text", "meant_s"),
    [
        ("90m", 5400),
        ("90min", 5400),
        ("1h30m", 5400),
        ("1h 30 min", 5400),
        ("1.5 hours", 5400),
        ("2days", 172_800),
        ("1 day 12h", 129_600),
        ("1w", 604_800),
        ("30 seconds", 30),
        ("1m0.5s", 60.5),
    ],
)
def test_a_duration_is_read_as_people_write_it(text, meant_s):
    assert units.duration_us(text) == meant_s * 10**6


@pytest.mark.parametrize("text", ["", "90", "1h30", "30m1h", "1h1h", "h", "1 fortnight", "1h-30m", "1M", "1.5.5h"])
def test_what_is_not_a_duration_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match='try "1h30m"'):
        units.duration_us(text)


EDGES = ["0001-01-01T00:00:00Z", "0001-01-01T05:00:00+05:00", "9999-12-31T18:59:59.999999-05:00"]


@pytest.mark.parametrize("text", EDGES)
def test_the_first_and_the_last_moment_that_there_are_can_be_shown(text):
    assert units.instant_us(units.shown_time(units.instant_us(text))) == units.instant_us(text)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-05:00"])
def test_what_lies_beyond_them_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match=r"is not in the years 1 to 9999 of UTC, try "):
        units.instant_us(text)


@given(st.integers(0, 10**13))
def test_a_written_duration_reads_back_exactly(us):
    hours, rest = divmod(us, 3_600_000_000)
    minutes, rest = divmod(rest, 60_000_000)
    assert units.duration_us(f"{hours}h{minutes}m{rest}us") == us


@given(st.integers(0, 10**13))
def test_any_whole_rate_reads_back_exactly(bps):
    assert units.rate_bps(f"{bps} bit/s") == bps


@given(st.integers(0, 10**9).map(lambda n: n * 1000))
def test_a_shown_rate_reads_back_within_its_three_decimals(bps):
    assert abs(units.rate_bps(units.shown_rate(bps)) - bps) <= max(1, bps // 1000)
