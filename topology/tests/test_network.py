"""The network as data."""

import pytest

from topology.named import chile_illinois
from topology.network import UnknownNode


def test_the_lsst_path_has_the_papers_round_trip():
    assert chile_illinois().rtt_us("base20", "arch") == 180_000


def test_traffic_leaves_the_site_by_the_wan_port_and_reaches_a_host_by_its_own():
    network = chile_illinois()
    assert network.next_hop("ls1", "arch").port_name == "ls1-wan"
    assert network.next_hop("ls1", "base22").port_name == "ls1-eth3"


def test_both_directions_of_the_trunk_are_one_circuit():
    (circuit,) = chile_illinois(rate_bps=10**10).circuits
    assert (circuit.a_end, circuit.z_end, circuit.rate_bps) == ("ls1", "ch1", 10**10)


def test_interface_names_fit_linux():
    assert all(len(link.port_name) <= 15 for _, _, link in chile_illinois().links())


def test_an_unknown_host_is_answered_with_those_there_are():
    with pytest.raises(UnknownNode, match=r'"base99" is not in the network; there are base20, .*arch'):
        chile_illinois().host("base99")
