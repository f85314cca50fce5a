"""The invariant: hosts <= meter <= queue <= circuit, per class and in total, on each direction of each circuit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from topology.network import Hop
from topology.protocol import FlowClass


@dataclass(frozen=True, slots=True)
class Layers:
    """What each layer lets through on one link at one moment, all in bit/s of Ethernet frames.

    Attributes:
        hosts_bps: by class, the sum of what the hosts may send.
        meters_bps: by class, the meter.
        queues_bps: by class, the queue's guarantee.
        circuit_bps: the circuit.
    """

    hosts_bps: Mapping[FlowClass, int]
    meters_bps: Mapping[FlowClass, int]
    queues_bps: Mapping[FlowClass, int]
    circuit_bps: int


@dataclass(frozen=True, slots=True)
class Violation:
    """A layer that lets through more on a link than the layer below it; ``flow_class`` None means in total."""

    link: Hop
    flow_class: FlowClass | None
    upper: str
    upper_bps: int
    lower: str
    lower_bps: int

    def __str__(self) -> str:
        """One line for the log: what, where, how much."""
        where = self.flow_class or "in total"
        return f"{self.link}, {where}: {self.upper} {self.upper_bps:,} bit/s > {self.lower} {self.lower_bps:,} bit/s"


def violations(by_link: Mapping[Hop, Layers]) -> tuple[Violation, ...]:
    """Return every place where a layer lets through more than the one that must hold it."""
    return tuple(found for link, layers in by_link.items() for found in _on_link(link, layers))


def _on_link(link: Hop, layers: Layers) -> Iterator[Violation]:
    for flow_class in FlowClass:
        hosts, meter, queue = (
            by_class.get(flow_class, 0) for by_class in (layers.hosts_bps, layers.meters_bps, layers.queues_bps)
        )
        for upper, lower in pairwise((("hosts", hosts), ("meter", meter), ("queue", queue))):
            if upper[1] > lower[1]:
                yield Violation(link, flow_class, *upper, *lower)
    totals = (
        ("hosts", sum(layers.hosts_bps.values())),
        ("meters", sum(layers.meters_bps.values())),
        ("queues", sum(layers.queues_bps.values())),
        ("circuit", layers.circuit_bps),
    )
    for upper, lower in pairwise(totals):
        if upper[1] > lower[1]:
            yield Violation(link, None, *upper, *lower)
