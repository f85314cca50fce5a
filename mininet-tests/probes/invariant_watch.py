"""The invariant, watched from outside the controller: sockets, meters and queues, all the time.

Hosts: the pacing rate that the agents have given the connections that have something to send, read from the sockets.
Meters: asked of the switch by ``ovs-ofctl``. Queues: asked of the kernel. The controller's own ``violations`` beside.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from operator import itemgetter
from typing import Any, Self

from mininet_tests.probes.counters import NftCounters, install
from mininet_tests.probes.sampling import Sampling
from mininet_tests.site.emulation import Emulation, now_us
from mininet_tests.site.faults import Traffic
from mininet_tests.site.topos import queue_rates_bps, read_back
from mininet_tests.site.wiring import in_namespace
from topology.network import Hop, Network
from topology.protocol import FlowClass
from topology.wire import Layer, converted_bps

ARRIVED_EVERY_S = 0.01
LOOK_COUNTS_AT_MOST_US = 20_000  # two intervals: what is longer is the machine's silence, not the line's
Rates = dict[str, dict[FlowClass, int]]  # by link and class, bit/s of frames


@dataclass(frozen=True, slots=True)
class Sample:
    """What the three layers let through at one moment, bit/s of frames.

    Attributes:
        at_us: when, Unix time.
        hosts_bps: by link, what each connection may send.
        on_their_own: connections with something to send that no agent holds.
        meters: None while the switch does not answer.
        queues: always readable.
        said: what the controller itself calls violated; None while it does not answer.
    """

    at_us: int
    hosts_bps: dict[str, dict[str, int]]
    on_their_own: tuple[str, ...]
    meters: Rates | None
    queues: Rates
    said: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class FoundViolation:
    """A layer that let through more than the next one could hold.

    Attributes:
        at_us: when, Unix time.
        text: which, and by how much.
        stood: the connections with something to send, as the kernel told.
    """

    at_us: int
    text: str
    stood: dict[str, dict[str, int]]


@dataclass(slots=True)
class InvariantWatch:
    """Samples in threads of its own, between ``with`` and its end.

    Attributes:
        traffic: whose connections are the hosts' layer.
        receiver: the host they go to.
        every_s: between two samples of the layers.
        samples: what was seen.
        found: what was wrong.
        arrived: by sending host, the times at which its payload was seen to have grown, and what it had come to.
        looks: when it was looked at, and how much of the time until then was watched, microseconds.
    """

    traffic: Traffic
    receiver: str
    every_s: float = 0.1
    samples: list[Sample] = field(default_factory=list)
    found: list[FoundViolation] = field(default_factory=list)
    arrived: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    looks: list[tuple[int, int]] = field(default_factory=list)
    _sampling: Sampling = field(default_factory=Sampling)

    def __enter__(self) -> Self:
        """Start."""
        site = self.traffic.site
        network, pid = site.realised.network, site.realised.net[self.receiver].pid
        senders = {h.name: str(h.ip) for h in network.hosts if h.name != self.receiver}
        install(pid, senders)
        counters = in_namespace(pid, NftCounters)
        began_us = now_us()
        self.looks.append((began_us, 0))
        self.arrived.update({name: [(began_us, 0)] for name in senders})
        self._sampling.start(ARRIVED_EVERY_S, lambda: self.arrive(counters, now_us()))
        self._sampling.start(self.every_s, self._look)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self._sampling.stop()

    def arrive(self, counters: NftCounters, at_us: int) -> None:
        """Look once at what has arrived."""
        before_us, watched_us = self.looks[-1]
        self.looks.append((at_us, watched_us + min(at_us - before_us, LOOK_COUNTS_AT_MOST_US)))
        for name, count in counters.read().items():
            seen = self.arrived[name]
            if count.payload_bytes > seen[-1][1]:
                seen.append((at_us, count.payload_bytes))

    def _look(self) -> None:
        site = self.traffic.site
        sample = self._sampled(site)
        self.samples.append(sample)
        if not any(violated(sample, site.realised.network)):
            return
        # A change came between two readings, perhaps: what is wrong must still be so for the layers read first.
        again = self._sampled(site)
        found = violated(least_of(sample, again), site.realised.network)
        streams = list(self.traffic.streams.items())
        stood = {name: asdict(stream.told) for name, stream in streams if stream.unconfirmed_bytes}
        self.found += [FoundViolation(sample.at_us, text, stood) for text in found]

    def _sampled(self, site: Emulation) -> Sample:
        at_us, hosts_bps, free = now_us(), self.traffic.frame_bps(), self.traffic.on_their_own()
        plan = site.get("/v1/plan")
        said = None if plan is None else tuple(plan["violations"])
        try:
            layers = read_back(site.realised)
        except RuntimeError:  # ovs-vswitchd is gone
            return Sample(at_us, hosts_bps, free, None, queue_rates_bps(site.realised), said)
        meters, queues = ({link: rates[of] for link, rates in layers.items()} for of in ("meters_bps", "queues_bps"))
        return Sample(at_us, hosts_bps, free, meters, queues, said)

    def arrived_bps(self, host: str, over_s: float) -> float:
        """Return the payload of a host that has arrived in the last seconds, bit/s."""
        seen, from_us = self.arrived[host], now_us() - over_s * 1e6
        before = next((size_bytes for at_us, size_bytes in reversed(seen) if at_us <= from_us), 0)
        return 8 * (seen[-1][1] - before) / over_s

    def gaps(self, host: str, from_us: int, to_us: int) -> list[tuple[int, int, int]]:
        """Return each time between two times in which nothing of a host's arrived, and from when to when it was.

        A look that comes late counts as two intervals at most: on a machine whose processors are taken away nothing is
        seen for that long, whatever the line carries.

        Returns:
            (how much of it was watched, from, to), microseconds.
        """
        times = [at_us for at_us, _ in self.arrived[host]]
        before = max((t for t in times if t <= from_us), default=from_us)
        within = [before, *(t for t in times if from_us < t < to_us), to_us]
        watched = ((self._watched_us(t), t) for t in within)
        return [(b_watched - a_watched, a, b) for (a_watched, a), (b_watched, b) in pairwise(watched)]

    def _watched_us(self, until_us: int) -> int:
        at_us, watched_us = self.looks[max(bisect_right(self.looks, until_us, key=itemgetter(0)) - 1, 0)]
        return watched_us + min(max(until_us - at_us, 0), LOOK_COUNTS_AT_MOST_US)

    def longest_gap_ms(self, host: str, from_us: int, to_us: int) -> float:
        """Return the longest time between two times in which nothing of a host's arrived, milliseconds."""
        return max(self.gaps(host, from_us, to_us))[0] / 1000


def violated(sample: Sample, network: Network) -> Iterator[str]:
    """Yield where a layer lets through more than the next one can hold.

    The connections are looked at in total: the class of each is the switch's word for it, not the host's.
    """
    yield from sample.said or ()
    for tail, head, link in network.circuit_links:
        name = str(Hop(tail, head))
        circuit_bps = converted_bps(link.rate_bps, Layer.WIRE, Layer.FRAME, network.framing)
        queues, meters = sample.queues[name], (sample.meters or {}).get(name, {})
        hosts_bps = sample.hosts_bps.get(name, {})
        for text in _over(name, "the hosts", sum(hosts_bps.values()), "the circuit", circuit_bps):
            yield f"{text}: {', '.join(f'{host} {bps:,}' for host, bps in hosts_bps.items())}"
        yield from _over(name, "the queues", sum(queues.values()), "the circuit", circuit_bps)
        for flow_class, meter_bps in meters.items():
            yield from _over(f"{name}, {flow_class}", "meter", meter_bps, "queue", queues.get(flow_class, 0))


def least_of(first: Sample, again: Sample) -> Sample:
    """Return a sample with, of hosts and meters, the lesser of what was read before and after the queues were.

    A connection that is not in the second has nothing to send any more: what it paced at last was of no account.
    """
    hosts_bps = {
        link: {name: min(bps, again.hosts_bps.get(link, {}).get(name, 0)) for name, bps in rates.items()}
        for link, rates in first.hosts_bps.items()
    }
    return replace(first, hosts_bps=hosts_bps, meters=_least(first.meters, again.meters))


def _over(where: str, upper: str, upper_bps: int, lower: str, lower_bps: int) -> Iterator[str]:
    if upper_bps > lower_bps:
        yield f"{where}: {upper} {upper_bps:,} bit/s > {lower} {lower_bps:,} bit/s"


def _least(first: Any, again: Any) -> Any:
    """Return the lesser of two readings of one layer, rate by rate; None if one of them is."""
    if first is None or again is None:
        return None
    return {
        link: {key: min(bps, again.get(link, {}).get(key, bps)) for key, bps in rates.items()}
        for link, rates in first.items()
    }
