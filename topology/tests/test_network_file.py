"""A network's file: what it says becomes a network and comes back."""

from dataclasses import replace
from ipaddress import ip_network

import pytest
from hypothesis import given

from controller.plan.failover import redundant
from controller.plan.paths import candidates
from controller.plan.reservations import NO_CONSTRAINTS
from mininet_tests.testing.drawn import sections
from mininet_tests.testing.networks import FILES, loaded
from topology.addresses import shown_address
from topology.network_text import file_text
from topology.tests.network_sections import AT_CERN, CIRCUIT, SECOND, SEVERAL, network_in, with_cern, with_change
from topology.yaml_text import read


def content(network):
    """All that a network is."""
    links = list(network.links())
    return network.name, network.framing, list(network.graph), network.hosts, network.switches, links, network.circuits


@given(sections())
def test_any_network_comes_back_from_its_own_text_as_it_was(section):
    network = network_in(section)
    again = network_in(read(file_text(network)).values)
    assert content(again) == content(network)
    assert file_text(again) == file_text(network)


def interfaces_in(hosts):
    """Each interface of some hosts by the name that it is planned by, as the file has them."""
    for name, host in hosts.items():
        several = host.get("interfaces", {"": host})
        for number, (interface, said) in enumerate(several.items()):
            yield f"{name}.{interface}" if number else name, said


@given(sections())
def test_any_network_has_all_that_its_file_says(section):
    network = network_in(section)
    assert {h.name: (h.site, list(map(shown_address, h.prefixes))) for h in network.hosts} == {
        name: (site, [shown_address(ip_network(one)) for one in host.get("addresses") or [host["address"]]])
        for site, inside in section["sites"].items()
        for name, host in interfaces_in(inside.get("hosts", {site: {"addresses": inside.get("prefixes")}}))
    }
    assert {*network.agents} == {
        name
        for inside in section["sites"].values()
        for name, host in inside.get("hosts", {}).items()
        if host.get("agent", True)
    }
    assert [(c.name, c.a_end, c.z_end) for c in network.circuits] == [
        (name, *(end.get("switch") or f"{end['site']}-edge" for end in (circuit["a"], circuit["z"])))
        for name, circuit in section["circuits"].items()
    ]
    for circuit in network.circuits:
        said = section["circuits"][circuit.name]
        for link, end in zip(network.links_of(circuit), (said["a"], said["z"]), strict=True):
            port = end.get("port", ""), end.get("number", 0), end.get("vlan")
            assert (link.port_name, link.port_no, link.vlan_vid) == port
            assert f"{link.delay_us} us" == said["delay_at_most" if link.is_bound else "delay"]


@pytest.mark.parametrize("path", FILES.values(), ids=list(FILES))
def test_the_experiments_networks_come_back_too(path):
    assert content(network_in(read(file_text(loaded(path))).values)) == content(loaded(path))


@pytest.mark.parametrize(
    ("of_all", "of_circuit", "of_host", "counted"),
    [(None, 4000, 9000, 4000), (None, None, 1400, 1400), (1500, 9000, 9000, 1500), (None, None, None, 1500)],
)
def test_windows_count_with_the_largest_packet_that_passes_everywhere(of_all, of_circuit, of_host, counted):
    section = with_change("mtu", to=of_all)
    section["circuits"]["chile-illinois"] |= {"mtu": of_circuit} if of_circuit else {}
    section["sites"]["la-serena"]["hosts"]["base20"] |= {"mtu": of_host} if of_host else {}
    assert network_in(section).framing.mtu_bytes == counted


def test_no_way_leads_through_a_site_that_is_not_ours():
    section = with_cern()
    section["circuits"]["chile-illinois"]["delay"] = "900 ms"
    section["circuits"]["again"] = AT_CERN | {"a": {"switch": "ch1", "port": "ch1-x"}}
    network = network_in(section)
    assert network.path("base20", "arch") == ("base20", "ls1", "ch1", "arch")
    assert network.path("base20", "cern") == ("base20", "ls1", "cern-edge", "cern")
    ways = candidates(network, "base20", "arch", NO_CONSTRAINTS), candidates(network, "base20", "cern", NO_CONSTRAINTS)
    assert [len(found) for found in ways] == [1, 2]
    assert redundant(network) == {"to-cern", "again"}, "to cern there are two ways, between our sites one"


def test_one_site_alone_with_what_is_beyond_is_a_network():
    section = with_cern()
    del section["sites"]["champaign"], section["circuits"]["chile-illinois"]
    network = network_in(section)
    assert (network.sites, [host.name for host in network.hosts if not host.has_agent]) == (
        ("la-serena", "cern"),
        ["cern"],
    )


def test_several_circuits_join_the_same_two_switches_each_as_a_node_of_its_own():
    network = network_in(with_change("circuits", "second", to=SECOND))
    assert network.path("base20", "arch") == ("base20", "ls1", "second", "ch1", "arch")
    assert network.path("base20", "arch", frozenset(["second"]))[2] == "chile-illinois"


def test_each_direction_has_its_own_rate_and_the_circuit_is_as_good_as_the_lesser():
    slow_back = with_change(*CIRCUIT, "z", "rate", to="250 Mbit/s")
    network = network_in(slow_back)
    (circuit,) = network.circuits
    assert (network.link("ls1", "ch1").rate_bps, network.link("ch1", "ls1").rate_bps) == (10**9, 25 * 10**7)
    assert circuit.rate_bps == 25 * 10**7


def test_a_tag_at_one_end_is_counted_on_the_way_out_of_it_alone():
    network = network_in(with_change(*CIRCUIT, "a", "vlan", to=300))
    assert network.framing == replace(network.framing_of(("ls1", "ch1")), vlan_tags=1)
    assert network.framing_of(("ch1", "ls1")).vlan_tags == 0


def test_an_interface_after_the_first_is_planned_as_a_host_whose_agent_is_the_first_ones():
    network = network_in(read(SEVERAL).values)
    assert [(h.name, h.machine, h.interface) for h in network.hosts][:3] == [
        ("dtn", "dtn", "eth0"),
        ("dtn.eth1", "dtn", "eth1"),
        ("cluster", "cluster", ""),
    ]
    assert network.agents == ("dtn",)
    assert [network.link("dtn", "br0").port_name, network.link("dtn.eth1", "br1").port_name] == ["dtn-eth0", "dtn-eth1"]


def test_what_is_sent_from_a_second_switch_of_a_site_crosses_the_line_to_the_first():
    network = network_in(read(SEVERAL).values)
    assert network.path("dtn.eth1", "there") == ("dtn.eth1", "br1", "br0", "there-edge", "there")
    assert network.is_ours("cluster"), "without an agent, but at our own site"
