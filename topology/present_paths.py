"""Paths that were noted down in an earlier network, as they are in this one. Pure.

A circuit that is alone between two switches is a link; one with others beside it is a node (a
:class:`~topology.nodes.Line`). So a circuit that comes or goes changes the paths over those that stay.
"""

from functools import lru_cache

from topology.network import Network

Path = tuple[str, ...]


def present_paths(network: Network, paths: tuple[Path, ...]) -> tuple[tuple[Path, ...], ...]:
    """Return what paths may be in a network now, the first choice first; nothing if one of them is not there any more.

    A node names its circuit, so there is no choice. A link does not: where several circuits are in its place now, it is
    any of them, in the order of the network's file. All paths choose alike, for what goes together stays together.

    >>> from mininet_tests.testing.networks import FILES, loaded
    >>> north, both = loaded(FILES["chile-illinois-north"]), loaded(FILES["chile-illinois-2"])
    >>> present_paths(both, (("ls1", "ch1"),))
    ((('ls1', 'north', 'ch1'),), (('ls1', 'south', 'ch1'),))
    >>> present_paths(north, (("ls1", "north", "ch1"),)), present_paths(north, (("ls1", "south", "ch1"),))
    (((('ls1', 'ch1'),),), ())
    """
    found: dict[tuple[Path, ...], None] = {}  # in order
    while True:
        now = tuple(_present_path(network, path, len(found)) for path in paths)
        known = tuple(path for path in now if path is not None)
        if len(known) < len(now) or known in found:
            return tuple(found)
        found[known] = None


@lru_cache(maxsize=10_000)  # many promises have the same path
def _present_path(network: Network, path: Path, turn: int) -> Path | None:
    """Return a path as it is now, with that of several circuits whose turn it is; None if it is not there any more."""
    nodes, ahead = [path[0]], list(path[:0:-1])
    while ahead:
        tail, head = nodes[-1], ahead.pop()
        if ahead and head in _joining(network, tail, ahead[-1]):
            nodes += [head] if head in network.graph else []
            nodes.append(ahead.pop())
        elif network.graph.has_edge(tail, head):
            nodes.append(head)
        elif circuits := _joining(network, tail, head):
            nodes += [circuits[turn % len(circuits)], head]
        else:
            return None
    return tuple(nodes)


def _joining(network: Network, tail: str, head: str) -> list[str]:
    """Return the circuits between two switches, in the order of the network's file."""
    return [circuit.name for circuit in network.circuits if {circuit.a_end, circuit.z_end} == {tail, head}]
