"""A network in YAML, read: every problem at once, with its place in the file and what to do about it.

The form is in ``docs/network.md``. A site has one switch; hosts hang on its ports, circuits join two of them. A site
that is not ours has prefixes in their place: it is a host without an agent behind the far end of its circuits.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

import networkx as nx

from topology import file_values as value
from topology.addresses import Address, Prefix, families, prefix_of, shown
from topology.file_keys import FileKeys
from topology.network import FarEdge, Host, Line, Link, Network, Node, Switch
from topology.problems import Problems
from topology.units import shown_rate
from topology.wire import Framing, answers_ppm

PORT_BUFFER_US = 50_000  # of its rate, which is what a usual edge switch port can hold
PPM = 1_000_000


@dataclass(frozen=True, slots=True)
class _Port:
    """A port of a switch, as the file has it; or the far end of a circuit, whose port has no name."""

    switch: str
    link: Link
    problems: Problems


@dataclass(frozen=True, slots=True)
class _Circuit:
    name: str
    ends: tuple[_Port, _Port]
    problems: Problems


@dataclass(slots=True)
class _Found:
    """What has been read so far; things with problems of their own are not in it."""

    switches: dict[str, tuple[Switch, Problems]]
    hosts: list[tuple[Host, _Port, Problems]]
    circuits: list[_Circuit]
    far: dict[str, tuple[FarEdge, Host, Problems]] = field(default_factory=dict)
    is_whole: bool = True

    @property
    def edges(self) -> set[str]:
        """The names of what a circuit may end at."""
        return {*self.switches, *(edge.name for edge, _, _ in self.far.values())}


def network_of(values: object, problems: Problems) -> Network | None:
    """Return the network that a file, or the section of one, describes.

    Args:
        values: what YAML has read.
        problems: takes whatever is wrong with it; if anything is, None is returned.
    """
    before = len(problems.found)
    keys = FileKeys(values, problems)
    name = keys.need("name", value.name, "two-sites")
    mtu_bytes = keys.take("mtu", value.mtu_bytes, 1500)
    found = _Found({}, [], [])
    for site, inside in keys.below("sites").items():
        _read_site(site, inside, problems.at("sites", site), found)
    for circuit, inside in keys.below("circuits").items():
        _read_circuit(circuit, inside, problems.at("circuits", circuit), found)
    keys.close()
    _check(found, Framing(mtu_bytes or 1500), problems)
    if len(problems.found) > before or name is None or mtu_bytes is None:
        return None
    return _built(name, mtu_bytes, found)


def _read_site(site: str, values: object, problems: Problems, found: _Found) -> None:
    if isinstance(values, Mapping) and "prefixes" in values:
        _read_far_site(site, values, problems, found)
        return
    keys = FileKeys(values, problems)
    of_switch, at_switch = keys.within("switch", '{name: br0, dpid: "0000000000000001"}'), problems.at("switch")
    name = dpid = None
    if of_switch is not None:
        name = of_switch.need("name", value.interface, "br0")
        dpid = of_switch.need("dpid", value.dpid, '"0000000000000001"')
        of_switch.close()
    if name is None or dpid is None:
        found.is_whole = False
    elif name in found.switches:
        at_switch.at("name").add(f'there is already a switch "{name}": give each its own name')
    else:
        found.switches[name] = Switch(name, site, dpid), at_switch
    for host, inside in keys.below("hosts").items():
        _read_host(host, inside, problems.at("hosts", host), (site, name or ""), found)
    keys.close()


def _read_far_site(site: str, values: object, problems: Problems, found: _Found) -> None:
    """Read a site that is not ours: all that is known of it is who can be reached there."""
    keys = FileKeys(values, problems)
    known = keys.take("prefixes", value.prefixes)
    keys.close()
    if known is None:
        found.is_whole = False
        return
    host = Host(site, site, known[0], value.mac_of(known[0]), known[1:], has_agent=False)
    found.far[site] = FarEdge(f"{site}-edge", site), host, problems


def _read_host(name: str, values: object, problems: Problems, where: tuple[str, str], found: _Found) -> None:
    keys = FileKeys(values, problems)
    site, switch = where
    found_addresses = _read_addresses(keys, problems)
    rate_bps = keys.need("rate", value.rate_bps, "10 Gbit/s")
    link = _read_port(keys, rate_bps, 0, None)
    keys.close()
    if found_addresses and link is not None:
        first, *others = found_addresses
        host = Host(name, site, first, value.mac_of(first), tuple(map(prefix_of, others)))
        found.hosts.append((host, _Port(switch, link, problems), problems))
    else:
        found.is_whole = False


def _read_addresses(keys: FileKeys, problems: Problems) -> tuple[Address | Prefix, ...]:
    """Return what a host is reached by, as `address` or `addresses` have it; nothing, and a problem, if they do not."""
    nothing: tuple[Address | Prefix, ...] = ()
    several = keys.take("addresses", value.addresses, nothing)
    if several == nothing:
        only = keys.need("address", value.address, "192.0.2.10")
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


def _read_circuit(name: str, values: object, problems: Problems, found: _Found) -> None:
    keys = FileKeys(values, problems)
    rate_bps = keys.take("rate", value.rate_bps)
    delay_us = keys.need("delay", value.delay_us, "90 ms")
    sides = ((keys.within(side, "{switch: br0, port: eth1}"), problems.at(side)) for side in ("a", "z"))
    ends = [_read_end(side, at, (rate_bps, delay_us), name) for side, at in sides if side is not None]
    keys.close()
    match ends:
        case [_Port() as a_end, _Port() as z_end]:
            found.circuits.append(_Circuit(name, (a_end, z_end), problems))
        case _:
            found.is_whole = False


def _read_end(keys: FileKeys, problems: Problems, line: tuple[int | None, int | None], circuit: str) -> _Port | None:
    both_bps, delay_us = line
    site = keys.take("site", value.name, "")
    switch = "" if site else keys.need("switch", value.interface, "br0")
    rate_bps = keys.take("rate", value.rate_bps, both_bps)
    if rate_bps is None and keys.is_whole:
        problems.add("`rate` is missing: write it here, for what this end sends, or above `a` and `z`, for both")
    link = _far_link(rate_bps, delay_us, circuit) if site else _read_port(keys, rate_bps, delay_us, circuit)
    keys.close()
    if site is None or switch is None or link is None or not keys.is_whole:
        return None
    return _Port(f"{site}-edge" if site else switch, link, problems)


def _far_link(rate_bps: int | None, delay_us: int | None, circuit: str | None) -> Link | None:
    """Return the link that leaves a far end, by a port that nobody here knows."""
    if rate_bps is None or delay_us is None:
        return None
    return Link(rate_bps, delay_us, rate_bps * PORT_BUFFER_US // 8_000_000, 0, "", circuit)


# ---- what does not fit together ----


def _check(found: _Found, framing: Framing, problems: Problems) -> None:
    """Add a problem for whatever does not fit together in what was read."""
    ports = [port for _, port, _ in found.hosts] + [end for circuit in found.circuits for end in circuit.ends]
    if not found.switches and found.far:
        problems.at("sites").add("none is ours: give the one whose switch Headway steers a `switch`")
    _check_once(((s.dpid, at.at("dpid")) for s, at in found.switches.values()), "is another switch's too")
    _check_addresses(found)
    at_ports = [port for port in ports if port.switch and port.link.port_name]
    _check_once(
        (((p.switch, p.link.port_name), p.problems.at("port")) for p in at_ports),
        "something else is at this port too",
        shown=False,
    )
    _check_once(
        (((p.switch, p.link.port_no), p.problems.at("number")) for p in at_ports if p.link.port_no),
        "another port of the switch has this number",
        shown=False,
    )
    _check_names(found)
    for circuit in found.circuits:
        _check_circuit(circuit, found, framing)
    if found.is_whole and not problems.found:
        _check_reach(found, problems)


def _check_once(keys: Iterable[tuple[Hashable, Problems]], what: str, *, shown: bool = True) -> None:
    """Add a problem wherever a key stands again."""
    seen: dict[Hashable, Problems] = {}
    for key, problems in keys:
        if key in seen:
            where = ".".join(map(str, seen[key].steps))
            problems.add(f"{f'{key} ' if shown else ''}{what} ({where}): each needs its own")
        seen.setdefault(key, problems)


def _check_addresses(found: _Found) -> None:
    """Add a problem for each address that stands twice, and for a host that none of another site can send to."""
    known_hosts = [(host, _at_addresses(host, at)) for host, _, at in found.hosts]
    known_hosts += [(host, at.at("prefixes")) for _, host, at in found.far.values()]
    each = [(prefix, host, at) for host, at in known_hosts for prefix in host.prefixes]
    each.sort(key=lambda one: (one[0].version, one[0].network_address, one[0].prefixlen))
    widest = each[:1]
    for prefix, host, at in each[1:]:
        known, owner, where = widest[0]
        if not known.overlaps(prefix):
            widest = [(prefix, host, at)]
            continue
        whose = "another host's too" if owner is not host else "there twice"
        first = ".".join(map(str, where.steps))
        at.add(f"{shown(prefix)} is {whose} ({first}{'' if known == prefix else f': {known}'}): each needs its own")
    if not found.is_whole:
        return
    known_at: dict[str, set[int]] = {}
    for host, _ in known_hosts:
        known_at.setdefault(host.site, set()).update(families(host.prefixes))
    for host, at in known_hosts:
        beyond = {version for site, versions in known_at.items() if site != host.site for version in versions}
        if beyond and not families(host.prefixes) & beyond:
            kind = min(families(host.prefixes))
            at.add(f"all are IPv{kind}, and no host of another site has such: add one of IPv{min(beyond)}, or it there")


def _at_addresses(host: Host, problems: Problems) -> Problems:
    """Return where a host's addresses stand."""
    return problems.at("addresses" if host.others or isinstance(host.ip, Prefix) else "address")


def _check_names(found: _Found) -> None:
    """Add a problem for each name that means two things: nodes and sites are asked for by name alone."""
    sites = {switch.site for switch, _ in found.switches.values()}
    named = [("switch", name, at) for name, (_, at) in found.switches.items()]
    named += [("host", host.name, at) for host, _, at in found.hosts]
    named += [("site", site, at) for site, (_, _, at) in found.far.items()]
    named += [("far end", edge.name, at) for edge, _, at in found.far.values()]
    named += [("circuit", circuit.name, circuit.problems) for circuit in found.circuits]
    seen: dict[str, str] = {}
    for kind, name, at in named:
        if name in seen:
            at.add(f'"{name}" is the name of a {seen[name]} as well: give each its own')
        if kind == "host" and name in sites:
            at.add(f'"{name}" is the name of a site as well: give each its own')
        seen.setdefault(name, kind)


def _check_circuit(circuit: _Circuit, found: _Found, framing: Framing) -> None:
    far = {edge.name: edge.site for edge, _, _ in found.far.values()}
    for end in circuit.ends:
        if end.switch in found.edges or not found.is_whole:
            continue
        if end.link.port_name:
            known = ", ".join(found.switches) or "none"
            end.problems.at("switch").add(f'there is no switch "{end.switch}"; there are {known}')
        else:
            known = ", ".join(far.values()) or "none"
            cure = f"those that are not ours are {known}; of one that is, write `switch` and `port`"
            end.problems.at("site").add(f'there is no such site "{end.switch.removesuffix("-edge")}"; {cure}')
    if all(end.switch in far for end in circuit.ends):
        circuit.problems.add("neither end is ours, so nothing of it can be planned: one must be a switch's port")
        return
    there, back = (end.link for end in circuit.ends)
    if circuit.ends[0].switch == circuit.ends[1].switch:
        circuit.problems.add("begins and ends at the same switch: a circuit joins two sites")
    for sent, answers, side in ((there, back, "z"), (back, there, "a")):
        least_bps = sent.rate_bps * answers_ppm(framing) // PPM
        if answers.rate_bps < least_bps:
            circuit.problems.at(side).add(
                f"{shown_rate(answers.rate_bps)} is no way back for {shown_rate(sent.rate_bps)}: its answers alone "
                f"take up to {shown_rate(least_bps)}"
            )


def _check_reach(found: _Found, problems: Problems) -> None:
    """Add a problem for each site that no circuit joins to the first."""
    if not found.circuits:
        problems.at("circuits").add("there is none: a circuit joins two sites, and is what is planned")
        return
    pairs = [(circuit.ends[0].switch, circuit.ends[1].switch) for circuit in found.circuits]
    for edge, _, at in found.far.values():
        if not any(edge.name in pair for pair in pairs):
            at.add(f"cannot be reached: no circuit ends there; write one with `z: {{site: {edge.site}}}`")
    graph = nx.Graph([pair for pair in pairs if found.switches.keys() >= set(pair)])
    graph.add_nodes_from(found.switches)
    first = next(iter(found.switches))
    reached = nx.node_connected_component(graph, first)
    for name, (switch, _) in found.switches.items():
        if name not in reached:
            problems.at("sites", switch.site).add(
                f"its hosts cannot be reached from {found.switches[first][0].site}: no circuit joins {name} to it"
            )


def _built(name: str, mtu_bytes: int, found: _Found) -> Network:
    """Return the network. A circuit that has another beside it is a node of its own."""
    beside = Counter(_pair(circuit) for circuit in found.circuits)
    lines = {circuit.name: Line(circuit.name) for circuit in found.circuits if beside[_pair(circuit)] > 1}
    tags = int(any(end.link.vlan_vid is not None for circuit in found.circuits for end in circuit.ends))
    far_hosts = tuple(host for _, host, _ in found.far.values())
    hosts = (*(host for host, _, _ in found.hosts), *far_hosts)
    is_ipv6 = any(6 in families(host.prefixes) for host in hosts)
    switches = (switch for switch, _ in found.switches.values())
    edges = (edge for edge, _, _ in found.far.values())
    nodes: tuple[Node, ...] = (*switches, *edges, *lines.values(), *hosts)
    network = Network(name, Framing(mtu_bytes, tags, is_ipv6), nodes)
    for host, port, _ in found.hosts:
        down = port.link
        up = Link(down.rate_bps, down.delay_us, down.buffer_bytes, 0, f"{host.name}-eth0")
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


def _pair(circuit: _Circuit) -> frozenset[str]:
    return frozenset(end.switch for end in circuit.ends)
