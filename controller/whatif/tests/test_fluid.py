"""Max-min fairness over links: against its definition."""

from hypothesis import given
from hypothesis import strategies as st

from controller.whatif.fluid import filled, overloaded

LINKS = "abcd"
flows = st.lists(
    st.tuples(st.integers(0, 1000), st.lists(st.sampled_from(LINKS), min_size=1, max_size=3, unique=True)),
    min_size=1,
    max_size=7,
)
capacities = st.fixed_dictionaries({link: st.integers(0, 2000) for link in LINKS})


@given(flows, capacities)
def test_no_link_is_above_its_capacity_and_no_flow_could_have_more_that_a_larger_one_has(asked, capacity):
    bounds = {number: bound for number, (bound, _) in enumerate(asked)}
    ways = {number: way for number, (_, way) in enumerate(asked)}
    rates = filled(bounds, ways, capacity)
    assert not overloaded(rates, ways, capacity)
    for flow, rate in rates.items():
        assert 0 <= rate <= bounds[flow]
        if rate < bounds[flow]:
            loads = {link: sum(r for f, r in rates.items() if link in ways[f]) for link in ways[flow]}
            largest = {link: max(r for f, r in rates.items() if link in ways[f]) for link in ways[flow]}
            # One link on its way is full to an odd unit for each flow there, and nobody there has more than it.
            assert any(capacity[k] - loads[k] < len(rates) and largest[k] <= rate + len(rates) for k in ways[flow])


@given(flows, capacities)
def test_what_fits_is_given_in_full(asked, capacity):
    bounds = {number: bound for number, (bound, _) in enumerate(asked)}
    ways = {number: way for number, (_, way) in enumerate(asked)}
    if not overloaded(bounds, ways, capacity):
        assert filled(bounds, ways, capacity) == bounds
