"""Samples of a running site, each with its time: received payload, connections, the plan."""

import threading
from dataclasses import dataclass, field
from typing import Any, Self

from mininet_tests.probes.counters import Count, NftCounters, install
from mininet_tests.probes.sampling import Sampling
from mininet_tests.probes.sockets import Connections, TcpConnection
from mininet_tests.site.emulation import Emulation, now_us
from mininet_tests.site.wiring import in_namespace

RECEIVED_EVERY_S = 0.004
WATCHED_EVERY_S = 0.02
CONNECTIONS_EVERY_S = 1.0
PLAN_EVERY_S = 0.1


@dataclass(slots=True)
class Samples:
    """What was seen; all times Unix microseconds.

    Attributes:
        received: (time, payload bytes and packets received so far, by sending host).
        connections: (time, connections by sending host), once a second.
        watched: (time, connections by host), often, of the hosts that are to be watched closely.
        plan: (time, what the API said of the plan).
    """

    received: list[tuple[int, dict[str, Count]]] = field(default_factory=list)
    connections: list[tuple[int, dict[str, list[TcpConnection]]]] = field(default_factory=list)
    watched: list[tuple[int, dict[str, list[TcpConnection]]]] = field(default_factory=list)
    plan: list[tuple[int, Any]] = field(default_factory=list)


class Sampler:
    """Samples in threads of its own from ``with`` to its end."""

    def __init__(self, site: Emulation, senders: tuple[str, ...], watched: tuple[str, ...], receiver: str) -> None:
        network, net = site.realised.network, site.realised.net
        install(net[receiver].pid, {name: str(network.host(name).ip) for name in senders})
        self._counters: NftCounters = in_namespace(net[receiver].pid, NftCounters)
        self._diag: dict[str, Connections] = {name: in_namespace(net[name].pid, Connections) for name in senders}
        self._watched = {name: self._diag[name] for name in watched}
        self._diag_lock = threading.Lock()  # a dump is one conversation on its socket
        self._site = site
        self._sampling = Sampling()
        self.samples = Samples()

    def __enter__(self) -> Self:
        """Start."""
        for every_s, take in (
            (RECEIVED_EVERY_S, self._received),
            (CONNECTIONS_EVERY_S, lambda: self._connections(self.samples.connections, self._diag)),
            (WATCHED_EVERY_S, lambda: self._connections(self.samples.watched, self._watched)),
            (PLAN_EVERY_S, self._plan),
        ):
            self._sampling.start(every_s, take)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop; every thread takes a last sample."""
        self._sampling.stop()

    def _received(self) -> None:
        self.samples.received.append((now_us(), self._counters.read()))

    def _connections(
        self, samples: list[tuple[int, dict[str, list[TcpConnection]]]], readers: dict[str, Connections]
    ) -> None:
        with self._diag_lock:
            samples.append((now_us(), {name: diag.read() for name, diag in readers.items()}))

    def _plan(self) -> None:
        self.samples.plan.append((now_us(), self._site.get("/v1/plan")))
