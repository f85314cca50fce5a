"""Paths and the longest of them, against what a search for each pair of nodes finds."""

import time
from ipaddress import IPv4Address
from itertools import product

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mininet_tests.testing.drawn import sections, tangles
from mininet_tests.testing.networks import asc_ring, chile_illinois_2
from topology.distances import longest_rtt_us
from topology.network import Host, Link, Network, Switch
from topology.network_file import network_of
from topology.problems import Problems
from topology.wire import Framing


def searched(network, source, target, down):
    """The path by a search of its own; None if there is none. Nothing goes through a site that is not ours."""
    hosts, far = ({node.name for node in nodes} for nodes in (network.hosts, network.far_edges))

    def weight(tail, head, edge):
        goes_through = (
            tail in far
            and head not in hosts
            and source not in {tail, *network.graph.predecessors(tail)} & (hosts | far)
        )
        return None if goes_through or edge["link"].circuit in down else edge["link"].delay_us + 1

    try:
        return min(map(tuple, nx.all_shortest_paths(network.graph, source, target, weight=weight)))
    except nx.NetworkXNoPath:
        return None


def found(network, source, target, down):
    """The same as the network says it."""
    try:
        return network.path(source, target, down)
    except nx.NetworkXNoPath:
        return None


def link(delay_us, circuit=None):
    return Link(10**9, delay_us, 0, 1, "p", circuit)


@st.composite
def networks(draw):
    said = draw(sections())
    network = network_of(said, Problems(values=said))
    assert network is not None
    return network


@given(st.data(), st.one_of(tangles(), networks(), st.sampled_from([asc_ring(), chile_illinois_2()])))
def test_every_path_is_the_one_that_a_search_of_its_own_finds(data, network):
    circuits = [circuit.name for circuit in network.circuits]
    down = data.draw(st.frozensets(st.sampled_from(circuits)) if circuits else st.just(frozenset()))
    for source, target in product(network.graph, repeat=2):
        assert found(network, source, target, down) == searched(network, source, target, down)


@given(st.one_of(tangles(), networks(), st.sampled_from([asc_ring(), chile_illinois_2()])))
def test_the_longest_round_trip_is_the_longest_of_all_pairs(network):
    ends = [host.name for host in network.hosts]
    paths = [searched(network, a, z, frozenset()) for a, z in product(ends, repeat=2)]
    if None in paths:
        with pytest.raises(nx.NetworkXNoPath):
            longest_rtt_us(network)
    else:
        assert longest_rtt_us(network) == max(network.path_rtt_us(path) for path in paths)


@given(st.one_of(tangles(), networks()))
def test_the_links_of_circuits_are_those_among_all_links(network):
    circuits = tuple((t, h, one) for t, h, one in network.links() if one.circuit is not None)
    assert network.circuit_links == circuits
    for node in network.graph:
        assert network.circuit_links_from(node) == [(h, one) for t, h, one in circuits if t == node]


def test_a_thousand_hosts_cost_no_search_each():
    hosts = [Host(f"h{n}", "s", IPv4Address(n + 1), "") for n in range(1_000)]
    network = Network("two sites", Framing(), (*hosts, Switch("s0", "a", 0), Switch("s1", "b", 1)))
    network.add_trunk("s0", "s1", link(90_000, "line"), link(90_000, "line"))
    for number, host in enumerate(hosts):
        network.add_trunk(host.name, f"s{number % 2}", link(number), link(number))
    began_s = time.process_time()
    assert longest_rtt_us(network) == 2 * (90_000 + 998 + 999)
    assert time.process_time() - began_s < 2  # by pairs it took hours, now milliseconds
