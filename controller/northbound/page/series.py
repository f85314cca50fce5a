"""Planned against delivered, by circuit and class, for the last quarter of an hour: what the page draws. Pure."""

from collections import deque
from dataclasses import dataclass, field

from controller.state.progress import Hindrance
from controller.view import View
from topology.network import Hop, Network
from topology.protocol import FlowClass

KEPT = 900  # samples: 15 minutes at one a second; what is longer ago is Prometheus'
MOST_DRAWN = 12  # series, those with the most planned


@dataclass(frozen=True, slots=True)
class SeriesName:
    """One class on one direction of a circuit."""

    circuit: str
    link: Hop
    flow_class: FlowClass

    def __str__(self) -> str:
        """Name it in a document; the same for as long as the network is."""
        return f"{self.circuit} {self.link.tail} {self.flow_class}"


@dataclass(frozen=True, slots=True)
class Point:
    """What is planned and delivered at a moment.

    Attributes:
        planned_bps: payload, bit/s, of all its flows together.
        delivered_bps: likewise; None if none of their hosts says.
    """

    planned_bps: int
    delivered_bps: int | None


Sample = dict[SeriesName, Point]


def sample(view: View, network: Network) -> Sample:
    """Return what is planned and delivered now, of each class on each direction of a circuit that has flows."""
    planned: dict[SeriesName, int] = {}
    delivered: dict[SeriesName, int | None] = {}
    for entry in view.desired.entries:
        progress = view.delivers(entry)
        for link in dict.fromkeys(hop for hop in entry.flow.links if hop in view.desired.links):
            name = SeriesName(network.link(*link).circuit or "", link, entry.flow.flow_class)
            planned[name] = planned.get(name, 0) + entry.payload_bps
            before = delivered.setdefault(name, None)
            if progress.hindrance is not Hindrance.NO_AGENT:
                delivered[name] = (before or 0) + progress.delivered_bps
    return {name: Point(bps, delivered[name]) for name, bps in planned.items()}


@dataclass
class LatestSamples:
    """The samples of the last quarter of an hour, oldest first."""

    samples: deque[tuple[int, Sample]] = field(default_factory=lambda: deque(maxlen=KEPT))

    def add(self, now_us: int, taken: Sample) -> None:
        """Keep a sample."""
        self.samples.append((now_us, taken))

    def names(self) -> tuple[SeriesName, ...]:
        """Return the series that are drawn: those with the most planned, in order of circuit and class."""
        most: dict[SeriesName, int] = {}
        for _, taken in self.samples:
            for name, point in taken.items():
                most[name] = max(most.get(name, 0), point.planned_bps)
        chosen = sorted(most, key=lambda name: -most[name])[:MOST_DRAWN]
        order = list(FlowClass)
        return tuple(sorted(chosen, key=lambda n: (n.circuit, n.link, order.index(n.flow_class))))

    def drawn(self) -> dict[str, object]:
        """Return all that is drawn: the moments, Unix time in seconds, and by series two lists of bit/s with gaps."""
        names, samples = self.names(), tuple(self.samples)
        return {
            "at": [at_us // 1_000_000 for at_us, _ in samples],
            "series": [{"name": str(name), **_described(name), **_lists(name, samples)} for name in names],
        }

    def latest(self) -> dict[str, object]:
        """Return the newest sample, for who has the others."""
        at_us, taken = self.samples[-1]
        values = {str(name): [point.planned_bps, point.delivered_bps] for name, point in taken.items()}
        return {"at": at_us // 1_000_000, "values": values}


def _described(name: SeriesName) -> dict[str, str]:
    return {"circuit": name.circuit, "from": name.link.tail, "class": name.flow_class}


def _lists(name: SeriesName, samples: tuple[tuple[int, Sample], ...]) -> dict[str, list[int | None]]:
    points = [taken.get(name) for _, taken in samples]
    return {
        "planned_bps": [None if p is None else p.planned_bps for p in points],
        "delivered_bps": [None if p is None else p.delivered_bps for p in points],
    }
