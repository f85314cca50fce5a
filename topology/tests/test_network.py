"""The network as data."""

from itertools import combinations

import networkx as nx
import pytest

from mininet_tests.testing.networks import FILES, asc_ring, chile_illinois, loaded
from topology.network import Hop, UnknownNode
from topology.relinking import tagged
from topology.wire import Framing


def test_the_lsst_path_has_the_papers_round_trip():
    network = chile_illinois()
    assert network.path_rtt_us(network.path("base20", "arch")) == 180_000


def test_traffic_leaves_the_site_by_the_wan_port_and_reaches_a_host_by_its_own():
    network = chile_illinois()
    assert network.next_hop("ls1", "arch").port_name == "ls1-wan"
    assert network.next_hop("ls1", "base22").port_name == "ls1-eth3"


def test_both_directions_of_the_trunk_are_one_circuit():
    (circuit,) = chile_illinois(rate_bps=10**10).circuits
    assert (circuit.a_end, circuit.z_end, circuit.rate_bps) == ("ls1", "ch1", 10**10)


@pytest.mark.parametrize("network", [loaded(path) for path in FILES.values()], ids=list(FILES))
def test_names_fit_linux_and_addresses_and_ports_are_unique(network):
    assert all(len(link.port_name) <= 15 for _, _, link in network.links())
    assert len({h.ip for h in network.hosts}) == len({h.mac for h in network.hosts}) == len(network.hosts)
    assert len({s.dpid for s in network.switches}) == len(network.switches)
    for switch in network.switches:
        links = [link for tail, _, link in network.links() if tail == switch.name]
        numbers = [link.port_no for link in links if link.port_no]  # 0: the switch says it
        assert len(numbers) == len(set(numbers))
        assert len({link.port_name for link in links}) == len(links)


def test_the_ring_has_the_papers_round_trip_between_albuquerque_and_livermore_and_two_ways_between_any_sites():
    ring = asc_ring()
    albuquerque, livermore = (ring.edge_switch(site).name for site in ("albuquerque", "livermore"))
    assert ring.path_rtt_us(ring.path(albuquerque, livermore)) == 40_000
    wan = nx.Graph((tail, head) for tail, head, _ in ring.circuit_links)
    assert all(nx.edge_connectivity(wan, a, z) == 2 for a, z in combinations(wan, 2))


def test_both_directions_of_a_circuit_are_links_with_names():
    assert [str(Hop(tail, head)) for tail, head, _ in chile_illinois().circuit_links] == ["ls1->ch1", "ch1->ls1"]


def test_a_site_nobody_knows_is_answered_with_those_there_are():
    with pytest.raises(UnknownNode, match="la-serena, champaign"):
        chile_illinois().edge_switch("mars")


def test_an_unknown_host_is_answered_with_those_there_are():
    with pytest.raises(UnknownNode, match=r'"base99" is not in the network; there are base20, .*arch'):
        chile_illinois().host("base99")


def test_a_tag_is_on_its_circuit_alone_and_the_rest_is_as_before():
    plain = asc_ring()
    network = tagged(plain, {"los-alamos-pop": 301})
    assert [(t, h) for t, h, link in network.links() if link.vlan_vid == 301] == [("losa1", "pop1"), ("pop1", "losa1")]
    assert [link.port_no for _, _, link in network.links()] == [link.port_no for _, _, link in plain.links()]
    assert (network.hosts, network.switches, network.circuits) == (plain.hosts, plain.switches, plain.circuits)
    assert network.framing_of(network.path("albu10", "losa10")) == Framing(1500, 0)
    assert network.framing_of(network.path("albu10", "pop10")) == Framing(1500, 1) == network.framing


@pytest.mark.parametrize("vlan_vid", [0, 4095, -1])
def test_what_is_no_vlan_is_refused(vlan_vid):
    with pytest.raises(ValueError, match=r"outside 1\.\.4094"):
        tagged(asc_ring(), {"los-alamos-pop": vlan_vid})
