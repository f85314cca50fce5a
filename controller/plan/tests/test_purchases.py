"""What must be bought, against brute force over every instant."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from controller.plan.purchases import (
    Buy,
    Period,
    Purchase,
    PurchaseChange,
    PurchaseState,
    Release,
    Terms,
    actions,
    peak_bps,
    periods,
)

SECOND = 10**6
MINUTE = 60 * SECOND
MEGABIT = 10**6
# What ESnet asks for, with two minutes to build.
PROVIDER = Terms(150 * SECOND, 0, 15 * MINUTE, SECOND, MEGABIT, SECOND, 30 * SECOND, 60 * SECOND)
PLAIN = Terms(0, 0, 1, 1, 1)

any_terms = st.builds(
    Terms,
    lead_us=st.integers(0, 6),
    tail_us=st.integers(0, 6),
    min_duration_us=st.integers(0, 20),
    gap_us=st.integers(0, 6),
    granularity_bps=st.integers(1, 7),
    tick_us=st.integers(1, 4),
    begin_notice_us=st.integers(0, 6),
    end_notice_us=st.integers(0, 9),
)
any_period = st.builds(
    lambda start, length, rate: Period(start, start + length, rate),
    st.integers(0, 60),
    st.integers(1, 20),
    st.integers(1, 20),
)
any_uses = st.lists(any_period, max_size=8)
any_state = st.sampled_from(PurchaseState)
any_now = st.integers(-10, 90)


@st.composite
def any_bought(draw):
    """Purchases of any kind, whether or not anybody would have bought them."""
    kept = draw(st.lists(st.tuples(any_period, any_state), max_size=5))
    return tuple(Purchase(f"b{i}", period, state) for i, (period, state) in enumerate(kept))


def new_names():
    """Draw names as long as they are asked for."""
    numbers = itertools.count()
    return lambda: f"n{next(numbers)}"


def steps(wanted, bought, terms=PLAIN, now_us=0):
    """The steps, with names drawn afresh."""
    return actions(wanted, bought, terms, now_us, new_names())


def after(step, bought):
    """What is bought once a step is done."""
    match step:
        case Buy(name, period):
            return (*bought, Purchase(name, period, PurchaseState.RESERVED))
        case PurchaseChange(name, period):
            return tuple(replace(p, period=period) if p.name == name else p for p in bought)
        case Release(name):
            return tuple(replace(p, state=PurchaseState.ENDED) if p.name == name else p for p in bought)


def after_all(todo, bought):
    """What is bought once all steps are done."""
    for step in todo:
        bought = after(step, bought)
    return bought


def live(bought, now_us):
    """The purchases that count."""
    over = (PurchaseState.ENDED, PurchaseState.DROPPED, PurchaseState.FAILED)
    return [p for p in bought if p.state not in over and p.period.end_us > now_us]


def total_bps(uses, at_us):
    """The sum of the uses at an instant."""
    return sum(u.rate_bps for u in uses if u.start_us <= at_us < u.end_us)


@given(any_uses, any_terms)
def test_every_instant_of_every_use_and_of_its_guard_times_is_covered_once(uses, terms):
    wanted = periods(uses, terms)
    for use in uses:
        for at_us in range(use.start_us - terms.lead_us, use.end_us + terms.tail_us):
            covering = [p for p in wanted if p.start_us <= at_us < p.end_us]
            assert len(covering) == 1
            assert covering[0].rate_bps >= total_bps(uses, at_us)


@given(any_uses, any_terms)
def test_the_rate_is_the_largest_total_of_any_instant_on_the_granularity_and_no_more(uses, terms):
    for period in periods(uses, terms):
        peak = max(total_bps(uses, at_us) for at_us in range(period.start_us, period.end_us))
        assert period.rate_bps % terms.granularity_bps == 0
        assert peak <= period.rate_bps < peak + terms.granularity_bps


@given(any_uses, any_terms)
def test_periods_are_sorted_apart_long_enough_and_on_whole_ticks(uses, terms):
    wanted = periods(uses, terms)
    assert all(b.start_us - a.end_us >= terms.gap_us for a, b in itertools.pairwise(wanted))
    assert all(p.end_us - p.start_us >= terms.min_duration_us for p in wanted)
    assert all(p.start_us % terms.tick_us == p.end_us % terms.tick_us == 0 for p in wanted)


@given(any_uses, any_terms)
def test_no_period_is_longer_than_its_uses_need_and_none_could_be_two(uses, terms):
    for period in periods(uses, terms):
        held = sorted((u for u in uses if u.overlap_us(period) > 0), key=lambda u: u.start_us)
        assert len(periods(held, terms)) == 1
        assert period.start_us > held[0].start_us - terms.lead_us - terms.tick_us
        needed_us = max(
            max(u.end_us for u in held) + terms.tail_us,
            period.start_us + terms.min_duration_us,
        )
        assert period.end_us < needed_us + terms.tick_us
        for cut in range(1, len(held)):
            left, right = periods(held[:cut], terms), periods(held[cut:], terms)
            assert right[0].start_us - left[-1].end_us < terms.gap_us


@given(any_uses, any_terms, st.randoms())
def test_the_order_of_uses_does_not_matter(uses, terms, random):
    shuffled = random.sample(uses, len(uses))
    assert periods(shuffled, terms) == periods(uses, terms)


@given(any_uses, any_terms)
def test_a_use_of_no_rate_buys_nothing(uses, terms):
    idle = [replace(u, rate_bps=0) for u in uses]
    assert periods(idle, terms) == ()
    assert periods([*uses, *idle], terms) == periods(uses, terms)


@given(any_uses)
def test_the_peak_is_the_largest_total_of_any_instant(uses):
    assert peak_bps(uses) == max((total_bps(uses, at_us) for at_us in range(90)), default=0)


def test_two_equal_uses_are_two_uses():
    assert periods([Period(0, 10, 4), Period(0, 10, 4)], PLAIN) == (Period(0, 10, 8),)


def test_guard_times_that_overlap_do_not_add_rates():
    back_to_back = [Period(10, 20, 4), Period(20, 30, 4)]
    assert periods(back_to_back, replace(PLAIN, lead_us=5, tail_us=5)) == (Period(5, 35, 4),)


def test_a_second_of_use_buys_a_quarter_of_an_hour_and_two_and_a_half_minutes_of_lead():
    start = 3_600 * SECOND
    (period,) = periods([Period(start, start + SECOND, 1_500_000)], PROVIDER)
    assert period == Period(start - 150 * SECOND, start + 750 * SECOND, 2_000_000)


def test_periods_exactly_the_gap_apart_stay_two():
    uses = [Period(0, 10, 4), Period(15, 20, 4)]
    assert len(periods(uses, replace(PLAIN, gap_us=5))) == 2
    assert len(periods(uses, replace(PLAIN, gap_us=6))) == 1


def test_what_joins_a_period_extended_to_the_minimum_does_not_extend_it_again():
    uses = [Period(0, 1, 1), Period(8, 9, 1)]
    assert periods(uses, replace(PLAIN, min_duration_us=15)) == (Period(0, 15, 1),)


@given(any_uses, any_bought(), any_terms, any_now)
@example([Period(0, 1, 1)], (), Terms(0, 0, 20, 0, 1, 3), 0)
@example([Period(0, 1, 1)], (), Terms(0, 0, 0, 0, 1, 1, 1), 0)
def test_applying_the_steps_and_asking_again_yields_nothing(uses, bought, terms, now_us):
    wanted = periods(uses, terms)
    done = after_all(steps(wanted, bought, terms, now_us), bought)
    assert steps(wanted, done, terms, now_us) == ()


@given(any_uses, any_bought(), any_terms, any_now)
def test_after_the_steps_every_instant_that_can_still_be_had_is_covered(uses, bought, terms, now_us):
    wanted = periods(uses, terms)
    had = live(after_all(steps(wanted, bought, terms, now_us), bought), now_us)
    earliest_us = now_us + 2 * terms.begin_notice_us + terms.tick_us
    for want in wanted:
        first_us = want.start_us + terms.begin_notice_us
        for at_us in range(max(first_us, earliest_us), want.end_us):
            covering = [p.period for p in had if p.period.start_us <= at_us < p.period.end_us]
            assert len(covering) == 1
            assert covering[0].rate_bps >= want.rate_bps


@given(any_uses, any_terms, any_now)
def test_what_is_bought_in_time_covers_every_use(uses, terms, now_us):
    assume(terms.lead_us >= terms.begin_notice_us)
    had = live(after_all(steps(periods(uses, terms), (), terms, now_us), ()), now_us)
    for use in uses:
        if use.start_us - terms.lead_us > now_us + terms.begin_notice_us + terms.tick_us:
            assert any(p.period.start_us <= use.start_us and use.end_us <= p.period.end_us for p in had)


@given(any_uses, any_bought(), any_terms, any_now)
def test_what_has_begun_keeps_its_start(uses, bought, terms, now_us):
    begun = {p.name: p.period.start_us for p in bought if p.period.start_us <= now_us}
    for step in steps(periods(uses, terms), bought, terms, now_us):
        assert not isinstance(step, PurchaseChange) or step.period.start_us == begun.get(
            step.name, step.period.start_us
        )


@given(any_uses, any_bought(), any_terms, any_now)
def test_nothing_is_asked_to_begin_sooner_than_it_can_or_last_shorter(uses, bought, terms, now_us):
    before = {p.name: p.period for p in bought}
    for step in steps(periods(uses, terms), bought, terms, now_us):
        if isinstance(step, Release):
            continue
        assert step.period.end_us - step.period.start_us >= terms.min_duration_us
        if isinstance(step, Buy) or step.period.start_us != before[step.name].start_us:
            assert step.period.start_us >= now_us + terms.begin_notice_us


@given(any_uses, any_bought(), any_terms, any_now)
@example(
    [Period(50, 60, 1), Period(150, 200, 1)],
    (
        Purchase("a", Period(0, 100, 1), PurchaseState.UP),
        Purchase("b", Period(10, 200, 1), PurchaseState.UP),
    ),
    PLAIN,
    40,
)
def test_what_is_left_is_apart_whatever_was_bought(uses, bought, terms, now_us):
    done = after_all(steps(periods(uses, terms), bought, terms, now_us), bought)
    had = sorted((p.period for p in live(done, now_us)), key=lambda p: p.start_us)
    assert all(b.start_us - a.end_us >= terms.gap_us for a, b in itertools.pairwise(had))


@given(any_uses, any_bought(), any_terms, any_now)
def test_what_is_over_is_left_alone(uses, bought, terms, now_us):
    gone = (PurchaseState.ENDED, PurchaseState.DROPPED)
    over = {p.name for p in bought if p.state in gone or p.period.end_us <= now_us}
    assert over.isdisjoint(step.name for step in steps(periods(uses, terms), bought, terms, now_us))


@given(any_uses, any_uses, any_terms, any_now, any_now)
def test_no_two_purchases_come_too_near_to_each_other_on_the_way(uses, other_uses, terms, then_us, now_us):
    assume(then_us <= now_us)
    bought = after_all(steps(periods(uses, terms), (), terms, then_us), ())
    for step in steps(periods(other_uses, terms), bought, terms, now_us):
        bought = after(step, bought)
        had = sorted((p.period for p in live(bought, now_us)), key=lambda p: p.start_us)
        assert all(b.start_us - a.end_us >= terms.gap_us for a, b in itertools.pairwise(had))


@given(any_uses, any_bought(), any_terms, any_now, st.randoms())
def test_the_order_of_what_is_wanted_and_bought_does_not_matter(uses, bought, terms, now_us, random):
    wanted = periods(uses, terms)
    todo = actions(random.sample(wanted, len(wanted)), random.sample(bought, len(bought)), terms, now_us, new_names())
    assert set(todo) == set(steps(wanted, bought, terms, now_us))


@pytest.mark.parametrize("state", [PurchaseState.ASKED, PurchaseState.RESERVED, PurchaseState.DEPLOYING])
def test_what_has_not_begun_may_get_another_start(state):
    bought = (Purchase("b", Period(100, 200, 4), state),)
    assert steps([Period(50, 160, 5)], bought) == (PurchaseChange("b", Period(50, 160, 5)),)


def test_what_is_up_only_changes_its_end_and_rate():
    bought = (Purchase("b", Period(100, 200, 4), PurchaseState.UP),)
    assert steps([Period(140, 260, 5)], bought, now_us=120) == (PurchaseChange("b", Period(100, 260, 5)),)


def test_what_nobody_wants_is_released():
    bought = (Purchase("b", Period(100, 200, 4), PurchaseState.UP),)
    assert steps([Period(300, 400, 4)], bought, now_us=150) == (Release("b"), Buy("n0", Period(300, 400, 4)))


def test_a_failed_one_is_released_and_bought_anew():
    bought = (Purchase("b", Period(0, 200, 4), PurchaseState.FAILED, "no such device"),)
    assert steps([Period(0, 200, 4)], bought, now_us=100) == (Release("b"), Buy("n0", Period(100, 200, 4)))


def test_a_start_that_the_provider_moved_by_its_notice_is_not_asked_for_again():
    wanted = periods([Period(3_600 * SECOND, 9_000 * SECOND, MEGABIT)], PROVIDER)
    moved = replace(wanted[0], start_us=wanted[0].start_us + 30 * SECOND)
    bought = (Purchase("b", moved, PurchaseState.RESERVED),)
    assert all(steps(wanted, bought, PROVIDER, now_us) == () for now_us in range(0, 9_000 * SECOND, 10 * SECOND))


def test_a_use_that_begins_at_once_is_bought_once_although_the_lead_is_over():
    now = 1_000 * SECOND
    wanted = periods([Period(now, now + 60 * MINUTE, MEGABIT)], PROVIDER)
    (buy,) = steps(wanted, (), PROVIDER, now)
    assert buy.period == Period(now + 30 * SECOND, now + 60 * MINUTE, MEGABIT)
    later = replace(buy.period, start_us=buy.period.start_us + 5 * SECOND)  # the provider's clock is ahead
    bought = (Purchase("b", later, PurchaseState.RESERVED),)
    assert all(steps(wanted, bought, PROVIDER, now + s * SECOND) == () for s in range(3_600))


def test_what_would_be_over_before_it_could_begin_is_not_bought():
    now = 1_000 * SECOND
    assert steps([Period(0, now + 30 * SECOND, MEGABIT)], (), PROVIDER, now) == ()
    assert steps([Period(0, now + 31 * SECOND, MEGABIT)], (), PROVIDER, now) != ()


def test_an_end_nearer_than_the_notice_is_not_pushed_on_for_ever():
    now = 10_000 * SECOND
    wanted = (Period(0, now + 10 * SECOND, MEGABIT),)
    bought = (Purchase("b", Period(0, now + 3_600 * SECOND, MEGABIT), PurchaseState.UP),)
    (change,) = steps(wanted, bought, PROVIDER, now)
    assert change == PurchaseChange("b", Period(0, now + 60 * SECOND, MEGABIT))
    bought = after(change, bought)
    assert all(steps(wanted, bought, PROVIDER, now + s * SECOND) == () for s in range(10))


@pytest.mark.parametrize("next_s", [1_200, 1_680])  # its period overlaps, or touches: OSCARS refuses both
def test_a_late_purchase_that_must_last_its_minimum_joins_with_the_next(next_s):
    now = 600 * SECOND
    uses = [Period(160 * SECOND, 700 * SECOND, MEGABIT), Period(next_s * SECOND, 3_000 * SECOND, 2 * MEGABIT)]
    wanted = periods(uses, PROVIDER)
    assert len(wanted) == 2
    joined = Period(630 * SECOND, 3_000 * SECOND, 2 * MEGABIT)
    assert steps(wanted, (), PROVIDER, now) == (Buy("n0", joined),)
    bought = (Purchase("b", wanted[1], PurchaseState.RESERVED),)
    assert steps(wanted, bought, PROVIDER, now) == (PurchaseChange("b", joined),)


def test_what_is_about_to_begin_keeps_its_start():
    now = 1_000 * SECOND
    bought = (Purchase("b", Period(now + 10 * SECOND, now + 2_000 * SECOND, MEGABIT), PurchaseState.RESERVED),)
    wanted = (Period(now + 20 * SECOND, now + 2_000 * SECOND, MEGABIT),)
    assert steps(wanted, bought, PROVIDER, now) == ()


def test_what_has_begun_is_used_before_what_has_not():
    bought = (
        Purchase("up", Period(0, 60, 4), PurchaseState.UP),
        Purchase("later", Period(100, 200, 4), PurchaseState.RESERVED),
    )
    todo = steps([Period(50, 200, 4)], bought, now_us=55)
    assert todo == (Release("later"), PurchaseChange("up", Period(0, 200, 4)))


def test_a_wish_that_is_over_keeps_nothing():
    bought = (Purchase("b", Period(5, 100, 4), PurchaseState.UP),)
    assert steps([Period(0, 10, 4)], bought, now_us=50) == (Release("b"),)


def test_what_stands_in_the_way_moves_first():
    bought = (
        Purchase("a", Period(100, 150, 4), PurchaseState.RESERVED),
        Purchase("b", Period(160, 200, 4), PurchaseState.RESERVED),
    )
    assert steps([Period(100, 160, 4), Period(170, 200, 4)], bought) == (
        PurchaseChange("b", Period(170, 200, 4)),
        PurchaseChange("a", Period(100, 160, 4)),
    )


@pytest.mark.parametrize(("start_us", "end_us", "rate_bps"), [(5, 5, 1), (6, 5, 1), (0, 1, -1)])
def test_a_period_without_length_or_with_a_negative_rate_is_refused(start_us, end_us, rate_bps):
    with pytest.raises(ValueError, match="need an end after the start"):
        Period(start_us, end_us, rate_bps)


@pytest.mark.parametrize("wrong", [{"lead_us": -1}, {"granularity_bps": 0}, {"tick_us": 0}, {"end_notice_us": -1}])
def test_terms_that_nobody_can_mean_are_refused(wrong):
    with pytest.raises(ValueError, match=r"terms|granularities"):
        replace(PLAIN, **wrong)
