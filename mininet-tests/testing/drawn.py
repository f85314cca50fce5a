"""Networks that Hypothesis draws: up to eight sites as their files have them, and some that no file has."""

from ipaddress import IPv4Address
from typing import Any

from hypothesis import strategies as st

from topology.network import Host, Line, Link, Network, Switch
from topology.wire import Framing

_rates = st.sampled_from(["100 Mbit/s", "400 Mbit/s", "1 Gbit/s", "2.5 Gbit/s", "9999999999 bit/s", "100 Gbit/s"])
_vlans = st.none() | st.integers(1, 4094)
_delays = st.builds(
    lambda key, us: {key: f"{us} us"}, st.sampled_from(["delay", "delay_at_most"]), st.integers(1, 300_000)
)


@st.composite
def _addresses(draw: st.DrawFn, family: int, site: int, number: int) -> dict[str, Any]:
    """What a host is reached by: one address of the family that all have, or the prefix of a cluster; and others."""
    ipv4 = [f"10.{site}.0.{number + 1}", f"10.{site}.{128 + number}.0/24", f"172.16.{site}.{number + 1}"]
    ipv6 = [
        f"2001:db8:{site + 1:x}::{number + 1}",
        f"2001:db8:{site + 1:x}:{number + 1}::/64",
        f"fe80::{site + 1:x}:{number + 1}",
    ]
    own = ipv4 if family == 4 else ipv6
    if draw(st.booleans()):
        return {"address": own[0]}
    others = draw(st.lists(st.sampled_from([*ipv4, *ipv6]), unique=True, max_size=4))
    return {"addresses": draw(st.permutations(sorted({draw(st.sampled_from(own[:2])), *others})))}


@st.composite
def sections(draw: st.DrawFn, most_sites: int = 8) -> dict[str, Any]:
    """A network's file: every site has its own number of hosts, and a circuit to an earlier site; more join any two.

    Up to two sites are not ours. Hosts have up to three interfaces or no agent, and sites two switches, some of them.
    What a packet may have at most is said of the network, of interfaces and circuits, or of none of them.
    """
    mtu = draw(st.sampled_from([{}, {"mtu": 1500}, {"mtu": 9000}]))
    far = draw(st.integers(0, 2))
    count = draw(st.integers(1 if far else 2, most_sites - far))
    ports, family = [0] * count, draw(st.sampled_from([4, 6]))

    def port(site: int, **more: object) -> dict[str, Any]:
        ports[site] += 1
        said: dict[str, Any] = {"port": f"s{site}-p{ports[site]}", **more}
        if draw(st.booleans()):
            said["number"] = 3 * ports[site]
        if draw(st.booleans()):
            said["buffer"] = f"{draw(st.integers(1, 10**9))} B"
        return said

    def mtu_of() -> dict[str, Any]:
        least = mtu.get("mtu", 1280)
        return draw(st.sampled_from([{}, {}, {"mtu": least}, {"mtu": draw(st.integers(least, 9216))}]))

    sites: dict[str, Any] = {}
    twins = [draw(st.booleans()) for _ in range(count)]

    def interface(site: int, number: int) -> dict[str, Any]:
        at = {"switch": f"{draw(st.sampled_from('st'))}{site}"} if twins[site] else {}
        return {**draw(_addresses(family, site, number)), "rate": draw(_rates), **mtu_of(), **at, **port(site)}

    def host(site: int, number: int) -> dict[str, Any]:
        agent = {} if draw(st.booleans()) else {"agent": draw(st.booleans())}
        count = draw(st.integers(0, 3))
        several = {f"eth{i}": interface(site, number + 8 * i) for i in range(count)}
        return agent | ({"interfaces": several} if several else interface(site, number))

    for site in range(count):
        hosts = {f"h{site}-{n}": host(site, n) for n in range(draw(st.integers(0 if site else 1, 3)))}
        dpids = {f"{kind}{site}": {"dpid": f"{kind_no}{site + 1:015x}"} for kind, kind_no in (("s", 0), ("t", 1))}
        switch = {"switches": dpids} if twins[site] else {"switch": {"name": f"s{site}", **dpids[f"s{site}"]}}
        sites[f"site-{site}"] = {**switch, "hosts": hosts}
    joined = [(draw(st.integers(0, site - 1)), site) for site in range(1, count)]
    pairs = st.lists(st.integers(0, max(1, count - 1)), min_size=2, max_size=2, unique=True)
    joined += [(a, z) for a, z in draw(st.lists(pairs, max_size=4 if count > 1 else 0))]
    circuits = {}
    for number, (a, z) in enumerate(draw(st.permutations(joined))):
        circuit: dict[str, Any] = {**draw(_delays), **mtu_of()}
        at: dict[str, dict[str, Any]] = {"a": {"switch": f"s{a}"}, "z": {"switch": f"s{z}"}}
        if draw(st.booleans()):
            circuit["rate"] = draw(_rates)
        else:
            bps = draw(st.integers(10**8, 10**11))
            least = 11  # per cent: the answers of IPv6 in a VLAN take 10.7% at an MTU of 1280
            at["a"]["rate"], at["z"]["rate"] = f"{bps} bit/s", f"{bps * draw(st.integers(least, 100)) // 100} bit/s"
        for end, site in (("a", a), ("z", z)):
            vlan = draw(_vlans)
            at[end] |= port(site) | ({} if vlan is None else {"vlan": vlan})
        circuits[f"c{number}"] = circuit | at
    for site in (site for site in range(count) if twins[site]):
        ends = [{"switch": f"{kind}{site}", **port(site)} for kind in "st"]
        circuits[f"within-{site}"] = {"rate": draw(_rates), "delay": "1 us"} | dict(zip("az", ends, strict=True))
    for number in range(far):
        prefixes = [f"198.51.{number}.0/24", f"2001:db8:f:{number}::/64", f"203.0.113.{number}/32"]
        sites[f"far-{number}"] = {"prefixes": prefixes[: draw(st.integers(2, 3))]}
        for beside in range(draw(st.integers(1, 2))):
            site = draw(st.integers(0, count - 1))
            ours = {"switch": f"s{site}", **port(site), "vlan": draw(st.integers(1, 4094))}
            both: list[dict[str, Any]] = [ours, {"site": f"far-{number}"}]
            shared = {"rate": draw(_rates), **draw(_delays), **mtu_of()}
            circuits[f"f{number}-{beside}"] = shared | dict(zip("az", draw(st.permutations(both)), strict=True))
    return {"name": "drawn", **mtu, "sites": sites, "circuits": circuits}


@st.composite
def tangles(draw: st.DrawFn) -> Network:
    """Networks that no file has: hosts at several switches, at none or at each other, ties, each way another delay."""
    hosts = [Host(f"h{n}", "s", IPv4Address(n + 1), "") for n in range(draw(st.integers(1, 4)))]
    switches = [Switch(f"{draw(st.sampled_from('aiz'))}{n}", "s", n) for n in range(draw(st.integers(1, 5)))]
    network = Network("tangle", Framing(), (*hosts, *switches))
    names = draw(st.permutations([*network.graph]))
    pairs = [(a, z) for i, a in enumerate(names) for z in names[:i]]
    for number, (a, z) in enumerate(draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []):
        name = draw(st.sampled_from([None, f"c{number}"]))
        az, za = (Link(10**9, draw(st.integers(0, 2)), 0, 1, "p", name) for _ in range(2))
        if name and {a, z} <= {s.name for s in switches} and draw(st.booleans()):
            line = Line(name)
            network.graph.add_node(name, node=line)
            network.add_line((a, z), line, az, za)
        else:
            network.add_trunk(a, z, az, za)
    return network
