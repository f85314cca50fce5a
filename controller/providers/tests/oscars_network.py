"""The network of the stand-in: devices, ports with what they carry, and the links between; and how paths are found.

Two ways from chic-cr6 to nash-cr6: straight on, and over stlo-cr5.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

EDGE = "edge"
BACKBONE = "backbone"


@dataclass(frozen=True)
class PortRule:
    """What a port has: Mbit/s each way, and the VLANs that one may have there."""

    kind: str
    mbps: int
    vlans: range = range(2, 4095)


LINKS = (
    ("chic-cr6:1/1/b1", "nash-cr6:1/1/b1"),
    ("chic-cr6:1/1/b2", "stlo-cr5:1/1/b1"),
    ("stlo-cr5:1/1/b2", "nash-cr6:1/1/b2"),
)
PORTS = {
    "chic-cr6:1/1/c9/1": PortRule(EDGE, 100_000),
    "chic-cr6:1/1/c10/1": PortRule(EDGE, 100_000),
    "nash-cr6:1/1/c17/2": PortRule(EDGE, 100_000),
    **{port: PortRule(BACKBONE, 400_000) for link in LINKS for port in link},
}
DEVICES = tuple(sorted({port.split(":")[0] for port in PORTS}))
_STEPS = tuple(step for a, z in LINKS for step in ((a, z), (z, a)))


def paths(a: str, z: str, include: tuple[str, ...], exclude: frozenset[str]) -> list[tuple[str, ...]]:
    """All ways between two devices over some places and not over others, the shortest first: device, port, port, ..."""
    ways = (way for way in _ways((a,), z) if not exclude & set(way) and set(include) <= set(way))
    return sorted(ways, key=lambda way: (len(way), way))


def free_on(way: tuple[str, ...], free: Callable[[str], int]) -> int:
    """What the narrowest port of a way has free."""
    return min((free(urn) for urn in way if urn in PORTS), default=0)


def fitting(found: list[tuple[str, ...]], mbps: int, free: Callable[[str], int]) -> tuple[str, ...] | None:
    """The first way that has a rate free at each of its ports."""
    return next((way for way in found if free_on(way, free) >= mbps), None)


def _ways(path: tuple[str, ...], z: str) -> Iterator[tuple[str, ...]]:
    if path[-1] == z:
        yield path
        return
    for out, into in _STEPS:
        device = into.split(":")[0]
        if out.split(":")[0] == path[-1] and device not in path:
            yield from _ways((*path, out, into, device), z)


def connected(
    junctions: tuple[str, ...], devices: set[str], pipes: tuple[tuple[str, str, int, tuple[str, ...]], ...]
) -> bool:
    """Whether junctions and pipes are one graph that has all the devices with fixtures."""
    if not junctions or not devices <= set(junctions):
        return False
    reached, wider = set[str](), {junctions[0]}
    while wider != reached:
        reached = wider
        wider = reached | {n for a, z, *_ in pipes if {a, z} & reached for n in (a, z)}
    return set(junctions) <= reached
