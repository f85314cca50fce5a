"""Paths for a reservation: the candidates in order, and the first that has room. Pure."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, islice, pairwise, takewhile

import networkx as nx

from controller.plan.calendar import Shortage
from controller.plan.reservations import NO_CONSTRAINTS, Constraints
from topology.network import Network

MOST_CANDIDATES = 16  # a ring has two; a path further down the list is no longer what anybody means
MOST_LOOKED_AT = 500  # a mesh of ten has 109,601, and all else waits for the answer

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChosenPath:
    """The path to use, and the one in reserve (empty if none was asked for)."""

    path: Path
    backup: Path

    @property
    def paths(self) -> tuple[Path, ...]:
        """Both, or the one there is."""
        return (self.path, self.backup) if self.backup else (self.path,)


@dataclass(frozen=True, slots=True)
class NoPath:
    """Nothing joins the two ends under the constraints; ``why`` says which of them is in the way."""

    why: str


@lru_cache(maxsize=10_000)  # a network is built once, and scripts ask for the same ends again and again
def candidates(network: Network, source: str, target: str, constraints: Constraints) -> tuple[Path, ...]:
    """Return loop-free paths that satisfy the constraints, shortest delay first, ties in name order.

    Yen's algorithm (networkx ``shortest_simple_paths``), at most :data:`MOST_CANDIDATES`, of the
    :data:`MOST_LOOKED_AT` shortest. A host is never in between.
    """
    graph = _allowed(network, source, target, constraints)
    if source not in graph or target not in graph or not nx.has_path(graph, source, target):
        return ()
    if not {*graph, *(network.link(*hop).circuit for hop in graph.edges)}.issuperset(constraints.include):
        return ()

    def delay_us(path: Path) -> int:
        return sum(graph.edges[edge]["delay_us"] for edge in pairwise(path))

    nearest = map(tuple, islice(nx.shortest_simple_paths(graph, source, target, weight="delay_us"), MOST_LOOKED_AT))
    longest_us = math.inf if constraints.max_rtt_us is None else constraints.max_rtt_us + len(graph)
    by_delay = groupby(takewhile(lambda path: delay_us(path) <= longest_us, nearest), key=delay_us)
    ordered = (path for _, equals in by_delay for path in sorted(equals))
    fitting = (path for path in ordered if satisfies(network, path, constraints))
    return tuple(islice(fitting, MOST_CANDIDATES))


def way_round(network: Network, source: str, target: str, down: frozenset[str]) -> Path | None:
    """Return the path with the least delay that crosses none of the circuits that are down; None if there is none."""
    try:
        return network.path(source, target, down)
    except nx.NetworkXNoPath:
        return None


def default_path(network: Network, source: str, target: str, down: frozenset[str]) -> Path:
    """Return the path of what is not planned: round the circuits that are down, through them if that cannot be."""
    return way_round(network, source, target, down) or network.path(source, target)


def circuits_of_no_way(network: Network, source: str, target: str, down: frozenset[str]) -> tuple[str, ...]:
    """Return the circuits that are down between two ends, by name, if those leave no way; none if there is one."""
    ways = [{*network.circuits_along(path)} & down for path in candidates(network, source, target, NO_CONSTRAINTS)]
    return tuple(sorted(set().union(*ways))) if all(ways) else ()


def _allowed(network: Network, source: str, target: str, constraints: Constraints) -> "nx.DiGraph[str]":
    """Return the network without what is excluded, and without hosts that are not an end; delays are at least 1."""
    gone = set(constraints.exclude)
    graph: nx.DiGraph[str] = nx.DiGraph()
    for tail, head in network.hops_between(source, target):
        link = network.link(tail, head)
        if network.leads_through(tail, head, source):
            continue
        if tail not in gone and head not in gone and link.circuit not in gone:
            graph.add_edge(tail, head, delay_us=link.delay_us + 1)
    return graph


def satisfies(network: Network, path: Path, constraints: Constraints) -> bool:
    """Return whether a path of the network is as constraints want it."""
    touched = {*path, *network.circuits_along(path)}
    near_enough = constraints.max_rtt_us is None or network.path_rtt_us(path) <= constraints.max_rtt_us
    return near_enough and touched.issuperset(constraints.include) and touched.isdisjoint(constraints.exclude)


def chosen(
    network: Network,
    ends: tuple[str, str],
    constraints: Constraints,
    shortage: Callable[[tuple[Path, ...]], Shortage | None],
) -> ChosenPath | Shortage | NoPath:
    """Return the first path with room, with a backup that shares no circuit with it if one is asked for.

    Where none has room the shortage of the first candidate is the answer: that is the path the asker has in mind.

    Args:
        network: where.
        ends: source and target node.
        constraints: what the paths must satisfy.
        shortage: what a set of paths lacks, None if nothing.
    """
    found = candidates(network, *ends, constraints)
    if not found:
        return NoPath(_why_not(network, ends, constraints))
    first_shortage: Shortage | None = None
    for answer in _pairs(network, found, constraints):
        lacking = shortage(answer.paths)
        if lacking is None:
            return answer
        first_shortage = first_shortage or lacking
    return first_shortage or NoPath(f"no two paths from {ends[0]} to {ends[1]} share no circuit")


def will_do(network: Network, ends: tuple[str, str], constraints: Constraints, kept: ChosenPath) -> bool:
    """Return whether a path, and its backup, are between these ends as constraints want them."""
    known = candidates(network, *ends, constraints)
    return kept.path in known and kept in _pairs(network, (kept.path,), constraints)


def _pairs(network: Network, found: tuple[Path, ...], constraints: Constraints) -> Iterator[ChosenPath]:
    for path in found:
        if not constraints.backup:
            yield ChosenPath(path, ())
            continue
        taken = set(network.circuits_along(path))
        for backup in candidates(network, path[0], path[-1], constraints.of_another_path):
            if taken.isdisjoint(network.circuits_along(backup)):
                yield ChosenPath(path, backup)


def _why_not(network: Network, ends: tuple[str, str], constraints: Constraints) -> str:
    source, target = ends
    nearest = candidates(network, source, target, Constraints(constraints.include, constraints.exclude))
    if nearest and constraints.max_rtt_us is not None:
        rtt_us = network.path_rtt_us(nearest[0])
        return (
            f"the shortest round trip is {rtt_us / 1000:g} ms, at most {constraints.max_rtt_us / 1000:g} ms is allowed"
        )
    if not candidates(network, source, target, NO_CONSTRAINTS):
        return f"{source} and {target} are not joined"
    return f"no path from {source} to {target} has all of include and none of exclude"
