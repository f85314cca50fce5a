"""``/metrics`` for Prometheus: what is decided is counted as it happens, what there is is read when it is asked for."""

import time
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from typing import TypeVar

from fastapi import APIRouter, Response
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from controller.book import View
from controller.northbound import drift
from controller.northbound.answers import add
from controller.northbound.parts import Parts
from controller.plan.admission import Refused
from controller.plan.invariant import violations
from controller.plan.lifecycle import State
from controller.plan.lines import LineState
from controller.use_cases import Saved

T = TypeVar("T")
TEXT = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS_S = (0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.1, 1.0)  # the aim is 0.2 ms


class Decisions:
    """Counts decisions and times them. Thread-safe, as prometheus_client is."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._count = Counter(
            "headway_decisions", "What was asked, by the answer.", ["kind", "answer"], registry=registry
        )
        self._seconds = Histogram(
            "headway_decision_seconds", "How long deciding took.", ["kind"], buckets=BUCKETS_S, registry=registry
        )
        self._failures = Counter("headway_store_failures", "Answers that could not be saved.", registry=registry)

    def decided(self, kind: str, decide: Callable[[], Saved[T]]) -> Saved[T]:
        """Return a decision; it is counted as ``granted``, by the reason it was refused for, or as ``invalid``."""
        began_s, answer = time.perf_counter(), "invalid"
        try:
            kept = decide()
            answer = kept.value.reason.value if isinstance(kept.value, Refused) else "granted"
        finally:
            self._seconds.labels(kind).observe(time.perf_counter() - began_s)
            self._count.labels(kind, answer).inc()
        return kept

    def not_saved(self) -> None:
        """Count an answer that could not be given because it was not saved."""
        self._failures.inc()


class SiteCollector:
    """Reads the site at the time of the scrape."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def collect(self) -> Iterator[Metric]:
        """Yield every gauge and every counter of the hosts' kernels."""
        parts = self._parts
        view = parts.reports.view()
        yield from _promises(parts)
        yield from _plan(view)
        yield from _links(view)
        yield from _circuits(view)
        yield from _hosts(view)
        yield from drift.metrics(parts.drift())
        up = GaugeMetricFamily("headway_switch_connected", "1 if the switch is connected.", labels=["switch"])
        connected = parts.connected()
        for switch in parts.network.switches:
            up.add_metric([switch.name], switch.dpid in connected)
        yield up


def _promises(parts: Parts) -> Iterator[Metric]:
    states = Tally(known.state for known in parts.use_cases.reservations())
    reservations = GaugeMetricFamily("headway_reservations", "Reservations by state.", labels=["state"])
    for state in State:
        reservations.add_metric([state], states[state])
    yield reservations
    announced = len(parts.use_cases.announcements())
    yield GaugeMetricFamily("headway_announcements", "Announcements in the plan.", value=announced)


def _plan(view: View) -> Iterator[Metric]:
    yield GaugeMetricFamily("headway_plan_epoch", "Number of the plan that is wanted.", value=view.desired.epoch)
    installed = 0 if view.installed is None else view.installed.epoch
    yield GaugeMetricFamily("headway_plan_installed_epoch", "Number of the plan in the switches.", value=installed)
    count = len(violations(view.layers))
    yield GaugeMetricFamily(
        "headway_invariant_violations", "Places where a layer lets through more than the next one.", value=count
    )


def _links(view: View) -> Iterator[Metric]:
    circuit = GaugeMetricFamily("headway_circuit_wire_bps", "What a direction of a circuit carries.", labels=["link"])
    limits = {
        layer: GaugeMetricFamily(f"headway_class_{layer}_bps", what, labels=["link", "class"])
        for layer, what in (
            ("wire", "A class's share of a link, counted on the wire."),
            ("queue_frame", "What its queue is guaranteed, in frames."),
            ("meter_frame", "What its meter lets through, in frames."),
            ("hosts_frame", "What all hosts may send in it, in frames."),
        )
    }
    for name, link in view.desired.links.items():
        circuit.add_metric([name], link.wire_bps)
        layers = view.layers[name]
        for flow_class, share in link.classes.items():
            limits["wire"].add_metric([name, flow_class], share.wire_bps)
            limits["queue_frame"].add_metric([name, flow_class], layers.queues_bps.get(flow_class, 0))
            limits["meter_frame"].add_metric([name, flow_class], layers.meters_bps.get(flow_class, 0))
            limits["hosts_frame"].add_metric([name, flow_class], layers.hosts_bps.get(flow_class, 0))
    yield circuit
    yield from limits.values()


def _circuits(view: View) -> Iterator[Metric]:
    up = GaugeMetricFamily("headway_circuit_up", "1 if the circuit's line is up and trusted.", labels=["circuit"])
    for name, state in view.lines.items():
        up.add_metric([name], state is LineState.UP)
    yield up


def _hosts(view: View) -> Iterator[Metric]:
    up = GaugeMetricFamily("headway_agent_connected", "1 if the host's agent is connected.", labels=["host"])
    lease = GaugeMetricFamily("headway_agent_lease_left_seconds", "How long its lease still holds.", labels=["host"])
    named = ["host", "allocation"]
    delivered = CounterMetricFamily("headway_delivered_bytes", "Payload confirmed by the receiver.", labels=named)
    again = CounterMetricFamily("headway_retransmitted_segments", "Segments that were sent again.", labels=named)
    sent = CounterMetricFamily("headway_sent_segments", "Segments that were sent, all of them.", labels=named)
    rtt = GaugeMetricFamily("headway_rtt_seconds", "Smoothed round trip.", labels=named)
    for host, state in view.hosts.items():
        up.add_metric([host], state.connected)
        if state.telemetry is not None:
            lease.add_metric([host], state.telemetry.lease_left_ms / 1_000)
        for entry in () if state.telemetry is None else state.telemetry.entries:
            delivered.add_metric([host, entry.name], entry.delivered_bytes)
            again.add_metric([host, entry.name], entry.retransmitted_segments)
            sent.add_metric([host, entry.name], entry.sent_segments)
            rtt.add_metric([host, entry.name], entry.rtt_us / 1e6)
    yield from (up, lease, delivered, again, sent, rtt)


class Metrics:
    """The handler."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def routes(self) -> APIRouter:
        """Return the route."""
        routes = APIRouter(tags=["state"])
        text = {200: {"description": "The metrics", "content": {"text/plain": {"schema": {"type": "string"}}}}}
        add(routes, "GET /metrics", self.metrics, text)
        return routes

    def metrics(self) -> Response:
        """Return metrics in the text format of Prometheus."""
        return Response(generate_latest(self._registry), media_type=TEXT)
