"""Volumes against brute force over every rate and start of a short span."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from controller.plan.volume import (
    US,
    ConstantRate,
    Volume,
    earliest_finish,
    in_force,
    lowest_constant_rate,
    planned_before,
)

pieces_of = st.lists(st.integers(0, 8), min_size=1, max_size=12)
volumes = st.builds(Volume, st.integers(1, 60), st.integers(0, 4), st.integers(1, 9))


def pieces(rates):
    """One second each."""
    return [(i * US, (i + 1) * US, rate) for i, rate in enumerate(rates)]


@given(pieces_of, volumes)
def test_the_earliest_finish_takes_all_it_can_at_each_instant(rates, volume):
    profile = earliest_finish(pieces(rates), volume)
    usable = [min(r, volume.most_bps) if min(r, volume.most_bps) >= max(1, volume.least_bps) else 0 for r in rates]
    if sum(usable) < volume.size_bits:
        assert profile is None
        return
    moved = sum(part.rate_bps * (part.end_us - part.start_us) for part in profile)
    assert volume.size_bits * US <= moved < volume.size_bits * US + profile[-1].rate_bps
    done_us = profile[-1].end_us
    whole, rest_us = divmod(done_us - 1, US)
    before = sum(usable[:whole]) * US + usable[whole] * rest_us
    assert before < volume.size_bits * US  # a microsecond less would not do


@given(pieces_of, volumes)
def test_the_lowest_constant_rate_fits_and_no_lower_one_does(rates, volume):
    answer = lowest_constant_rate(pieces(rates), volume)
    fitting = [
        rate
        for rate in range(max(1, volume.least_bps), volume.most_bps + 1)
        for start in range(len(rates))
        if start * US - (-volume.size_bits * US // rate) <= len(rates) * US
        and all(r >= rate for r in rates[start : -(-(start * US - (-volume.size_bits * US // rate)) // US)])
    ]
    assert (answer and answer.rate_bps) == min(fitting, default=None)
    if answer is not None:
        assert answer.rate_bps * (answer.end_us - answer.start_us) >= volume.size_bits * US
        inside = rates[answer.start_us // US : -(-answer.end_us // US)]
        assert min(inside) >= answer.rate_bps


def test_an_image_in_the_gap_between_two_nights():
    free = [(0, 10 * US, 100), (10 * US, 20 * US, 20), (20 * US, 30 * US, 100)]
    volume = Volume(size_bits=1_500, least_bps=0, most_bps=100)
    assert earliest_finish(free, volume)[-1].end_us == 23 * US
    assert lowest_constant_rate(free, volume) is None  # 20 throughout is too little, 100 is not free long enough
    assert lowest_constant_rate(free, Volume(500, 0, 100)) == ConstantRate(0, 29_411_765, 17)


@given(pieces_of, st.integers(0, 5))
def test_what_can_be_in_force_is_the_least_that_was_free_until_then(rates, lead):
    found = list(in_force(pieces(rates), lead * US))
    assert [piece[0] for piece in found[1:]] == [piece[1] for piece in found[:-1]]
    each = [bps for begin, end, bps in found for _ in range(begin, end, US)]
    assert each == [min(rates[at - lead : at + 1]) for at in range(lead, len(rates))]


@given(pieces_of, st.integers(0, 5), volumes)
def test_what_is_planned_for_a_volume_is_free_and_in_force_when_it_counts(rates, lead, volume):
    profile = earliest_finish(in_force(pieces(rates), lead * US), volume) or ()
    planned = planned_before(profile, lead * US)
    assert all(one.end_us <= other.start_us for one, other in pairwise(planned))
    for one in planned:
        assert 0 <= one.start_us < one.end_us
        assert all(rates[at] >= one.rate_bps for at in range(one.start_us // US, -(-one.end_us // US)))
    for part in profile:
        for at_us in range(part.start_us - lead * US, part.end_us, US // 2):
            assert max(one.rate_bps for one in planned if one.start_us <= at_us < one.end_us) >= part.rate_bps
