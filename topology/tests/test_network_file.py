"""A network's file: what it says becomes a network and comes back; what is wrong is said at once."""

from copy import deepcopy
from dataclasses import replace
from ipaddress import ip_network

import pytest
from hypothesis import given

from controller.plan.failover import redundant
from controller.plan.paths import candidates
from controller.plan.reservations import NO_CONSTRAINTS
from mininet_tests.testing.drawn import sections
from mininet_tests.testing.networks import FILES, chile_illinois, loaded
from topology.addresses import shown_address
from topology.network_file import network_of
from topology.network_text import file_text, section_of
from topology.problems import Problems
from topology.yaml_text import read

GOOD = section_of(chile_illinois())


def network_in(values):
    """The network in what YAML has read, which must be right."""
    problems = Problems(values=values)
    network = network_of(values, problems)
    assert network is not None, problems.found
    return network


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


def with_change(*steps, to):
    """The good file with a value changed, or taken out."""
    section = deepcopy(GOOD)
    place = section
    for step in steps[:-1]:
        place = place[step]
    if to is None:
        del place[steps[-1]]
    else:
        place[steps[-1]] = to
    return section


HOSTS, CIRCUIT = ("sites", "la-serena", "hosts"), ("circuits", "chile-illinois")
SECOND = {
    "rate": "1 Gbit/s",
    "delay": "1 ms",
    "a": {"switch": "ls1", "port": "ls1-b", "number": 20},
    "z": {"switch": "ch1", "port": "ch1-b", "number": 20},
}


def with_addresses(*addresses):
    """The good file with a host that has other addresses."""
    host = {key: value for key, value in GOOD["sites"]["la-serena"]["hosts"]["base20"].items() if key != "address"}
    return with_change(*HOSTS, "base20", to=host | {"addresses": list(addresses)})


AT_CERN = SECOND | {"z": {"site": "cern"}}


def with_cern(cern=None, circuit=None, **more):
    """The good file with a site that is not ours, and a circuit to it."""
    section = with_change("sites", "cern", to=cern or {"prefixes": ["198.51.100.0/24"]})
    section["circuits"]["to-cern"] = circuit or AT_CERN
    return {**section, **more}


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        (with_change("name", to=None), "the file: `name` is missing"),
        (with_change("nmae", to=1), "nmae: there is no such key; there are name, mtu, sites, circuits"),
        (with_change("mtu", to="big"), "mtu: big is not a whole number from 576 to 9216"),
        (
            with_change(*CIRCUIT, "mtu", to=1400),
            "circuits.chile-illinois.mtu: packets of 1500 bytes, the network's `mtu`, do not pass 1400: write",
        ),
        (
            with_change(*HOSTS, "base20", "mtu", to=1280),
            "base20.mtu: packets of 1500 bytes, the network's `mtu`, do not",
        ),
        (with_change("sites", to=[]), "sites: must be `name: ...` pairs"),
        (with_change("sites", "la-serena", to="x"), "sites.la-serena: must be `key: value` pairs"),
        (with_change("sites", "la-serena", "switch", to=None), "sites.la-serena: `switch` is missing"),
        (
            with_change("sites", "champaign", "switch", "dpid", to=2),
            "champaign.switch.dpid: write the datapath id",
        ),
        (
            with_change("sites", "champaign", "switch", "dpid", to="0000000000000001"),
            "sites.champaign.switch.dpid: 1 is another switch's too (sites.la-serena.switch.dpid)",
        ),
        (
            with_change("sites", "champaign", "switch", "name", to="ls1"),
            'sites.champaign.switch.name: there is already a switch "ls1"',
        ),
        (
            with_change("sites", "champaign", "hosts", "arch", "address", to="10.20.20.20"),
            "champaign.hosts.arch.address: 10.20.20.20 is another host's too (sites.la-serena.hosts.base20.address)",
        ),
        (
            with_change(*HOSTS, "base20", "address", to="fd00::1"),
            "base20.address: all are IPv6, and no host of another site has such: add one of IPv4, or it there",
        ),
        (with_change(*HOSTS, "base20", "address", to="::1"), "hosts.base20.address: ::1 is not an address that others"),
        (with_change(*HOSTS, "base20", "address", to="::ffff:10.0.0.1"), "::ffff:10.0.0.1 is not an address that"),
        (
            with_change(*HOSTS, "base20", "address", to="10.0.0.0/8"),
            "hosts.base20.address: 10.0.0.0/8 is",
        ),
        (
            with_change(*HOSTS, "base20", "addresses", to=[]),
            "la-serena.hosts.base20.addresses: must be a list, such as",
        ),
        (
            with_change(*HOSTS, "base20", "addresses", to=["10.1.0.1"]),
            "hosts.base20.address: stands beside `addresses`",
        ),
        (
            with_addresses("10.1.0.1/16"),
            'base20.addresses: "10.1.0.1/16" has bits beyond its length: write 10.1.0.0/16',
        ),
        (with_addresses("fe80::1"), "base20.addresses: fe80::1 is a link-local address: add one that data can be"),
        (with_addresses("10.1.0.1", "fe80::/64"), "base20.addresses: fe80::/64 is for link-local addresses: write"),
        (with_addresses("10.1.0.1", "10.1.0.0/24"), "base20.addresses: 10.1.0.1 is there twice"),
        (
            with_addresses("10.20.20.20", "10.20.20.64/26"),
            "arch.address: 10.20.20.100 is another host's too (sites.la-serena.hosts.base20.addresses: 10.20.20.64/26)",
        ),
        (with_change(*HOSTS, "base20", "rate", to=None), "sites.la-serena.hosts.base20: `rate` is missing"),
        (
            with_change(*HOSTS, "base20", "rate", to="99999999999999999999 Tbit/s"),
            "sites.la-serena.hosts.base20.rate: 99999999999999999999 Tbit/s is out of bounds",
        ),
        (
            with_change(*HOSTS, "base20", "port", to="ls1-eth2"),
            "sites.la-serena.hosts.base21.port: something else is at this port too (sites.la-serena.hosts.base20.port)",
        ),
        (
            with_change(*CIRCUIT, "a", "number", to=2),
            "circuits.chile-illinois.a.number: another port of the switch has this number",
        ),
        (with_change(*HOSTS, "ch1", to=GOOD["sites"]["la-serena"]["hosts"]["base20"]), '"ch1" is the name of a switch'),
        (with_change("circuits", to={}), "circuits: there is none"),
        (with_change(*CIRCUIT, "z", to=None), "circuits.chile-illinois: `z` is missing"),
        (with_change(*CIRCUIT, "delay", to=None), "circuits.chile-illinois: `delay` is missing"),
        (with_change(*CIRCUIT, "delay", to="1 h"), "circuits.chile-illinois.delay: 1 h is out of bounds"),
        (with_change(*CIRCUIT, "rate", to=None), "circuits.chile-illinois.a: `rate` is missing"),
        (
            with_change(*CIRCUIT, "z", "rate", to="10 Mbit/s"),
            "chile-illinois.z: 10 Mbit/s is no way back for",
        ),
        (with_change(*CIRCUIT, "z", "vlan", to=4095), "circuits.chile-illinois.z.vlan: 4095 is not a whole number"),
        (with_change(*CIRCUIT, "z", "switch", to="ch9"), 'circuits.chile-illinois.z.switch: there is no switch "ch9"'),
        (with_change(*CIRCUIT, "transit", to="x"), "circuits.chile-illinois.transit: there is no such key"),
        (
            with_change("sites", "mars", to={"switch": {"name": "m1", "dpid": "00000000000000ff"}}),
            "sites.mars: its hosts cannot be reached from la-serena: no circuit joins m1 to it",
        ),
        (with_cern({"prefixes": "198.51.100.0/24"}), "cern.prefixes: must be a list, such as [198."),
        (
            with_cern({"prefixes": ["10.20.20.0/24"]}),
            "20.20.20 is another host's too (sites.cern.pre",
        ),
        (
            with_cern({"prefixes": ["2001:db8::/32"]}),
            "cern.prefixes: all are IPv6, and no host of",
        ),
        (
            with_cern({"prefixes": ["198.51.100.0/24"], "hosts": {}}),
            "cern.hosts: there is no such key",
        ),
        (with_cern(circuit=SECOND), "sites.cern: cannot be reached: no circuit ends there; write one with `z: {site: "),
        (
            with_cern(circuit=SECOND | {"z": {"site": "x"}}),
            'z.site: there is no such site "x"; those that are',
        ),
        (
            with_cern(circuit=AT_CERN | {"a": {"site": "cern"}}),
            "to-cern: neither end is ours, so nothing of",
        ),
        (
            with_cern(circuit=AT_CERN | {"z": {"site": "cern", "vlan": 9}}),
            "to-cern.z.vlan: there is no such key",
        ),
        (
            with_cern(sites={"cern": {"prefixes": ["198.51.100.0/24"]}}, circuits={"c": AT_CERN}),
            "sites: none is ours: give the one",
        ),
        (
            with_change("circuits", "second", to=SECOND | {"z": SECOND["a"] | {"port": "x", "number": 30}}),
            "circuits.second: begins and ends at the same switch",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place_and_the_cure(section, problem):
    problems = Problems(values=section)
    assert network_of(section, problems) is None
    assert any(problem in found for found in problems.found), problems.found


@pytest.mark.parametrize(
    ("of_all", "of_circuit", "of_host", "counted"),
    [(None, 4000, 9000, 4000), (None, None, 1400, 1400), (1500, 9000, 9000, 1500), (None, None, None, 1500)],
)
def test_windows_count_with_the_largest_packet_that_passes_everywhere(of_all, of_circuit, of_host, counted):
    section = with_change("mtu", to=of_all)
    section["circuits"]["chile-illinois"] |= {"mtu": of_circuit} if of_circuit else {}
    section["sites"]["la-serena"]["hosts"]["base20"] |= {"mtu": of_host} if of_host else {}
    assert network_in(section).framing.mtu_bytes == counted


def test_every_problem_is_said_at_once_each_with_its_line():
    text = """\
name: two sites
sites:
  a:
    switch: {name: s1, dpid: 1}
    hosts:
      h1:
        address: 10.0.0.1
        port: p1
        number: 1
        rate: 99999999999999999999 Tbit/s
      h2: {address: 10.0.0.1, port: p1, number: 1, rate: 1 Gbit/s}
      h3: {address: 10.0.0.1, port: p1, number: 1, rate: 1 Gbit/s}
  b: {switch: {name: s2, dpid: "0000000000000002"}}
  b: {switch: {name: s2, dpid: "0000000000000002"}}
circuits:
  c: {rate: 1 Gbit/s, a: {switch: s1, port: p1, number: 4}, z: {switch: s2, port: p1, number: 1}}
"""
    read_text = read(text)
    problems = Problems(values=read_text.values)
    assert network_of(read_text.values, problems) is None
    places = [": ".join(found.split(": ")[:2]) for found in (*read_text.repeated, *problems.found)]
    assert sorted(places) == sorted(
        [
            'line 14: the key "b" stands on line 13 already',
            "line 1: name",
            "line 4: sites.a.switch.dpid",
            "line 10: sites.a.hosts.h1.rate",
            "line 12: sites.a.hosts.h3.address",
            "line 12: sites.a.hosts.h3.port",
            "line 12: sites.a.hosts.h3.number",
            "line 16: circuits.c",
        ]
    )


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


SEVERAL = """\
name: several
sites:
  here:
    switches:
      br0: {dpid: "0000000000000001"}
      br1: {dpid: "0000000000000002"}
    hosts:
      dtn:
        interfaces:
          eth0: {addresses: [192.0.2.10, "2001:db8::10"], switch: br0, port: p1, rate: 10 Gbit/s}
          eth1: {address: 192.0.2.11, switch: br1, port: p1, rate: 1 Gbit/s}
      cluster: {agent: no, addresses: [198.51.100.0/24], switch: br1, port: p2, rate: 1 Gbit/s}
  there:
    prefixes: [203.0.113.0/24, "2001:db8:1::/48"]
circuits:
  within: {rate: 10 Gbit/s, delay: 1 us, a: {switch: br0, port: p8}, z: {switch: br1, port: p8}}
  out: {rate: 1 Gbit/s, delay: 20 ms, a: {switch: br0, port: p9}, z: {site: there}}
"""


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


@pytest.mark.parametrize(
    ("said", "instead", "why"),
    [
        ("switch: br1, port: p1", "port: p1", "sites.here.hosts.dtn.interfaces.eth1: `switch` is missing"),
        ("switch: br1, port: p1", "switch: br7, port: p1", '"br7" is no switch of here; there are br0, br1'),
        ("switch: br1, port: p1", "switch: br0, port: p1", "something else is at this port too"),
        ("agent: no", "agent: maybe", "maybe is neither yes nor no"),
        ("192.0.2.11", "192.0.2.10", "192.0.2.10 is another host's too"),
        ("  within:", "  inside:", ""),
    ],
)
def test_what_is_wrong_with_interfaces_and_switches_is_said(said, instead, why):
    values = read(SEVERAL.replace(said, instead)).values
    problems = Problems(values=values)
    network_of(values, problems)
    assert any(why in problem for problem in problems.found) if why else not problems.found
