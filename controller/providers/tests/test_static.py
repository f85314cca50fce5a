"""A leased line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.plan.purchases import Period, PurchaseState
from controller.providers.static import StaticProvider

LINE = StaticProvider([Period(300, 400, 0), Period(100, 200, 5)])


def test_nothing_of_a_leased_line_is_ever_bought():
    assert StaticProvider().terms is None


def test_a_leased_line_is_up_whatever_is_asked_of_it():
    period = Period(0, 10, 5)
    LINE.reserve("x", period)
    LINE.release("x")
    assert LINE.change("x", period) == period
    assert LINE.status("x").state is PurchaseState.UP


def test_its_schedule_is_sorted():
    assert LINE.schedule == (Period(100, 200, 5), Period(300, 400, 0))


entries = st.lists(st.builds(lambda s, n: Period(s, s + n, 1), st.integers(0, 20), st.integers(1, 5)), max_size=4)


@given(entries)
def test_two_capacities_at_one_time_are_refused_and_what_touches_is_not(schedule):
    at_once = [sum(p.start_us <= t < p.end_us for p in schedule) for t in range(25)]
    if max(at_once) > 1:
        with pytest.raises(ValueError, match="two capacities from"):
            StaticProvider(schedule)
    else:
        assert len(StaticProvider(schedule).schedule) == len(schedule)
