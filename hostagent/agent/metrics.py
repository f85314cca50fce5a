"""The agent's status for Prometheus. A scrape reads nothing from the kernel: it gets what was seen last."""

import socket
from collections.abc import Callable, Iterator
from socketserver import TCPServer, ThreadingMixIn
from threading import Thread
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from hostagent.agent.status import AgentStatus, EntryStatus

_NAMED = ["entry", "class", "dest"]


class StatusCollector:
    """Gives the status out at each scrape."""

    def __init__(self, current: Callable[[], AgentStatus]) -> None:
        self._current = current

    def collect(self) -> Iterator[Metric]:
        """Yield everything there is."""
        status = self._current()
        yield from _of_agent(status)
        yield from _of_entries(status.entries)


def _of_agent(status: AgentStatus) -> Iterator[Metric]:
    who = status.identity
    info = GaugeMetricFamily("headway_agent_info", "Who the agent is.", labels=["host", "version", "kernel"])
    info.add_metric([who.host, who.version, who.kernel], 1)
    yield info
    for name, about, value in (
        ("controller_connected", "1 if a controller is attached.", bool(status.controller)),
        ("epoch", "Number of the plan in force, or in force last.", status.epoch),
        ("lease_left_seconds", "How long the plan still holds without the controller.", status.lease_left_ms / 1e3),
        ("snapshot_age_seconds", "How long ago the counters were read.", status.age_ms / 1e3),
        ("buffers_may_take_bytes", "Memory that the plan's windows may take at most.", status.buffers_may_take_bytes),
        ("started_seconds", "When the agent was started, Unix seconds.", who.started_s),
    ):
        yield GaugeMetricFamily(f"headway_agent_{name}", about, value=value)
    about = "Parts of the plan that were not in the kernel as they should have been, and were put right."
    yield CounterMetricFamily("headway_agent_repairs", about, value=status.repairs)


def _of_entries(entries: tuple[EntryStatus, ...]) -> Iterator[Metric]:
    gauges: dict[str, tuple[str, Callable[[EntryStatus], float]]] = {
        "planned_bytes_per_second": ("Payload that the plan allows.", lambda e: e.planned_bps / 8),
        "connections": ("Matching connections that are open.", lambda e: e.connections),
        "active_connections": ("Of these, those that share the rate now.", lambda e: e.active),
        "rtt_seconds": ("Smoothed round trip.", lambda e: e.rtt_us / 1e6),
    }
    counters: dict[str, tuple[str, Callable[[EntryStatus], float]]] = {
        "delivered_bytes": ("Payload confirmed by the receiver.", lambda e: e.delivered_bytes),
        "sent_segments": ("Segments sent, all of them.", lambda e: e.sent_segments),
        "retransmitted_segments": ("Segments sent again.", lambda e: e.retransmitted_segments),
    }
    for kind, several in ((GaugeMetricFamily, gauges), (CounterMetricFamily, counters)):
        for name, (about, value) in several.items():
            family = kind(f"headway_agent_{name}", about, labels=_NAMED)
            for entry in entries:
                family.add_metric(_labels(entry), value(entry))
            yield family
    about = "1 if the connections run the host's own congestion control although the lease runs."
    fallback = GaugeMetricFamily("headway_agent_fallback", about, labels=[*_NAMED, "reason"])
    for entry in entries:
        fallback.add_metric([*_labels(entry), entry.fallback or "loss"], bool(entry.fallback))
    yield fallback


def _labels(entry: EntryStatus) -> list[str]:
    return [entry.name, entry.flow_class, entry.dest]


class _Server(ThreadingMixIn, WSGIServer):
    """A thread for each scrape."""

    daemon_threads = True

    def server_bind(self) -> None:
        """Bind as the library does, but do not look for this host's name: nobody needs it, and that may take long."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()


class _Handler(WSGIRequestHandler):
    """One that does not log each scrape."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def metrics_server(address: str, current: Callable[[], AgentStatus]) -> tuple[Thread, Callable[[], None]]:
    """Serve ``/metrics`` on ``host:port`` from now on; return the thread that does, and what ends it.

    The library's own server cannot be ended before its version 0.20, and Debian 12 has 0.16.

    Raises:
        OSError: the port is taken, or the address is not ours.
    """
    host, _, port = address.rpartition(":")
    family, *_, found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
    registry = CollectorRegistry()
    registry.register(StatusCollector(current))

    class Served(_Server):
        address_family = family

    server = make_server(str(found[0]), int(port), make_wsgi_app(registry), Served, _Handler)
    thread = Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()

    def end() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return thread, end
