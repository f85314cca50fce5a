"""Onto a disk: both times against the formulas, and a disk that is never asked for more than it has."""

import doctest
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from controller.plan import storing
from controller.plan.receivers import ReceiverBucket
from controller.plan.storing import soonest_stored
from controller.plan.volume import US, Volume, earliest_finish

ANY = 2**62
END_US = 10_000 * US


def test_examples_in_the_docstrings_are_true():
    assert doctest.testmod(storing).failed == 0


def pieces(rates, each_us=7 * US):
    """Free rates one after another, the last of them for good."""
    ends = [(n + 1) * each_us for n in range(len(rates) - 1)] + [END_US * 1000]
    return [(n * each_us, end_us, bps) for n, (end_us, bps) in enumerate(zip(ends, rates, strict=True))]


@given(st.integers(1, 10**6), st.integers(1, 10**5), st.integers(1, 10**5), st.integers(0, 10**6))
def test_with_nobody_else_both_times_are_those_of_the_bucket(size_bits, line_bps, drain_bps, room_bits):
    found = soonest_stored(pieces([line_bps]), pieces([drain_bps]), Volume(size_bits, 1, ANY), 1, room_bits)
    bucket = ReceiverBucket(room_bits, drain_bps * 8)  # bits for bytes: eight times the rate
    across_us = bucket.across_us(size_bits, line_bps * 8)
    stored_us = bucket.stored_us(size_bits, line_bps * 8)
    rounding_us = 3 + line_bps // drain_bps  # what less than a microsecond of the line's surplus takes the disk
    assert abs(found.across_us - across_us) <= rounding_us
    assert abs(found.stored_us - stored_us) <= rounding_us


rates = st.lists(st.integers(0, 1_000), min_size=1, max_size=6).map(lambda found: [*found, 500])


@given(rates, rates, st.integers(1, 10**5), st.integers(1, 3), st.integers(0, 10**5))
def test_no_more_has_arrived_than_the_room_and_what_was_drained_and_nothing_is_used_twice(
    free, disk, size_bits, senders, room_bits
):
    network, drains = pieces(free), pieces(disk)
    found = soonest_stored(network, drains, Volume(size_bits, 1, ANY), senders, room_bits)
    total = size_bits * senders

    def moved(profile, until_us, times):
        return sum(
            Fraction(max(0, min(one.end_us, until_us) - one.start_us) * one.rate_bps * times, US) for one in profile
        )

    moments = {one.end_us for one in (*found.rates, *found.drains)} | {one.start_us for one in found.drains}
    for at_us in moments:
        arrived, drained = moved(found.rates, at_us, senders), moved(found.drains, at_us, 1)
        assert min(arrived, total) <= room_bits + drained + Fraction(1_000 * senders, US)
        assert drained <= arrived + Fraction(2_000, US), "a disk writes nothing that has not arrived"
    for profile, known in ((found.rates, network), (found.drains, drains)):
        for one in profile:
            free_bps = [bps for start_us, end_us, bps in known if start_us < one.end_us and one.start_us < end_us]
            assert one.rate_bps <= min(free_bps)
    assert moved(found.rates, found.across_us, senders) >= total
    assert moved(found.drains, found.stored_us, 1) >= total
    assert found.across_us <= found.stored_us


@given(rates, st.integers(1, 10**5), st.integers(1, 3))
def test_a_disk_that_takes_all_at_once_changes_nothing(free, size_bits, senders):
    part = Volume(size_bits, 1, ANY)
    found = soonest_stored(pieces(free), pieces([10**9]), part, senders, 0)
    assert found.across_us == earliest_finish(pieces(free), part)[-1].end_us
