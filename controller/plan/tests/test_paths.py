"""Candidate paths on the two-site network and on a ring."""

from itertools import combinations, pairwise

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.plan.calendar import Shortage
from controller.plan.paths import MOST_LOOKED_AT, ChosenPath, NoPath, candidates, chosen
from controller.plan.reservations import Constraints
from mininet_tests.testing.networks import asc_ring, chile_illinois, described

RING = asc_ring()
FREE = Constraints()
sites = st.sampled_from(RING.sites)


def ends(a, z):
    """The edge switches of two sites."""
    return RING.edge_switch(a).name, RING.edge_switch(z).name


def test_between_two_sites_there_is_one_path():
    network = chile_illinois()
    assert list(candidates(network, "base20", "arch", FREE)) == [("base20", "ls1", "ch1", "arch")]


@given(sites, sites)
def test_a_ring_has_two_ways_between_any_two_sites_the_nearer_first(a, z):
    found = list(candidates(RING, *ends(a, z), FREE)) if a != z else []
    assert len(found) == (2 if a != z else 0)
    rtts = [RING.path_rtt_us(path) for path in found]
    assert rtts == sorted(rtts)
    assert all(nx.is_simple_path(RING.graph, path) for path in found)


@given(sites, sites)
def test_the_order_is_the_same_each_time_and_no_host_lies_in_between(a, z):
    if a == z:
        return
    found = list(candidates(RING, *ends(a, z), FREE))
    assert found == list(candidates(asc_ring(), *ends(a, z), FREE))
    hosts = {h.name for h in RING.hosts}
    assert not any(hosts.intersection(path) for path in found)


def test_excluding_a_circuit_or_a_switch_leaves_the_other_way_round():
    near, far = candidates(RING, *ends("albuquerque", "livermore"), FREE)
    assert list(candidates(RING, near[0], near[-1], Constraints(exclude=RING.circuits_along(near)[:1]))) == [far]
    assert list(candidates(RING, near[0], near[-1], Constraints(exclude=far[1:2]))) == [near]


def test_including_a_far_circuit_takes_the_way_that_has_it():
    near, far = candidates(RING, *ends("albuquerque", "livermore"), FREE)
    assert list(candidates(RING, near[0], near[-1], Constraints(include=RING.circuits_along(far)[1:2]))) == [far]


def test_a_latency_limit_leaves_out_what_is_too_far():
    near, far = candidates(RING, *ends("albuquerque", "livermore"), FREE)
    limit_us = RING.path_rtt_us(near)
    assert limit_us < RING.path_rtt_us(far)
    assert list(candidates(RING, near[0], near[-1], Constraints(max_rtt_us=limit_us))) == [near]


def mesh_of(count):
    """Sites that are all joined to each other by circuits of one delay; the third has a host."""
    names = [f"s{n}" for n in range(count)]
    sites = {f"at-{s}": {"switch": {"name": s, "dpid": f"{n:016x}"}, "hosts": {}} for n, s in enumerate(names, 1)}
    sites["at-s2"]["hosts"] = {"h": {"address": "10.0.0.1", "port": "s2-h", "rate": "1 Gbit/s"}}
    circuits = {
        f"{a}-{z}": {"rate": "1 Gbit/s", "delay": "5 ms"}
        | {"a": {"switch": a, "port": f"{a}-{z}"}, "z": {"switch": z, "port": f"{z}-{a}"}}
        for a, z in combinations(names, 2)
    }
    return described({"name": "mesh", "sites": sites, "circuits": circuits})


def test_what_no_path_has_is_refused_without_a_look_at_all_paths(monkeypatch):
    mesh, looked_at, of_networkx = mesh_of(8), [], nx.shortest_simple_paths  # 1,957 paths between two of them

    def counted(*args, **kwargs):
        for path in of_networkx(*args, **kwargs):
            looked_at.append(path)
            yield path

    monkeypatch.setattr(nx, "shortest_simple_paths", counted)
    assert candidates(mesh, "s0", "s1", Constraints(include=("h",))) == ()
    assert looked_at == []
    assert candidates(mesh, "s0", "s1", Constraints(max_rtt_us=11_000)) == (("s0", "s1"),)
    assert len(looked_at) <= 10
    looked_at.clear()
    assert candidates(mesh, "s0", "s1", Constraints(include=("s0-s2", "s0-s3"))) == ()
    assert len(looked_at) == MOST_LOOKED_AT
    far = candidates(mesh, "s0", "s1", Constraints(include=("s2-s3", "s4-s5")))
    assert far[0] == ("s0", "s2", "s3", "s4", "s5", "s1")


def test_the_first_path_with_room_is_chosen():
    near, far = candidates(RING, *ends("albuquerque", "livermore"), FREE)
    full = Shortage("x", 2, 1, 0)
    answer = chosen(RING, (near[0], near[-1]), FREE, lambda paths: full if paths == (near,) else None)
    assert answer == ChosenPath(far, ())
    assert chosen(RING, (near[0], near[-1]), FREE, lambda _: full) == full


def test_a_backup_shares_no_circuit_with_the_path():
    source, target = ends("albuquerque", "livermore")
    answer = chosen(RING, (source, target), Constraints(backup=True), lambda _: None)
    assert set(RING.circuits_along(answer.path)).isdisjoint(RING.circuits_along(answer.backup))
    two_sites = chosen(chile_illinois(), ("ls1", "ch1"), Constraints(backup=True), lambda _: None)
    assert isinstance(two_sites, NoPath)


@pytest.mark.parametrize(
    ("constraints", "why"),
    [
        (Constraints(max_rtt_us=1), "the shortest round trip is"),
        (Constraints(exclude=("nobody",), include=("nowhere",)), "no path from"),
    ],
)
def test_why_there_is_no_path_is_said(constraints, why):
    answer = chosen(RING, ends("albuquerque", "livermore"), constraints, lambda _: None)
    assert why in answer.why


def test_every_step_of_a_path_is_a_link():
    for path in candidates(RING, *ends("albuquerque", "los-alamos"), FREE):
        assert all(RING.graph.has_edge(*step) for step in pairwise(path))
