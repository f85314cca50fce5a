"""The networks of the experiments, from their files; and the same with other rates, delays and packets."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from topology.network import Hop, Host, Link, Network, Switch
from topology.network_file import network_of
from topology.network_text import section_of
from topology.problems import Problems
from topology.relinking import relinked
from topology.wire import Framing
from topology.yaml_text import read

FOLDER = Path(__file__).resolve().parents[1] / "networks"
NAMES = (
    "chile-illinois",
    "chile-illinois-2",
    "chile-illinois-north",
    "asc-ring",
    "two-lines",
    "three-sites",
    "two-lanes",
    "four-lanes",
    "two-switches",
)
STAR_BPS, STAR_DELAY_US = 100 * 10**9, 10_000
FILES = {name: FOLDER / f"{name}.yaml" for name in NAMES}


@cache
def loaded(path: Path) -> Network:
    """Return the network in a file.

    Raises:
        ValueError: it has problems; all of them.
    """
    text = read(path.read_text(encoding="utf-8"))
    return described(text.values, text.repeated)


def described(said: Any, repeated: Sequence[str] = ()) -> Network:
    """Return the network that a section describes.

    Args:
        said: the section's values.
        repeated: keys that its text says twice.

    Raises:
        ValueError: it has problems; all of them.
    """
    problems = Problems(values=said)
    network = network_of(said, problems)
    if network is None or repeated:
        raise ValueError("\n".join((*repeated, *problems.found)))
    return network


def scaled(network: Network, rate_bps: tuple[int, int], delay_us: tuple[int, int], mtu_bytes: int) -> Network:
    """Return a network with all its rates and buffers, and all its delays, in proportion to what they were.

    Args:
        network: that.
        rate_bps: a rate in it, and what that is to be.
        delay_us: a delay in it, and what that is to be.
        mtu_bytes: the largest IP packet.
    """

    def changed(_: Hop, link: Link) -> Link:
        return replace(
            link,
            rate_bps=link.rate_bps * rate_bps[1] // rate_bps[0],
            buffer_bytes=link.buffer_bytes * rate_bps[1] // rate_bps[0],
            delay_us=link.delay_us * delay_us[1] // delay_us[0],
        )

    return relinked(network, replace(network.framing, mtu_bytes=mtu_bytes), changed)


def chile_illinois(rate_bps: int = 1_000_000_000, delay_us: int = 90_000, mtu_bytes: int = 1500) -> Network:
    """Return the LSST benchmark's path, with the circuit's rate and one-way delay."""
    return scaled(loaded(FILES["chile-illinois"]), (10**9, rate_bps), (90_000, delay_us), mtu_bytes)


def chile_illinois_2(rate_bps: int = 1_000_000_000, delay_us: int = 90_000, mtu_bytes: int = 1500) -> Network:
    """Return that path with two circuits, with the rate and one-way delay of ``north``."""
    return scaled(loaded(FILES["chile-illinois-2"]), (10**9, rate_bps), (90_000, delay_us), mtu_bytes)


def two_lanes(rate_bps: int = 1_000_000_000, delay_us: int = 90_000) -> Network:
    """Return the path with two circuits for a host with two interfaces, with ``north``'s rate and one-way delay."""
    return scaled(loaded(FILES["two-lanes"]), (10**9, rate_bps), (90_000, delay_us), 1500)


def two_lanes_of(
    *families: int, eth1: tuple[int, ...] = (), rate_bps: int = 1_000_000_000, delay_us: int = 90_000
) -> Network:
    """Return the path with two circuits, whose hosts have addresses of IPv4, IPv6 or both: 4, 6.

    Args:
        families: of all interfaces.
        eth1: of the sender's second one, if it has others; hosts with one interface have both then.
        rate_bps: of ``north``.
        delay_us: likewise, one way.
    """
    of_interface = {"eth0": families, "eth1": eth1 or families}
    section = section_of(loaded(FILES["two-lanes"]))
    for number, site in enumerate(section["sites"].values(), start=1):
        for host in site["hosts"].values():
            for name, interface in host.get("interfaces", {"": host}).items():
                known = interface.pop("addresses", None) or [interface.pop("address")]
                of_family = {4: known, 6: [f"2001:db8:{number}::{address.rpartition('.')[2]}" for address in known]}
                its = of_interface.get(name, dict.fromkeys((*families, *eth1)))
                interface["addresses"] = [address for family in its for address in of_family[family]]
    return scaled(described(section), (10**9, rate_bps), (90_000, delay_us), 1500)


def four_lanes(rate_bps: int = 1_000_000_000) -> Network:
    """Return four circuits of one rate for a host with four interfaces."""
    return scaled(loaded(FILES["four-lanes"]), (10**9, rate_bps), (1, 1), 9000)


def asc_ring(rate_bps: int = 10_000_000_000, delay_us: int = 20_000, mtu_bytes: int = 1500) -> Network:
    """Return the ring, with every circuit's rate, and the one-way delay of Albuquerque-Livermore."""
    return scaled(loaded(FILES["asc-ring"]), (10**10, rate_bps), (20_000, delay_us), mtu_bytes)


def one_site(hosts: int, here: str, elsewhere: str) -> Network:
    """Return a network with one switch of ours, its hosts, and a circuit to a site that is not ours."""
    at = {f"h{n}": {"address": f"10.0.0.{n + 1}", "port": f"h{n}", "rate": "10 Gbit/s"} for n in range(hosts)}
    ends = {"a": {"switch": "ls1", "port": "wan"}, "z": {"site": elsewhere}}
    sites = {
        here: {"switch": {"name": "ls1", "dpid": "0000000000000001"}, "hosts": at},
        elsewhere: {"prefixes": ["10.60.0.0/16"]},
    }
    rhine = {"rate": "10 Gbit/s", "delay": "60 ms"} | ends
    return described({"name": "one-site", "sites": sites, "circuits": {"rhine": rhine}})


def star(hosts: int, circuits: int, circuit_bps: int = STAR_BPS) -> Network:
    """Return a network whose circuits leave one site for as many others, its hosts spread over those in turn.

    The site in the middle has one host, ``archive``, to which all others send; it carries what all circuits do.
    """
    names = [f"h{n}" for n in range(hosts)]
    nodes = [Host("archive", "middle", IPv4Address("10.0.0.1"), "")]
    nodes += [Host(name, f"site-{n % circuits}", IPv4Address(0x0A000002 + n), "") for n, name in enumerate(names)]
    switches = [Switch("m", "middle", 1), *(Switch(f"s{n}", f"site-{n}", n + 2) for n in range(circuits))]
    network = Network("star", Framing(), (*nodes, *switches))
    for number in range(circuits):
        _join(network, f"s{number}", "m", f"c{number}", circuit_bps)
    _join(network, "archive", "m", rate_bps=circuits * circuit_bps)
    for number, name in enumerate(names):
        _join(network, name, f"s{number % circuits}")
    return network


def _join(network: Network, a_end: str, z_end: str, circuit: str | None = None, rate_bps: int = STAR_BPS) -> None:
    delay_us = STAR_DELAY_US if circuit else 1
    ports = (len(network.graph[a_end]) + 1, f"{a_end}-{z_end}"), (len(network.graph[z_end]) + 1, f"{z_end}-{a_end}")
    az, za = (Link(rate_bps, delay_us, 10**8, *port, circuit) for port in ports)
    network.add_trunk(a_end, z_end, az, za)
