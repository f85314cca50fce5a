"""Volumes against brute force over every rate and start of a short span."""

from hypothesis import given
from hypothesis import strategies as st

from controller.plan.volume import US, ConstantRate, Volume, earliest_finish, lowest_constant_rate

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
