"""What has been read of a network's file, and what of it does not fit together."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

import networkx as nx

from topology.addresses import Prefix, families, shown_address
from topology.nodes import FarEdge, Host, Link, Switch
from topology.problems import Problems
from topology.units import shown_rate
from topology.wire import PPM, Framing, answers_ppm


@dataclass(frozen=True, slots=True)
class EndPort:
    """A port of a switch, as the file has it; or the far end of a circuit, whose port has no name."""

    switch: str
    link: Link
    problems: Problems


@dataclass(frozen=True, slots=True)
class EndToEnd:
    """A circuit, as the file has it."""

    name: str
    ends: tuple[EndPort, EndPort]
    problems: Problems


@dataclass(slots=True)
class SaidNetwork:
    """What has been read so far; things with problems of their own are not in it."""

    switches: dict[str, tuple[Switch, Problems]]
    hosts: list[tuple[Host, EndPort, Problems]]
    circuits: list[EndToEnd]
    far: dict[str, tuple[FarEdge, Host, Problems]] = field(default_factory=dict)
    mtus: list[tuple[int, Problems]] = field(default_factory=list)
    is_whole: bool = True

    @property
    def edges(self) -> set[str]:
        """The names of what a circuit may end at."""
        return {*self.switches, *(edge.name for edge, _, _ in self.far.values())}


def check_network(found: SaidNetwork, framing: Framing, problems: Problems) -> None:
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
    for mtu_bytes, at in found.mtus:
        if mtu_bytes < framing.mtu_bytes:
            at.add(
                f"packets of {framing.mtu_bytes} bytes, the network's `mtu`, do not pass {mtu_bytes}: write "
                f"`mtu: {mtu_bytes}` for the network, or raise it here and where this is set"
            )
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


def _check_addresses(found: SaidNetwork) -> None:
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
        at.add(
            f"{shown_address(prefix)} is {whose} ({first}{'' if known == prefix else f': {known}'}): each needs its own"
        )
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


def _check_names(found: SaidNetwork) -> None:
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


def _check_circuit(circuit: EndToEnd, found: SaidNetwork, framing: Framing) -> None:
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


def _check_reach(found: SaidNetwork, problems: Problems) -> None:
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
