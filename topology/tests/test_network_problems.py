"""What is wrong in a network's file is said with its place and the cure, all of it at once."""

import pytest

from topology.network_file import network_of
from topology.problems import Problems
from topology.tests.network_sections import (
    AT_CERN,
    CIRCUIT,
    GOOD,
    HOSTS,
    SECOND,
    SEVERAL,
    with_addresses,
    with_cern,
    with_change,
)
from topology.yaml_text import read


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
        *(
            (
                with_change(*HOSTS, "base20", "address", to=address),
                f"base20.address: {address} is a link-local address: add",
            )
            for address in ("fe80::1", "169.254.1.1")
        ),
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
        (with_addresses("10.1.0.1", "fe80::1%eth0"), "base20.addresses: fe80::1%eth0 names an interface of"),
        (with_addresses("2001:db8::%eth0/64"), "base20.addresses: 2001:db8::%eth0/64 names an interface of"),
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
            with_cern({"prefixes": ["fe80::1/128", "169.254.7.1/32"]}),
            "sites.cern.prefixes: fe80::1/128 is a link-local address: add one that data can be sent to",
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


@pytest.mark.parametrize("way_back", ["91 Mbit/s", "93 Mbit/s"])
def test_a_way_back_must_carry_the_answers_of_ipv6_in_a_vlan_where_there_are_such(way_back):
    section = with_addresses("10.1.0.1", "2001:db8::1")
    circuit = GOOD["circuits"]["chile-illinois"]
    section["circuits"] = {"chile-illinois": circuit | {"z": circuit["z"] | {"rate": way_back, "vlan": 9}}}
    problems = Problems(values=section)
    is_right = network_of(section, problems) is not None
    assert is_right == (way_back == "93 Mbit/s"), problems.found


@pytest.mark.parametrize(
    ("site", "problem"),
    [
        ("NO", 'YAML reads this as yes or no: put what you wrote in quotes, as "NO"'),
        ("1234", '1234 is not a name to YAML: put it in quotes, "1234"'),
    ],
)
def test_a_name_that_yaml_takes_for_something_else_is_told_as_it_is_to_be_written(site, problem):
    problems = Problems(values=read(f"name: two\nsites: {{{site}: {{prefixes: [198.51.100.0/24]}}}}").values)
    assert network_of(problems.values, problems) is None
    assert any(problem in found for found in problems.found), problems.found


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
