"""A network as data: hosts, switches and the links between them, held in a networkx graph.

One object of this kind is what the controller plans from and what Mininet realises; nothing about a network is
written down twice. A link has a direction; the trunk between two nodes is the pair of them. Where several circuits
join the same two switches each is a :class:`Line` between them, so that a path says by its nodes which one it takes.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, pairwise

import networkx as nx

from topology.addresses import families
from topology.hops import Hop, hops
from topology.nodes import Circuit, FarEdge, Host, Line, Link, Switch
from topology.shortest_paths import ShortestPaths
from topology.wire import Framing

__all__ = ["Circuit", "FarEdge", "Hop", "Host", "Line", "Link", "Network", "Node", "Switch", "UnknownNode", "hops"]


Node = Host | Switch | Line | FarEdge


class UnknownNode(ValueError):
    """A name that is not in the network."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        self.name = name
        self.known = known
        super().__init__(f'"{name}" is not in the network; there are {", ".join(known)}')


NOT_JOINED: Mapping[str, Link] = {}


class Network:
    """Hosts, switches and directed links. Built once, then only read.

    Attributes:
        name: of the network.
        framing: how its segments are wrapped at most: with a tag if any circuit has one.
        hosts: all hosts, in the order they were added.
        host_names: their names.
        agents: the names of those that an agent of ours runs on.
        switches: all switches, likewise.
        far_edges: where circuits end at sites that are not ours.
        edge_sites: by switch and by far edge, its site.
        sites: the names of all sites, in the order of their switches; those that are not ours come last.
        graph: nodes and directed links.
        measured_us: by circuit whose file says no more than a bound, the one-way delay that hosts have measured.
    """

    def __init__(self, name: str, framing: Framing, nodes: tuple[Node, ...]) -> None:
        self.name = name
        self.framing = framing
        self.hosts = tuple(node for node in nodes if isinstance(node, Host))
        self.switches = tuple(node for node in nodes if isinstance(node, Switch))
        self.far_edges = tuple(node for node in nodes if isinstance(node, FarEdge))
        self.edge_sites = {s.name: s.site for s in self.switches} | {edge.name: edge.site for edge in self.far_edges}
        self.sites = tuple(dict.fromkeys(self.edge_sites.values()))
        self._far_names = frozenset(edge.name for edge in self.far_edges)
        self._not_ours = self._far_names | {edge.site for edge in self.far_edges}
        self.graph: nx.DiGraph[str] = nx.DiGraph()
        self.measured_us: Mapping[str, int] = {}
        self._circuits: dict[str, Circuit] = {}
        self._by_name = {host.name: host for host in reversed(self.hosts)}
        self._of_machine: dict[str, tuple[Host, ...]] = {}
        for host in self.hosts:
            self._of_machine[host.machine] = (*self._of_machine.get(host.machine, ()), host)
        self.host_names = frozenset(self._by_name)
        self.agents = tuple(host.name for host in self.hosts if host.has_agent and not host.interface_of)
        self._forget()
        for node in nodes:
            self.graph.add_node(node.name, node=node)

    def add_trunk(self, a_end: str, z_end: str, az: Link, za: Link) -> None:
        """Join two nodes by a link in each direction."""
        self.graph.add_edge(a_end, z_end, link=az)
        self.graph.add_edge(z_end, a_end, link=za)
        if az.circuit is not None:
            self.add_circuit(az.circuit, (a_end, z_end))
        self._forget()

    def add_line(self, ends: tuple[str, str], line: Line, az: Link, za: Link) -> None:
        """Join two switches by a circuit that is a node of its own; behind it no time passes."""
        a_end, z_end = ends
        for tail, head, link in ((a_end, z_end, az), (z_end, a_end, za)):
            self.graph.add_edge(tail, line.name, link=link)
            out = replace(link, delay_us=0, port_no=0, port_name="", circuit=None, vlan_vid=None)
            self.graph.add_edge(line.name, head, link=out)
        self.add_circuit(line.name, ends)
        self._forget()

    def _forget(self) -> None:
        """Begin to find things, or forget what was found while the network had other links."""
        self._framings: dict[tuple[str, ...], Framing] = {}
        self._rtts_us: dict[tuple[str, ...], int] = {}
        self._narrowest_bps: dict[tuple[str, ...], int] = {}
        self._circuits_along: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._shortest: ShortestPaths | None = None
        self._circuit_hops_known: dict[str, list[Hop]] | None = None
        self._circuit_links_known: tuple[tuple[str, str, Link], ...] | None = None
        self._inner_hops: tuple[Hop, ...] = ()

    def add_circuit(self, name: str, ends: tuple[str, str]) -> None:
        """Note that the links between two switches are a circuit, seen from the first of them."""
        links: list[Link] = [edge["link"] for end in ends for edge in self.graph[end].values()]
        self._circuits[name] = Circuit(name, *ends, min(link.rate_bps for link in links if link.circuit == name))

    def links_of(self, circuit: Circuit) -> tuple[Link, Link]:
        """Return the link that leaves a circuit's A-end, and that which leaves its Z-end."""
        head = circuit.name if circuit.name in self.graph else ""
        az = self.link(circuit.a_end, head or circuit.z_end)
        return az, self.link(circuit.z_end, head or circuit.a_end)

    def host(self, name: str) -> Host:
        """Return a host by name.

        Raises:
            UnknownNode: no host has this name.
        """
        if name not in self._by_name:
            raise UnknownNode(name, tuple(h.name for h in self.hosts))
        return self._by_name[name]

    def machine(self, name: str) -> str:
        """Return the host that a name is an interface of; of what is no further interface, the name itself."""
        return self._by_name[name].machine if name in self._by_name else name

    def interfaces_of(self, machine: str) -> tuple[Host, ...]:
        """Return a host and its further interfaces, in the file's order; none if there is no such host."""
        return self._of_machine.get(machine, ())

    def lane_interfaces(self, sender: str, target: str) -> tuple[Host, ...]:
        """Return the interfaces that lanes to a host may leave by, the asked one first.

        They and the host have a family of IP in common, for a program's connections are dealt to what it calls.

        Raises:
            UnknownNode: no host has one of these names.
        """
        first, found, shared = self.host(sender), list[Host](), families(self.host(target).prefixes)
        for interface in (first, *(one for one in self.interfaces_of(first.machine) if one != first)):
            if own := shared & families(interface.prefixes):
                found, shared = [*found, interface], own
        return tuple(found)

    def links(self) -> Iterator[tuple[str, str, Link]]:
        """Yield (from, to, link) for every direction."""
        yield from self.graph.edges(data="link")

    def link(self, tail: str, head: str) -> Link:
        """Return the link from ``tail`` to ``head``.

        Raises:
            KeyError: they are not neighbours.
        """
        link: Link = self.graph.get_edge_data(tail, head, NOT_JOINED)["link"]
        return link

    def framing_of(self, path: tuple[str, ...]) -> Framing:
        """Return how segments are wrapped at most along a path: with a tag if one of its links has one.

        IPv6's have more around them; those between two hosts are not if one of the two has no such address.

        Raises:
            KeyError: two nodes of the path are not neighbours.
        """
        if path not in self._framings:
            self._framings[path] = self._framing_along(path)
        return self._framings[path]

    def _framing_along(self, path: tuple[str, ...]) -> Framing:
        tagged = any(self.link(tail, head).vlan_vid is not None for tail, head in pairwise(path))
        is_ipv6 = self.framing.is_ipv6 and all(
            6 in families(self._by_name[end].prefixes) for end in (path[0], path[-1]) if end in self._by_name
        )
        if (self.framing.vlan_tags, self.framing.is_ipv6) == (tagged, is_ipv6):
            return self.framing
        return replace(self.framing, vlan_tags=int(tagged), is_ipv6=is_ipv6)

    def framing_between(self, senders: Iterable[str], target: str) -> Framing:
        """Return how the segments of some hosts to another are wrapped at most, by whatever way."""
        is_ipv6 = any(self.framing_of((name,)).is_ipv6 for name in senders) and self.framing_of((target,)).is_ipv6
        return replace(self.framing, is_ipv6=is_ipv6)

    def against(self, tail: str, head: str) -> Hop:
        """Return the hop that goes the other way between the same two ends: over a line, its other entrance.

        >>> from mininet_tests.testing.networks import chile_illinois, chile_illinois_2
        >>> print(chile_illinois().against("ls1", "ch1"), chile_illinois_2().against("ls1", "north"))
        ch1->ls1 ch1->north
        """
        if isinstance(self.graph.nodes[head]["node"], Line):
            return Hop(next(end for end in self.graph.successors(head) if end != tail), head)
        return Hop(head, tail)

    @property
    def circuits(self) -> tuple[Circuit, ...]:
        """Every circuit once, in the order they were added, seen from its A-end."""
        return tuple(self._circuits.values())

    @property
    def circuit_links(self) -> tuple[tuple[str, str, Link], ...]:
        """Every direction of every circuit as (from, to, link), in the order they were added."""
        if self._circuit_links_known is None:
            found = ((*hop, self.link(*hop)) for hops_from in self._circuit_hops().values() for hop in hops_from)
            self._circuit_links_known = tuple(found)
        return self._circuit_links_known

    def circuits_along(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of the circuits that a path crosses, in order.

        Raises:
            KeyError: two nodes of the path are not neighbours.
        """
        if path not in self._circuits_along:
            names = (self.link(tail, head).circuit for tail, head in pairwise(path))
            self._circuits_along[path] = tuple(name for name in names if name is not None)
        return self._circuits_along[path]

    def narrowest_bps(self, path: tuple[str, ...]) -> int:
        """Return the rate of the narrowest circuit that a path crosses, bit/s on the wire; 0 if it crosses none.

        Raises:
            KeyError: two nodes of the path are not neighbours.
        """
        if path not in self._narrowest_bps:
            links = (self.link(tail, head) for tail, head in pairwise(path))
            self._narrowest_bps[path] = min((link.rate_bps for link in links if link.circuit), default=0)
        return self._narrowest_bps[path]

    def circuit_links_from(self, tail: str) -> list[tuple[str, Link]]:
        """Return (to, link) of each circuit that leaves a node, in the order they were added."""
        return [(hop.head, self.link(*hop)) for hop in self._circuit_hops().get(tail, ())]

    def _circuit_hops(self) -> dict[str, list[Hop]]:
        """Return the hops by which circuits are entered, by where they leave, in the order of :meth:`links`."""
        if self._circuit_hops_known is None:
            found: dict[str, list[Hop]] = {}
            for tail, head, link in self.links():
                if link.circuit is not None:
                    found.setdefault(tail, []).append(Hop(tail, head))
            self._circuit_hops_known = found
        return self._circuit_hops_known

    def hops_between(self, *ends: str) -> Iterator[Hop]:
        """Yield every hop without a host at an end of it, but for those named here; one between two of them twice."""
        if not self._inner_hops:
            inner = (Hop(t, h) for t, h, _ in self.links() if t not in self.host_names and h not in self.host_names)
            self._inner_hops = tuple(inner)
        yield from self._inner_hops
        others = self.host_names - set(ends)
        for end in set(ends) & self.host_names & set(self.graph):
            yield from (Hop(end, head) for head in self.graph.successors(end) if head not in others)
            yield from (Hop(tail, end) for tail in self.graph.predecessors(end) if tail not in others)

    def is_ours(self, name: str) -> bool:
        """Return whether what leaves a node is ours to plan: it is not beyond the far edge of a circuit."""
        return name not in self._not_ours

    def leads_through(self, tail: str, head: str, source: str) -> bool:
        """Return whether a hop would lead a way from ``source`` through a site that is not ours."""
        return tail in self._far_names and source != tail and head not in self._by_name and self.is_ours(source)

    def edge_switch(self, site: str) -> Switch:
        """Return the switch at the edge of a site.

        Raises:
            UnknownNode: there is no such site.
        """
        for switch in self.switches:
            if switch.site == site:
                return switch
        raise UnknownNode(site, self.sites)

    def path(self, source: str, target: str, down: frozenset[str] = frozenset()) -> tuple[str, ...]:
        """Return the nodes of the path with the least delay, ends included; ties go to the first in name order.

        Args:
            source: where it begins.
            target: where it ends.
            down: circuits that it does not cross.

        Raises:
            networkx.NetworkXNoPath: there is none.
        """
        return self._ways().path(source, target, down)

    def joint(self, name: str) -> str:
        """Return where paths from and to a node part: at its only neighbour for a host that has one, else there."""
        return self._ways().joint(name)

    def _ways(self) -> ShortestPaths:
        if self._shortest is None:
            self._shortest = ShortestPaths(self.graph, self.host_names, self._far_names)
        return self._shortest

    def with_measured(self, measured_us: Mapping[str, int]) -> "Network":
        """Return it with other measured delays, by circuit; ways are chosen by what the file says, as before."""
        found = copy.copy(self)
        found.measured_us, found._rtts_us = dict(measured_us), {}
        return found

    def delay_us(self, tail: str, head: str) -> int:
        """Return the one-way delay from a node to its neighbour: as measured, else as the file says, or at most."""
        link = self.link(tail, head)
        return self.measured_us.get(link.circuit or "", link.delay_us)

    def path_rtt_us(self, path: tuple[str, ...]) -> int:
        """Return the round-trip time there along a path and back by the same nodes, without queueing, microseconds."""
        if path not in self._rtts_us:
            there_and_back = chain(pairwise(path), pairwise(path[::-1]))
            self._rtts_us[path] = sum(self.delay_us(tail, head) for tail, head in there_and_back)
        return self._rtts_us[path]

    def next_hop(self, switch: str, target: str) -> Link:
        """Return the link by which a switch sends on what is for ``target``."""
        return self.link(switch, self.path(switch, target)[1])
