"""A network's file begun from what switches and agents say: once its TODOs are replaced, it is a network."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.cli.network_asked import FoundBridge, FoundPort
from apps.cli.network_draft import TODO, drafted
from topology.addresses import prefix_of
from topology.network_file import network_of
from topology.problems import Problems
from topology.protocol import Hello, HostInterface
from topology.yaml_text import read

SUMMIT = FoundBridge(
    "sum1",
    0xA1,
    "summit.example.org",
    (
        FoundPort("dtn1", 1, 10**9, 9000),
        FoundPort("dtn2", 2, 0, 9000),
        FoundPort("wan0", 9, 10**10, 9000, interfaces=2),
    ),
)
BASE = FoundBridge("bas1", 0xA2, "", (FoundPort("store1", 0, 10**10, 1500), FoundPort("wan7", 3, 10**10, 1500)))


def completed(text):
    """Return the text as an operator completes it: names, addresses, rates, delays."""
    lines = []
    for number, line in enumerate(text.splitlines()):
        code, hash_, remark = line.partition("#")
        code = code.replace(f"name: {TODO}", "name: ours").replace(f"delay: {TODO}", "delay: 20 ms")
        code = code.replace(f"address: {TODO}", f"address: 10.9.{number // 200}.{number % 200 + 1}")
        code = code.replace(f"rate: {TODO}", "rate: 1 Gbit/s").replace(f"dpid: {TODO}", f'dpid: "{number + 99:016x}"')
        lines.append(code + hash_ + remark)
    return "\n".join(lines)


def network_in(text):
    """Return the network, and what is wrong with it."""
    values = read(text)
    problems = Problems(values=values.values)
    return network_of(values.values, problems), [*values.repeated, *problems.found]


def test_what_switches_say_is_in_it_and_what_they_cannot_say_is_to_be_completed():
    text = drafted([SUMMIT, BASE])
    assert (
        "summit-dtn2: {address: TODO, port: dtn2, number: 2, rate: TODO}  # its interface does not say its rate" in text
    )
    assert "a: {switch: sum1, port: wan0, number: 9, rate: 10 Gbit/s}  # a bond of 2 interfaces" in text
    assert "mtu: 1500 " in text
    assert network_in(text)[1]
    network, problems = network_in(completed(text))
    assert problems == []
    assert {(switch.name, switch.dpid) for switch in network.switches} == {("sum1", 0xA1), ("bas1", 0xA2)}
    assert {host.name for host in network.hosts} == {"summit-dtn1", "summit-dtn2", "site-bas1-store1"}
    assert [circuit.rate_bps for circuit in network.circuits] == [10**10]


def test_a_port_that_looks_out_and_has_no_other_is_said():
    text = drafted([SUMMIT])
    assert "circuits: {}  # TODO" in text
    assert "# sum1 wan0: a circuit's, by its name; no port was left for its far end" in text


def test_bridges_of_the_same_name_are_said():
    text = drafted([SUMMIT, SUMMIT, SUMMIT])
    assert 'Two bridges are called "sum1"' in text
    assert len(read(text).values["sites"]) == 3


def caller(host, *interfaces):
    """What an agent says first: interfaces as name, addresses, rate."""
    each = (HostInterface(name, tuple(map(ip_address, its)), 1500, rate) for name, rate, *its in interfaces)
    return Hello(host, "1", "6.12", interfaces=tuple(each))


def test_an_agent_that_calls_says_its_hosts_name_addresses_and_rate():
    hellos = [
        caller("dtn2", ("eth0", 25 * 10**9, "192.0.2.21", "2001:db8::21", "fe80::21"), ("mgmt", 10**9, "198.51.100.7")),
        caller("dtn", ("eth0", 10**9, "192.0.2.22")),  # dtn1 and dtn2 are not called after it
        caller("silent"),
        caller("local", ("eth0", 0, "fe80::1")),
    ]
    text = drafted([SUMMIT, BASE], hellos)
    assert 'dtn2: {addresses: [192.0.2.21, "2001:db8::21", "fe80::21"], port: dtn2, number: 2, rate: 25 Gbit/s}' in text
    assert "by the port's name; the host also has mgmt 198.51.100.7" in text
    assert "summit-dtn1: {address: TODO, port: dtn1," in text
    assert "#   dtn: {address: 192.0.2.22, rate: 1 Gbit/s}  its eth0" in text
    assert "silent" not in text
    assert "local" not in text
    network, problems = network_in(completed(text))
    assert problems == []
    assert network.host("dtn2").prefixes == tuple(map(prefix_of, hellos[0].interfaces[0].addresses))


def test_a_site_on_the_host_itself_has_another_name_than_the_host():
    within = FoundBridge("br0", 1, "dtn1.example.org", (FoundPort("dtn1", 1, 10**9, 1500), *SUMMIT.ports[2:]))
    hellos = [caller("dtn1", ("dtn1", 10**9, "192.0.2.21")), caller("site-br0", ("eth0", 10**9, "192.0.2.22"))]
    network, problems = network_in(completed(drafted([within, BASE], hellos)))
    assert problems == []
    assert network.host("dtn1").site == "site-br0-1"


def test_two_ports_called_after_one_host_are_not_both_its():
    both = FoundBridge("s1", 1, "", (FoundPort("dtn2-a", 1, 10**9, 1500), FoundPort("dtn2-b", 2, 10**9, 1500)))
    text = drafted([both, BASE], [caller("dtn2", ("eth0", 10**9, "192.0.2.21"))])
    assert text.count("dtn2: {") == 1
    assert "site-s1-dtn2-b: {address: TODO" in text


ports = st.builds(
    FoundPort,
    st.integers(0, 10**6).map(lambda n: f"{'wan' if n % 3 == 0 else 'eth'}{n}"),
    st.integers(0, 1000),
    st.sampled_from([0, 10**9, 25 * 10**9]),
    st.sampled_from([0, 1500, 9000]),
    st.integers(1, 3),
)
some_ports = st.lists(ports, min_size=1, max_size=5, unique_by=(lambda p: p.name, lambda p: p.port_no or p.name))


@given(st.lists(some_ports, min_size=2, max_size=5), st.sampled_from(["", "edge.example.org", "s1", "a b"]))
def test_any_draft_is_yaml_in_which_nothing_stands_twice_and_every_port_is_said_once(drawn, machine):
    bridges = [FoundBridge(f"s{n}", n, machine, tuple(each)) for n, each in enumerate(drawn)]
    text = drafted(bridges)
    values = read(completed(text))
    assert values.repeated == ()
    for bridge in bridges:
        for port in bridge.ports:
            said = text.count(f"port: {port.name},") + text.count(f"{bridge.name} {port.name}: a circuit's")
            assert said >= 1


@pytest.mark.parametrize("machine", ["", "same.example.org"])
def test_sites_have_names_of_their_own(machine):
    bridges = [FoundBridge(f"s{n}", n + 1, machine, (FoundPort(f"eth{n}", 1, 10**9, 1500),)) for n in range(3)]
    values = read(drafted(bridges))
    assert values.repeated == ()
    assert len(values.values["sites"]) == 3
