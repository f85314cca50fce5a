"""A circuit whose delay nobody knows is planned by a bound, and by what was measured once that is known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mininet_tests.testing.drawn import sections
from mininet_tests.testing.networks import asc_ring, chile_illinois_2
from topology.distances import longest_rtt_us
from topology.network_file import network_of
from topology.network_text import section_of
from topology.problems import Problems

BOUND = {"delay_at_most": "300 ms"}


def two_sites(**delay):
    section = section_of(chile_illinois_2())
    circuit = section["circuits"]["north"]
    del circuit["delay"]
    return section | {"circuits": section["circuits"] | {"north": delay | circuit}}


def read(section):
    problems = Problems()
    return network_of(section, problems), problems.found


def test_a_bound_is_what_is_planned_by_and_said_to_be_one():
    network, _ = read(two_sites(**BOUND))
    path = ("base20", "ls1", "north", "ch1", "arch")
    assert network.path_rtt_us(path) == 600_000
    assert {link.circuit: link.is_bound for _, _, link in network.circuit_links} == {"north": True, "south": False}
    assert section_of(network)["circuits"]["north"]["delay_at_most"] == "300 ms"


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({}, "circuits.north: `delay` is missing, such as `delay: 90 ms`; to have it measured, write `delay_at_most:"),
        (BOUND | {"delay": "90 ms"}, "circuits.north.delay_at_most: stands beside `delay`: leave it out"),
        ({"delay_at_most": "1 h"}, "circuits.north.delay_at_most: 1 h is out of bounds"),
        ({"delay_at_most": "soon"}, 'circuits.north.delay_at_most: "soon" is not a duration'),
        ({"delay": "soon"}, 'circuits.north.delay: "soon" is not a duration'),
    ],
)
def test_what_is_wrong_with_a_delay_is_said_once_with_the_cure(said, problem):
    network, problems = read(two_sites(**said))
    assert network is None
    assert [found[: len(problem)] for found in problems] == [problem]


def test_what_is_measured_replaces_the_bound_in_both_directions_and_behind_a_line():
    network, _ = read(two_sites(**BOUND))
    measured = network.with_measured({"north": 41_000})
    path = ("base20", "ls1", "north", "ch1", "arch")
    assert (measured.path_rtt_us(path), measured.path_rtt_us(path[::-1])) == (82_000, 82_000)
    assert network.path_rtt_us(path) == 600_000, "the network it was made of stays as it was"
    assert measured.delay_us("ls1", "south") == network.delay_us("ls1", "south")
    assert measured.with_measured({}).path_rtt_us(path) == 600_000


@given(sections(), st.data())
def test_ways_are_those_of_the_file_whatever_is_measured(section, data):
    network, _ = read(section)
    bounds = {link.circuit: link.delay_us for _, _, link in network.circuit_links if link.is_bound}
    measured = network.with_measured({name: data.draw(st.integers(1, most)) for name, most in bounds.items()})
    hosts = [host.name for host in network.hosts if network.is_ours(host.name)][:4]
    for source in hosts:
        for target in hosts:
            path = network.path(source, target)
            assert measured.path(source, target) == path
            assert measured.path_rtt_us(path) <= network.path_rtt_us(path)


def test_a_measured_delay_is_in_the_longest_round_trip_too():
    ring = asc_ring()
    longer = {link.circuit: 5 * link.delay_us for _, _, link in ring.circuit_links}
    assert longest_rtt_us(ring.with_measured(longer)) == 5 * longest_rtt_us(ring)
