"""The step function against its definition, instant by instant."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.plan import steps
from controller.plan.steps import Steps

SPAN = 40
interval = st.tuples(st.integers(0, SPAN - 1), st.integers(1, 12)).map(lambda p: (p[0], min(SPAN, p[0] + p[1])))
additions = st.lists(st.tuples(interval, st.integers(-9, 9)), max_size=60)


@pytest.fixture(autouse=True, params=[2, 3, 128])
def block_size(request):
    """Small blocks, so that few breakpoints already make many of them."""
    usual, steps.BLOCK = steps.BLOCK, request.param
    yield
    steps.BLOCK = usual


def made(adds):
    """The function, and its values at 0, 1, ... as a list."""
    function, values = Steps(5), [5] * SPAN
    for (start, end), amount in adds:
        function.add(start, end, amount)
        values[start:end] = [v + amount for v in values[start:end]]
    return function, values


@given(additions, interval, st.integers(-20, 30))
def test_every_query_answers_as_the_list_of_all_instants_does(adds, window, level):
    function, values = made(adds)
    start, end = window
    inside = values[start:end]
    assert [function.value(t) for t in range(SPAN)] == values
    assert (function.least(start, end), function.most(start, end)) == (min(inside), max(inside))
    assert function.first_below(level, start, end) == next((t for t in range(start, end) if values[t] < level), None)
    reaching = next((t for t in range(start, end) if values[t] >= level), None)
    assert function.first_reaching(level, start, end) == reaching


@given(additions, interval)
def test_pieces_cover_the_window_without_gap_and_differ_from_their_neighbours(adds, window):
    function, values = made(adds)
    pieces = list(function.pieces(*window))
    assert [v for start, end, v in pieces for _ in range(start, end)] == values[slice(*window)]
    assert all(a[1] == b[0] and a[2] != b[2] for a, b in pairwise(pieces))


@given(additions, st.randoms())
def test_the_order_of_additions_does_not_matter(adds, random):
    shuffled = random.sample(adds, len(adds))
    assert made(adds)[0] == made(shuffled)[0]


@given(additions)
def test_taking_away_what_was_added_leaves_nothing_behind(adds):
    function, _ = made([*adds, *((window, -amount) for window, amount in reversed(adds))])
    assert list(function.breakpoints()) == [(steps.ALWAYS, 5)]


@given(additions)
def test_blocks_know_their_own_bounds(adds):
    function, _ = made(adds)
    for head, block in zip(function._heads, function._blocks, strict=True):
        values = [v + block.offset for v in block.values]
        assert (head, block.least, block.most) == (block.times[0], min(values), max(values))
        assert len(block.times) <= steps.BLOCK


@given(additions, additions, additions)
def test_a_copy_and_what_it_was_copied_from_go_their_own_ways(adds, later, otherwise):
    function, _ = made(adds)
    copy = function.copied()
    again = copy.copied()
    for one, more in ((function, later), (copy, otherwise)):
        for (start, end), amount in more:
            one.add(start, end, amount)
    assert function == made([*adds, *later])[0]
    assert copy == made([*adds, *otherwise])[0]
    assert again == made(adds)[0]


def test_an_empty_interval_is_refused():
    with pytest.raises(ValueError, match="empty"):
        Steps().add(3, 3, 1)
