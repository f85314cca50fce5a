"""What is planned of many pairs in few places: each pair is treated as its own cell says, whatever others have."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.southbound.openflow.shared import NOTHING, TablePlace, Treated, places_of
from topology.network import Hop
from topology.protocol import FlowClass

NORTH, SOUTH = Hop("ls1", "north"), Hop("ls1", "south")
URGENT, OTHER, BOTH = (
    frozenset({Treated(None, FlowClass.URGENT, NORTH)}),
    frozenset({Treated(None, FlowClass.BACKGROUND, SOUTH)}),
    frozenset({Treated(None, FlowClass.URGENT, NORTH), Treated(7, FlowClass.BACKGROUND, NORTH)}),
)
HERE, BEYOND = [f"a{n}" for n in range(60)], [f"z{n}" for n in range(50)]
treatments = st.sampled_from([NOTHING, URGENT, OTHER, BOTH])


def found(places, source, target):
    """What a switch finds for a pair: in the first place that has something."""
    order = TablePlace(source, target), TablePlace(source, ""), TablePlace("", target), TablePlace("", "")
    return next((places[place].treatment for place in order if place in places), NOTHING)


def product(sources, targets, treatment=URGENT):
    """All pairs of some hosts, treated alike."""
    return {(source, target): treatment for source in sources for target in targets}


@st.composite
def tables(draw):
    """Any table of pairs: mostly one treatment, with rows, columns and single pairs that differ."""
    sources, targets = HERE[: draw(st.integers(1, 8))], BEYOND[: draw(st.integers(1, 8))]
    table = {(source, target): draw(treatments) for source in sources[:1] for target in targets[:1]}
    table |= product(sources, targets, draw(treatments))
    for source, treatment in draw(st.dictionaries(st.sampled_from(sources), treatments)).items():
        table |= product([source], targets, treatment)
    for target, treatment in draw(st.dictionaries(st.sampled_from(targets), treatments)).items():
        table |= product(sources, [target], treatment)
    pairs = st.tuples(st.sampled_from(sources), st.sampled_from(targets))
    table |= draw(st.dictionaries(pairs, treatments))
    return sources, targets, {pair: treatment for pair, treatment in table.items() if treatment}


@settings(deadline=None)
@given(tables())
def test_each_pair_has_its_treatment_and_who_is_not_planned_has_none(table):
    sources, targets, cells = table
    places = places_of(cells, sources, targets)
    for source in sources:
        for target in targets:
            assert found(places, source, target) == cells.get((source, target), NOTHING)


@given(tables())
def test_it_takes_no_more_places_than_there_are_pairs(table):
    sources, targets, cells = table
    assert len(places_of(cells, sources, targets)) <= max(1, len(cells))


@given(tables(), st.randoms())
def test_the_places_are_the_same_in_whatever_order_pairs_have_come(table, random):
    sources, targets, cells = table
    pairs = list(cells.items())
    random.shuffle(pairs)
    assert places_of(dict(pairs), sources, targets) == places_of(cells, sources, targets)


@given(tables())
def test_a_place_covers_another_if_a_packet_of_it_would_find_something_there(table):
    sources, targets, cells = table
    places = places_of(cells, sources, targets)
    for place in places:
        rest = {other: held for other, held in places.items() if other != place}
        if place.level == "pair" and found(rest, *place) != NOTHING:
            assert places[place].covers


@pytest.mark.parametrize(
    ("cells", "most"),
    [
        (product(HERE, BEYOND), 1),
        (product(HERE, BEYOND) | {("a3", "z4"): BOTH}, 2),
        (product(HERE, BEYOND) | product(HERE[:9], BEYOND, OTHER), 1 + 9),
        (product(HERE, BEYOND[:20]), 20),
        (product(HERE[:20], BEYOND), 20),
        (product(HERE[:20], BEYOND[:20]), len(HERE) - 20 + 20),
        (product(HERE[:30], BEYOND[:30]) | {("a3", "z4"): BOTH}, len(HERE) - 30 + 30 + 1),
        (dict.fromkeys(zip(HERE, BEYOND, strict=False), URGENT), 50),
    ],
    ids=[
        "all",
        "one differs",
        "nine senders differ",
        "to 20",
        "from 20",
        "20 to 20",
        "30 to 30, one differs",
        "one each",
    ],
)
def test_what_hosts_have_in_common_is_said_once(cells, most):
    assert len(places_of(cells, HERE, BEYOND)) <= most
