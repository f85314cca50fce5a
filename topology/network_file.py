"""A network in YAML, read: every problem at once, with its place in the file and what to do about it.

The form is in ``docs/network.md``. A site has switches; hosts hang on their ports, circuits join two of them. A site
that is not ours has prefixes in their place: it is a host without an agent behind the far end of its circuits. Each
interface of a host after its first is a host of its own, whose plan the first one's agent holds.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from topology import file_values as value
from topology.addresses import Address, Prefix, families, prefix_of
from topology.file_keys import FileKeys
from topology.network import FarEdge, Host, Line, Link, Network, Node, Switch
from topology.network_found import EndPort, EndToEnd, SaidNetwork, check_network
from topology.problems import Problems
from topology.wire import Framing

USUAL_MTU_BYTES = 1500
PORT_BUFFER_US = 50_000  # of its rate, which is what a usual edge switch port can hold


_NOWHERE = value.address("192.0.2.0")  # until its own has been read


def network_of(values: object, problems: Problems) -> Network | None:
    """Return the network that a file, or the section of one, describes.

    Args:
        values: what YAML has read.
        problems: takes whatever is wrong with it; if anything is, None is returned.
    """
    before = len(problems.found)
    keys = FileKeys(values, problems)
    name = keys.need("name", value.name, "two-sites")
    said_bytes = keys.take("mtu", value.mtu_bytes, 0)
    found = SaidNetwork({}, [], [])
    for site, inside in keys.below("sites").items():
        _read_site(site, inside, problems.at("sites", site), found)
    for circuit, inside in keys.below("circuits").items():
        _read_circuit(circuit, inside, problems.at("circuits", circuit), found)
    keys.close()
    mtu_bytes = said_bytes or min((each for each, _ in found.mtus), default=USUAL_MTU_BYTES)
    framing = _framing(mtu_bytes, found)
    check_network(found, framing, problems)
    if len(problems.found) > before or name is None:
        return None
    return _built(name, framing, found)


def _read_site(site: str, values: object, problems: Problems, found: SaidNetwork) -> None:
    if isinstance(values, Mapping) and "prefixes" in values:
        _read_far_site(site, values, problems, found)
        return
    keys, here = FileKeys(values, problems), list[str]()
    several = keys.below("switches")
    for name, inside in several.items():
        at = problems.at("switches", name)
        _read_switch(FileKeys(inside, at), at, (site, _interface(name, at)), found, here)
    of_switch = None if several else keys.within("switch", '{name: br0, dpid: "0000000000000001"}')
    if of_switch is not None:
        at = problems.at("switch")
        _read_switch(of_switch, at, (site, of_switch.need("name", value.interface, "br0")), found, here)
    if several and keys.take("switch", lambda inside: inside) is not None:
        problems.at("switch").add("stands beside `switches`: write it there, by its name")
    for host, inside in keys.below("hosts").items():
        _read_host(host, inside, problems.at("hosts", host), (site, tuple(here)), found)
    keys.close()


def _interface(name: str, problems: Problems) -> str | None:
    """Return the name of a bridge; None, and a problem, if no interface can have it."""
    try:
        return value.interface(name)
    except ValueError as error:
        problems.add(error)
        return None


def _read_switch(
    keys: FileKeys, problems: Problems, where: tuple[str, str | None], found: SaidNetwork, here: list[str]
) -> None:
    site, name = where
    dpid = keys.need("dpid", value.dpid, '"0000000000000001"')
    keys.close()
    here += [] if name is None else [name]
    if name is None or dpid is None:
        found.is_whole = False
    elif name in found.switches:
        problems.at("name").add(f'there is already a switch "{name}": give each its own name')
    else:
        found.switches[name] = Switch(name, site, dpid), problems


def _read_far_site(site: str, values: object, problems: Problems, found: SaidNetwork) -> None:
    """Read a site that is not ours: all that is known of it is who can be reached there."""
    keys = FileKeys(values, problems)
    known = keys.take("prefixes", value.prefixes)
    keys.close()
    if known is None:
        found.is_whole = False
        return
    host = Host(site, site, known[0], value.mac_of(known[0]), known[1:], has_agent=False)
    found.far[site] = FarEdge(f"{site}-edge", site), host, problems


def _read_host(
    name: str, values: object, problems: Problems, where: tuple[str, tuple[str, ...]], found: SaidNetwork
) -> None:
    keys, (site, _) = FileKeys(values, problems), where
    has_agent = keys.take("agent", value.is_so, True)
    several = keys.below("interfaces")
    if not several:
        _read_interface(Host(name, site, _NOWHERE, "", has_agent=bool(has_agent)), keys, problems, where, found)
        keys.close()
        return
    keys.close()
    for interface, inside in several.items():
        at = problems.at("interfaces", interface)
        first = interface == next(iter(several))
        known = Host(
            name if first else f"{name}.{interface}",
            site,
            _NOWHERE,
            "",
            has_agent=bool(has_agent),
            interface=interface,
            interface_of="" if first else name,
        )
        of_interface = FileKeys(inside, at)
        _read_interface(known, of_interface, at, where, found)
        of_interface.close()


def _read_interface(
    host: Host, keys: FileKeys, problems: Problems, where: tuple[str, tuple[str, ...]], found: SaidNetwork
) -> None:
    """Read where an interface is and what it is reached by; what is known of its host is in ``host``."""
    found_addresses = _read_addresses(keys, problems)
    rate_bps = keys.need("rate", value.line_rate_bps, "10 Gbit/s")
    _read_mtu(keys, problems, found)
    switch = _read_place(keys, problems, where)
    link = _read_port(keys, rate_bps, 0, None)
    if found_addresses and link is not None and switch is not None:
        first, *others = found_addresses
        host = replace(host, ip=first, mac=value.mac_of(first), others=tuple(map(prefix_of, others)))
        found.hosts.append((host, EndPort(switch, link, problems), problems))
    else:
        found.is_whole = False


def _read_place(keys: FileKeys, problems: Problems, where: tuple[str, tuple[str, ...]]) -> str | None:
    """Return the switch that an interface is at: the site's only one, or that which `switch` names."""
    site, switches = where
    if len(switches) < 2:
        switch = keys.take("switch", value.interface, switches[0] if switches else "")
    else:
        switch = keys.need("switch", value.interface, switches[0])
    if switch is not None and switches and switch not in switches:
        problems.at("switch").add(f'"{switch}" is no switch of {site}; there are {", ".join(switches)}')
        return None
    return switch


def _read_addresses(keys: FileKeys, problems: Problems) -> tuple[Address | Prefix, ...]:
    """Return what a host is reached by, as `address` or `addresses` have it; nothing, and a problem, if they do not."""
    nothing: tuple[Address | Prefix, ...] = ()
    several = keys.take("addresses", value.host_addresses, nothing)
    if several == nothing:
        only = keys.need("address", value.only_address, "192.0.2.10")
        return () if only is None else (only,)
    if keys.take("address", value.address) is not None:
        problems.at("address").add("stands beside `addresses`: write it there, first")
    return several or ()


def _read_port(keys: FileKeys, rate_bps: int | None, delay_us: int | None, circuit: str | None) -> Link | None:
    """Return the link that leaves by the port that some keys describe; None if they do not."""
    port = keys.need("port", value.interface, "eth1")
    number = keys.take("number", value.port_number, 0)
    buffer_bytes = keys.take("buffer", value.buffer_bytes, (rate_bps or 0) * PORT_BUFFER_US // 8_000_000)
    vlan_vid = keys.take("vlan", value.vlan_vid) if circuit else None
    if not keys.is_whole or port is None or number is None or buffer_bytes is None:
        return None
    if rate_bps is None or delay_us is None:
        return None
    return Link(rate_bps, delay_us, buffer_bytes, number, port, circuit, vlan_vid)


def _read_mtu(keys: FileKeys, problems: Problems, found: SaidNetwork) -> None:
    """Read the largest IP packet that an interface or a circuit carries, if that is said."""
    mtu_bytes = keys.take("mtu", value.mtu_bytes, 0)
    if mtu_bytes:
        found.mtus.append((mtu_bytes, problems.at("mtu")))


def _read_circuit(name: str, values: object, problems: Problems, found: SaidNetwork) -> None:
    keys = FileKeys(values, problems)
    rate_bps = keys.take("rate", value.line_rate_bps)
    delay_us, is_bound = _read_delay(keys, problems)
    _read_mtu(keys, problems, found)
    sides = ((keys.within(side, "{switch: br0, port: eth1}"), problems.at(side)) for side in ("a", "z"))
    ends = [_read_end(side, at, (rate_bps, delay_us), name) for side, at in sides if side is not None]
    if is_bound:
        ends = [end and replace(end, link=replace(end.link, is_bound=True)) for end in ends]
    keys.close()
    match ends:
        case [EndPort() as a_end, EndPort() as z_end]:
            found.circuits.append(EndToEnd(name, (a_end, z_end), problems))
        case _:
            found.is_whole = False


def _read_delay(keys: FileKeys, problems: Problems) -> tuple[int | None, bool]:
    """Return a circuit's one-way delay, and whether that is what it is at most, until it is measured."""
    delay_us = keys.take("delay", value.delay_us, 0)
    bound_us = keys.take("delay_at_most", value.delay_us, 0)
    if delay_us and bound_us:
        problems.at("delay_at_most").add("stands beside `delay`: leave it out, for what is known is not measured")
    if delay_us == 0 == bound_us:
        problems.add("`delay` is missing, such as `delay: 90 ms`; to have it measured, write `delay_at_most: 300 ms`")
        keys.is_whole = False
        return None, False
    return (bound_us, True) if delay_us == 0 else (delay_us, False)


def _read_end(keys: FileKeys, problems: Problems, line: tuple[int | None, int | None], circuit: str) -> EndPort | None:
    both_bps, delay_us = line
    site = keys.take("site", value.name, "")
    switch = "" if site else keys.need("switch", value.interface, "br0")
    rate_bps = keys.take("rate", value.line_rate_bps, both_bps)
    if rate_bps is None and keys.is_whole:
        problems.add("`rate` is missing: write it here, for what this end sends, or above `a` and `z`, for both")
    link = _far_link(rate_bps, delay_us, circuit) if site else _read_port(keys, rate_bps, delay_us, circuit)
    keys.close()
    if site is None or switch is None or link is None or not keys.is_whole:
        return None
    return EndPort(f"{site}-edge" if site else switch, link, problems)


def _far_link(rate_bps: int | None, delay_us: int | None, circuit: str | None) -> Link | None:
    """Return the link that leaves a far end, by a port that nobody here knows."""
    if rate_bps is None or delay_us is None:
        return None
    return Link(rate_bps, delay_us, rate_bps * PORT_BUFFER_US // 8_000_000, 0, "", circuit)


def _framing(mtu_bytes: int, found: SaidNetwork) -> Framing:
    """Return how segments are wrapped, at most: in a VLAN's tag if a circuit has one, in IPv6 if a host has."""
    tags = int(any(end.link.vlan_vid is not None for circuit in found.circuits for end in circuit.ends))
    hosts = [host for host, _, _ in found.hosts] + [host for _, host, _ in found.far.values()]
    return Framing(mtu_bytes, tags, any(6 in families(host.prefixes) for host in hosts))


def _built(name: str, framing: Framing, found: SaidNetwork) -> Network:
    """Return the network. A circuit that has another beside it is a node of its own."""
    beside = Counter(_pair(circuit) for circuit in found.circuits)
    lines = {circuit.name: Line(circuit.name) for circuit in found.circuits if beside[_pair(circuit)] > 1}
    far_hosts = tuple(host for _, host, _ in found.far.values())
    hosts = (*(host for host, _, _ in found.hosts), *far_hosts)
    switches = (switch for switch, _ in found.switches.values())
    edges = (edge for edge, _, _ in found.far.values())
    nodes: tuple[Node, ...] = (*switches, *edges, *lines.values(), *hosts)
    network = Network(name, framing, nodes)
    for host, port, _ in found.hosts:
        down = port.link
        number = sum(other.machine == host.machine for other in hosts[: hosts.index(host)])
        up = Link(down.rate_bps, down.delay_us, down.buffer_bytes, 0, f"{host.machine}-eth{number}")
        network.add_trunk(host.name, port.switch, up, down)
    for edge, host, _ in found.far.values():
        met = [link for c in found.circuits for link in (c.ends[0].link, c.ends[1].link) if edge.name in _pair(c)]
        within = Link(sum(link.rate_bps for link in met), 0, 0, 0, "")  # what is behind the far end, nobody here knows
        network.add_trunk(host.name, edge.name, within, within)
    for circuit in found.circuits:
        a_end, z_end = circuit.ends
        if circuit.name in lines:
            network.add_line((a_end.switch, z_end.switch), lines[circuit.name], a_end.link, z_end.link)
        else:
            network.add_trunk(a_end.switch, z_end.switch, a_end.link, z_end.link)
    return network


def _pair(circuit: EndToEnd) -> frozenset[str]:
    return frozenset(end.switch for end in circuit.ends)
