"""A good network's section, sections that differ from it in one thing, and one with several of what there is one of."""

from copy import deepcopy

from mininet_tests.testing.networks import chile_illinois
from topology.network_file import network_of
from topology.network_text import section_of
from topology.problems import Problems

GOOD = section_of(chile_illinois())


def network_in(values):
    """The network in what YAML has read, which must be right."""
    problems = Problems(values=values)
    network = network_of(values, problems)
    assert network is not None, problems.found
    return network


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
