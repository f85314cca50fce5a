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


def paths(a: str, z: str, exclude: frozenset[str]) -> list[tuple[str, ...]]:
    """All ways between two devices, the shortest first, as ``device, port, port, device, ...``."""
    return sorted((path for path in _ways((a,), z) if not exclude & set(path)), key=lambda p: (len(p), p))


def fitting(found: list[tuple[str, ...]], mbps: int, free: Callable[[str], int]) -> tuple[str, ...] | None:
    """The first way that has a rate free at each of its ports."""
    return next((path for path in found if all(free(urn) >= mbps for urn in path if urn in PORTS)), None)


def _ways(path: tuple[str, ...], z: str) -> Iterator[tuple[str, ...]]:
    if path[-1] == z:
        yield path
        return
    for out, into in _STEPS:
        device = into.split(":")[0]
        if out.split(":")[0] == path[-1] and device not in path:
            yield from _ways((*path, out, into, device), z)
