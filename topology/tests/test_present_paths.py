"""Paths of a network in one that has more circuits or fewer."""

from collections import Counter
from itertools import pairwise

from hypothesis import assume, given
from hypothesis import strategies as st

from mininet_tests.testing.drawn import sections
from topology.network_file import network_of
from topology.present_paths import present_paths
from topology.problems import Problems


@st.composite
def networks_with_more_and_fewer(draw):
    """A network, the same without some of its circuits, and two of their nodes."""
    section = draw(sections(most_sites=4))
    names = sorted(section["circuits"])
    kept = draw(st.sets(st.sampled_from(names), min_size=1)) if names else set()
    fewer = {name: inside for name, inside in section["circuits"].items() if name in kept}
    both = network_of(section, Problems()), network_of(section | {"circuits": fewer}, Problems())
    assume(None not in both)
    ends = sorted({node.name for node in (*both[0].hosts, *both[0].switches)})
    return *both, draw(st.sampled_from(ends)), draw(st.sampled_from(ends))


def is_there(network, path):
    return all(network.graph.has_edge(*edge) for edge in pairwise(path))


def is_alone(network, name):
    ends = Counter(frozenset((c.a_end, c.z_end)) for c in network.circuits)
    return next(ends[frozenset((c.a_end, c.z_end))] for c in network.circuits if c.name == name) == 1


@given(networks_with_more_and_fewer())
def test_a_path_is_kept_by_the_circuits_that_stay_and_lost_with_one_that_goes(drawn):
    more, fewer, source, target = drawn
    path = more.path(source, target)
    crossed = more.circuits_along(path)
    assert present_paths(more, (path,)) == ((path,),), "nothing has changed"
    stays = {circuit.name for circuit in fewer.circuits}
    found = present_paths(fewer, (path,))
    if stays.issuperset(crossed):
        ((kept,),) = found
        assert fewer.circuits_along(kept) == crossed
        assert (kept[0], kept[-1]) == (source, target)
        assert is_there(fewer, kept)
    elif not all(is_alone(more, name) for name in set(crossed) - stays):
        assert found == (), "a node names its circuit, which is gone"


@given(networks_with_more_and_fewer())
def test_a_path_of_fewer_circuits_has_them_among_its_choices_in_more(drawn):
    more, fewer, source, target = drawn
    path = fewer.path(source, target)
    choices = [one for (one,) in present_paths(more, (path,))]
    assert all(is_there(more, one) for one in choices)
    assert len(choices) == len(set(choices))
    if sum(not is_alone(more, name) for name in fewer.circuits_along(path)) < 2:
        assert fewer.circuits_along(path) in [more.circuits_along(one) for one in choices]
    places = {circuit.name: number for number, circuit in enumerate(more.circuits)}
    first = [[places[name] for name in more.circuits_along(one)] for one in choices]
    assert first[0] == [min(column) for column in zip(*first, strict=True)], "the file's order"
    assert [one for (one,) in present_paths(fewer, (choices[0],))] in ([], [path])
