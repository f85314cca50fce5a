"""Receivers: the paper's numbers, and a fluid that is followed step by step and never finds the receiver full."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.plan.receivers import (
    BYTE_US,
    Incoming,
    ReceiverBucket,
    Turn,
    ceilings_bps,
    ceilings_in_turn_bps,
    room_needed_bytes,
)
from topology.wire import PPM

MB, MBIT = 10**6, 10**6
# Eckart et al., table 3: file, MB; r(disk) and the predicted rate, Mbit/s. m is 750 MB.
TABLE_3 = [
    (800, "275.12", "4401.92"),
    (1000, "275.37", "1101.48"),
    (2000, "281.31", "450.10"),
    (3000, "280.06", "373.41"),
    (4000, "270.16", "332.51"),
    (5000, "278.36", "327.48"),
]

buckets = st.builds(ReceiverBucket, st.integers(0, 10**6), st.integers(1_000, 10**7))
sizes = st.integers(1, 10**7)
lines = st.integers(1_000, 10**8)


def bps(mbit):
    return int(Fraction(mbit) * MBIT)


@pytest.mark.parametrize(("size_mb", "drain", "predicted"), TABLE_3)
def test_the_rates_that_the_paper_predicts_are_found_to_a_hundredth(size_mb, drain, predicted):
    rate_bps = ReceiverBucket(750 * MB, bps(drain)).rate_bps(size_mb * MB)
    assert abs(rate_bps - bps(predicted)) <= bps("0.01")  # the drain is printed to a hundredth too


def test_a_file_that_fits_into_the_buffer_comes_at_any_rate():
    bucket = ReceiverBucket(750 * MB, bps("295.29"))
    assert bucket.rate_bps(400 * MB) is None
    assert bucket.gain_ppm(400 * MB) is None


@given(buckets, sizes, lines)
def test_alpha_is_the_rate_by_the_drain(bucket, size_bytes, line_bps):
    rate_bps, gain_ppm = bucket.rate_bps(size_bytes), bucket.gain_ppm(size_bytes)
    assert (rate_bps is None) is (gain_ppm is None)
    if rate_bps is not None:
        assert abs(Fraction(rate_bps, bucket.drain_bps) - Fraction(gain_ppm, PPM)) < Fraction(1, PPM) + Fraction(
            1, bucket.drain_bps
        )


@given(buckets, sizes, lines)
def test_the_largest_file_at_a_rate_is_the_one_whose_rate_it_is(bucket, size_bytes, line_bps):
    largest_bytes = bucket.largest_bytes(line_bps)
    fits = largest_bytes is None or size_bytes <= largest_bytes
    least_bps = bucket.rate_bps(size_bytes)
    assert fits is (least_bps is None or least_bps >= line_bps)


@given(sizes, lines, st.integers(1, 10**7))
def test_with_the_room_that_a_rate_needs_the_file_comes_at_that_rate(size_bytes, rate_bps, drain_bps):
    room_bytes = room_needed_bytes(rate_bps, size_bytes, drain_bps)
    least_bps = ReceiverBucket(room_bytes, drain_bps).rate_bps(size_bytes)
    assert least_bps is None or least_bps >= rate_bps
    if room_bytes:  # and with a byte less it does not
        short_bps = ReceiverBucket(room_bytes - 1, drain_bps).rate_bps(size_bytes)
        assert Fraction(drain_bps * size_bytes, size_bytes - room_bytes + 1) < rate_bps or short_bps >= rate_bps


@given(buckets, sizes, lines)
def test_filling_first_and_following_then_ends_no_sooner_than_the_constant_rate(bucket, size_bytes, line_bps):
    least_bps = min(line_bps, bucket.rate_bps(size_bytes) or line_bps)
    at_constant_us = Fraction(size_bytes * BYTE_US, least_bps)
    across_us = bucket.across_us(size_bytes, line_bps)
    # A rate that is rounded down to whole bit/s is late by no more than its last bit makes.
    assert across_us - 1 <= at_constant_us <= across_us * Fraction(least_bps + 1, least_bps) + 1
    assert bucket.stored_us(size_bytes, line_bps) >= across_us


@given(buckets, lines)
def test_it_is_full_when_the_formula_says(bucket, rate_bps):
    full_us = bucket.holds_until_us(rate_bps)
    if full_us is None:
        assert rate_bps <= bucket.drain_bps
    else:
        assert rate_bps * full_us <= (bucket.takes_bytes(full_us) + 1) * BYTE_US
        later_us = full_us + 2 * BYTE_US  # of rounded down bytes and microseconds
        assert rate_bps * later_us > bucket.takes_bytes(later_us) * BYTE_US


STEP_US = 100_000
# Each sender: when it comes, how much it has (None: without end), what its line takes.
arrivals = st.lists(
    st.tuples(st.integers(0, 20), st.none() | st.integers(0, 10**6), st.integers(1_000, 10**7)),
    min_size=1,
    max_size=4,
)


def step(bucket, waiting, sending):
    """Return what waits and what each has left after a step; senders end within it, and nobody is told of that."""
    incoming = [Incoming(line, None if left is None else ceil(left)) for left, line in sending]
    room = bucket.room_bytes - waiting
    rates = ceilings_bps(ReceiverBucket(int(room), bucket.drain_bps), incoming)
    moved = [
        min(Fraction(rate * STEP_US, BYTE_US), rate * STEP_US if left is None else left)
        for rate, (left, _) in zip(rates, sending, strict=True)
    ]
    waiting = max(Fraction(0), waiting + sum(moved) - Fraction(bucket.drain_bps * STEP_US, BYTE_US))
    rest = [(None if left is None else left - much, line) for much, (left, line) in zip(moved, sending, strict=True)]
    return waiting, rest, sum(moved)


@settings(max_examples=60)
@given(buckets, arrivals)
def test_what_has_arrived_never_exceeds_the_room_and_what_was_drained(bucket, senders):
    waiting, arrived, sending = Fraction(0), Fraction(0), []
    for number in range(40):
        sending = [one for one in sending if one[0] is None or one[0] > 0]
        sending += [(left, line) for at, left, line in senders if at == number and left != 0]
        waiting, sending, moved = step(bucket, waiting, sending)
        arrived += moved
        assert waiting <= bucket.room_bytes
        assert arrived <= bucket.room_bytes + Fraction(bucket.drain_bps * STEP_US * (number + 1), BYTE_US)


@given(buckets, st.lists(st.builds(Incoming, st.integers(0, 10**7), st.none() | st.integers(1, 10**7)), min_size=1))
def test_nothing_is_idle_while_somebody_below_its_ceiling_could_use_it(bucket, senders):
    rates = ceilings_bps(bucket, senders)
    total = None if any(s.left_bytes is None for s in senders) else sum(s.left_bytes for s in senders)
    together_bps = bucket.drain_bps if total is None else bucket.rate_bps(total)
    assert all(rate <= one.most_bps for rate, one in zip(rates, senders, strict=True))
    if any(rate < one.most_bps for rate, one in zip(rates, senders, strict=True)):
        assert sum(rates) == together_bps


turns = st.lists(
    st.builds(
        Turn,
        st.lists(st.builds(Incoming, st.integers(0, 10**7), st.none()), min_size=1, max_size=3),
        st.integers(0, 250),
    ),
    min_size=1,
    max_size=4,
)


@given(buckets, turns)
def test_what_has_no_end_takes_no_more_than_the_drain_and_each_class_has_at_least_what_is_kept_for_it(bucket, found):
    rates = ceilings_in_turn_bps(bucket, found)
    assert sum(map(sum, rates)) <= bucket.drain_bps + len(found)  # each class keeps at least 1 bit/s
    wants = [sum(one.most_bps for one in turn.senders) for turn in found]
    for turn, got, want in zip(found, rates, wants, strict=True):
        assert sum(got) >= min(want, turn.kept_bps)
    if len(found) == 1:
        assert sum(rates[0]) == min(wants[0], bucket.drain_bps)
