"""The paths of least delay through a network, found once for each place they begin at."""

import networkx as nx

from topology.nodes import Link


class ShortestPaths:
    """What a graph of links has for paths, while it has those links."""

    def __init__(self, graph: "nx.DiGraph[str]", hosts: frozenset[str], far_names: frozenset[str]) -> None:
        """Take a graph, the names of its hosts, and those of far edges, which nothing passes through."""
        self._graph = graph
        self._hosts = hosts & set(graph)
        self._far_names = far_names
        self._joined: dict[str, str] | None = None
        self._between: nx.DiGraph[str] | None = None
        self._paths: dict[tuple[str, frozenset[str]], dict[str, tuple[str, ...]]] = {}

    def path(self, source: str, target: str, down: frozenset[str]) -> tuple[str, ...]:
        """Return the nodes of the path with the least delay; ties go to the first in name order.

        Raises:
            networkx.NetworkXNoPath: there is none.
        """
        if source == target:
            return (source,)
        first, last = self.joint(source), self.joint(target)
        middle = self._from(first, down).get(last)
        if middle is None:
            raise nx.NetworkXNoPath(f"there is no path from {source} to {target}")
        return (source,) * (first != source) + middle + (target,) * (last != target)

    def joint(self, name: str) -> str:
        """Return where paths from and to a node part: at its only neighbour for a host that has one, else there."""
        return self._joints().get(name, name)

    def _joints(self) -> dict[str, str]:
        """Return, by host, its only neighbour: a node that is no host, by links that are no circuit."""
        if self._joined is None:
            graph, found = self._graph, dict[str, str]()
            for host in self._hosts:
                beside = {*graph.successors(host), *graph.predecessors(host)} - self._hosts
                if len(beside) == 1 == graph.in_degree(host) == graph.out_degree(host):
                    (only,) = beside
                    if graph[host][only]["link"].circuit is None is graph[only][host]["link"].circuit:
                        found[host] = only
            self._joined = found
        return self._joined

    def _from(self, source: str, down: frozenset[str]) -> dict[str, tuple[str, ...]]:
        """Return the paths from a node to all others that can be in between, by their ends: one Dijkstra for all."""
        if (source, down) not in self._paths:
            closed = self._far_names - {source}

            def weight(tail: str, _head: str, edge: dict[str, Link]) -> int | None:
                link = edge["link"]
                return None if tail in closed or link.circuit in down else link.delay_us + 1

            if self._between is None:  # hosts that are joined to one node are on no way but their own
                self._between = nx.DiGraph(self._graph)
                self._between.remove_nodes_from(self._joints())
            before, nearest_first = nx.dijkstra_predecessor_and_distance(self._between, source, weight=weight)
            found: dict[str, tuple[str, ...]] = {source: (source,)}
            for name in nearest_first:
                if name != source:
                    found[name] = min((*found[tail], name) for tail in before[name])
            self._paths[source, down] = found
        return self._paths[source, down]
