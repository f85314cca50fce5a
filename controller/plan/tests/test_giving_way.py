"""Nobody who was carried gives way to who wants more, whatever they want; and nothing gives way for nothing."""

from hypothesis import given
from hypothesis import strategies as st

from controller.plan.giving_way import kept
from controller.plan.purchases import Period, are_covered

PERIODS = st.builds(
    lambda start_us, long_us, rate_bps: Period(start_us, start_us + long_us, rate_bps),
    st.integers(0, 6),
    st.integers(1, 6),
    st.integers(0, 9),
)
USES = st.dictionaries(st.sampled_from("abcde"), PERIODS)
BOUGHT = st.lists(PERIODS, max_size=3)


@given(wanted=USES, carried=USES, bought=BOUGHT)
def test_what_is_kept_is_carried_by_what_is_bought_and_nothing_else_would_fit(wanted, carried, bought):
    found = kept(wanted, carried, bought)
    assert are_covered(found.values(), bought)
    assert all(use in {wanted[name], carried.get(name)} for name, use in found.items())
    others = (name for name in wanted if found.get(name) != wanted[name])
    assert not any(are_covered({**found, name: wanted[name]}.values(), bought) for name in others)


@given(wanted=USES, carried=USES)
def test_who_was_carried_has_that_still_or_what_it_wants(wanted, carried):
    there = {name: use for name, use in carried.items() if name in wanted}
    assert kept(wanted, there, there.values()).keys() >= there.keys()
