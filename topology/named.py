"""Networks known by name."""

from collections.abc import Callable
from ipaddress import IPv4Address

from topology.network import Host, Line, Link, Network, Switch
from topology.wire import Framing

RECEIVER_NIC_TIMES = 10  # the receiver's port is faster than the circuit, so that the circuit is the bottleneck
LAN_DELAY_US = 0  # the paper's whole delay is the WAN's
WAN_BUFFER_US = 50_000  # of the circuit's rate, which is what a usual edge switch port can hold


def chile_illinois(rate_bps: int = 1_000_000_000, delay_us: int = 90_000, mtu_bytes: int = 1500) -> Network:
    """Return the path of the LSST benchmark: four senders in La Serena, one receiver in Champaign.

    Source: Freemon 2013 section IV.A and figure 1: base20 to base23 behind one switch, a router with netem
    (90 ms each way), the receiver "Arch". Each sender's interface has the circuit's rate.

    Args:
        rate_bps: the circuit's rate on the wire, each way.
        delay_us: one-way delay of the circuit.
        mtu_bytes: largest IP packet on the whole path.
    """
    ends = Switch("ls1", "la-serena", 1), Switch("ch1", "champaign", 2)
    network = _lsst("chile-illinois", rate_bps, mtu_bytes, ends)
    buffer_bytes = rate_bps * WAN_BUFFER_US // 8_000_000
    network.add_trunk(
        ends[0].name,
        ends[1].name,
        Link(rate_bps, delay_us, buffer_bytes, 9, "ls1-wan", "chile-illinois"),
        Link(rate_bps, delay_us, buffer_bytes, 9, "ch1-wan", "chile-illinois"),
    )
    return network


def chile_illinois_2(rate_bps: int = 1_000_000_000, delay_us: int = 90_000, mtu_bytes: int = 1500) -> Network:
    """Return the path of the LSST benchmark with two circuits between the same two switches.

    ``north`` is the benchmark's own. ``south`` is the second, as long-haul sites have it: by another way, a ninth
    longer, and half as fast. Each end has one switch with a port for each circuit.

    Args:
        rate_bps: the rate of ``north`` on the wire, each way.
        delay_us: one-way delay of ``north``.
        mtu_bytes: largest IP packet on the whole path.
    """
    ends = Switch("ls1", "la-serena", 1), Switch("ch1", "champaign", 2)
    lines = Line("north"), Line("south")
    network = _lsst("chile-illinois-2", rate_bps, mtu_bytes, ends, lines)
    rates_bps, delays_us = (rate_bps, rate_bps // 2), (delay_us, delay_us * 10 // 9)
    for port_no, line, own_bps, own_delay_us in zip((8, 9), lines, rates_bps, delays_us, strict=True):
        buffer_bytes = own_bps * WAN_BUFFER_US // 8_000_000
        az, za = (
            Link(own_bps, own_delay_us, buffer_bytes, port_no, f"{end.name}-{line.name}", line.name) for end in ends
        )
        network.add_line((ends[0].name, ends[1].name), line, az, za)
    return network


def _lsst(
    name: str, rate_bps: int, mtu_bytes: int, ends: tuple[Switch, Switch], lines: tuple[Line, ...] = ()
) -> Network:
    """Return the two sites of the LSST benchmark, not joined yet."""
    chile, illinois = ends
    senders = tuple(
        Host(f"base{n}", "la-serena", IPv4Address(f"10.20.20.{n}"), f"02:00:00:00:20:{n}") for n in range(20, 24)
    )
    receiver = Host("arch", "champaign", IPv4Address("10.20.20.100"), "02:00:00:00:20:64")
    network = Network(name, Framing(mtu_bytes), (*ends, *lines, *senders, receiver))
    for port_no, host in enumerate(senders, start=1):
        _add_lan(network, host.name, chile.name, port_no, rate_bps)
    _add_lan(network, receiver.name, illinois.name, 1, rate_bps * RECEIVER_NIC_TIMES)
    return network


RING_SITES = ("albuquerque", "los-alamos", "pop", "livermore")


def asc_ring(rate_bps: int = 10_000_000_000, delay_us: int = 20_000, mtu_bytes: int = 1500) -> Network:
    """Return a ring of four sites, the shape of the ASC WAN: between any two sites there are two ways.

    Source: Wertz et al., section 1.1 and figure 1: 10 Gbit/s links "configured in a ring topology" that join the
    weapons laboratories; section 3.2: Albuquerque to Livermore, round trip 40 ms. The text names Albuquerque, Los
    Alamos and Livermore; the drawing is not in our copy, so the fourth place, a carrier's point of presence, is ours,
    and so are the other delays: a quarter of Albuquerque-Livermore to the neighbour, the whole of it elsewhere.

    Args:
        rate_bps: every circuit's rate on the wire, each way.
        delay_us: one-way delay of Albuquerque-Livermore.
        mtu_bytes: largest IP packet on all paths.
    """
    switches = tuple(Switch(f"{_short(site)}1", site, 10 + n) for n, site in enumerate(RING_SITES))
    hosts = tuple(
        Host(f"{_short(site)}{h}0", site, IPv4Address(f"10.30.0.{10 * n + h}"), f"02:00:00:00:30:{10 * n + h:02x}")
        for n, site in enumerate(RING_SITES, start=1)
        for h in (1, 2)
    )
    network = Network("asc-ring", Framing(mtu_bytes), (*switches, *hosts))
    for number, host in enumerate(hosts):
        switch = network.edge_switch(host.site)
        _add_lan(network, host.name, switch.name, 1 + number % 2, rate_bps)
    delays_us = (delay_us // 4, delay_us, delay_us, delay_us)
    for n, (tail, circuit_delay_us) in enumerate(zip(switches, delays_us, strict=True)):
        head = switches[(n + 1) % len(switches)]
        name = f"{tail.site}-{head.site}"
        buffer_bytes = rate_bps * WAN_BUFFER_US // 8_000_000
        network.add_trunk(
            tail.name,
            head.name,
            Link(rate_bps, circuit_delay_us, buffer_bytes, 8, f"{tail.name}-east", name),
            Link(rate_bps, circuit_delay_us, buffer_bytes, 9, f"{head.name}-west", name),
        )
    return network


def _short(site: str) -> str:
    """Return a site's name as short as an interface's name has to be.

    >>> _short("los-alamos")
    'losa'
    """
    return site.replace("-", "")[:4]


def _add_lan(network: Network, host: str, switch: str, port_no: int, rate_bps: int) -> None:
    """Join a host to its switch at the rate of the host's interface."""
    buffer_bytes = rate_bps * WAN_BUFFER_US // 8_000_000
    up = Link(rate_bps, LAN_DELAY_US, buffer_bytes, 0, f"{host}-eth0")
    down = Link(rate_bps, LAN_DELAY_US, buffer_bytes, port_no, f"{switch}-eth{port_no}")
    network.add_trunk(host, switch, up, down)


NAMED: dict[str, Callable[..., Network]] = {
    "chile-illinois": chile_illinois,
    "chile-illinois-2": chile_illinois_2,
    "asc-ring": asc_ring,
}
