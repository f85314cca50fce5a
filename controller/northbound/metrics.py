"""``/metrics`` for Prometheus: what there is is read when it is asked for; what was decided has been counted before."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from fastapi import Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from controller.audit.record import DriftView
from controller.northbound.dependencies import Dependencies
from controller.northbound.rest import render
from controller.northbound.rest.answers import Routes
from controller.northbound.webhooks import Delivery, Webhook
from controller.plan.announcement_states import PromiseOutcome
from controller.plan.invariant import violations
from controller.plan.leading import LeaderView, PairStanding
from controller.plan.lifecycle import ENDED, ReservationState
from controller.plan.lines import LineState
from controller.security.own_certificates import EndingCertificate
from controller.state.health import Trouble, TroubleKind
from controller.state.receivers import slow_now
from controller.view import View
from topology.network import Network

TEXT = "text/plain; version=0.0.4; charset=utf-8"
NAMELESS = frozenset({TroubleKind.SWITCH_UNKNOWN, TroubleKind.RESERVATION, TroubleKind.ANNOUNCEMENT})
"""What has no place as a label, for there would be a new one with each stranger and each promise."""


class SiteCollector:
    """Reads the site at the time of the scrape."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies

    def collect(self) -> Iterator[Metric]:
        """Yield every gauge and every counter of the hosts' kernels."""
        dependencies = self._dependencies
        leader = dependencies.leader()
        yield from _leading(leader)
        yield _own_certificates(dependencies.own_certificates())
        if leader.standing is PairStanding.STANDBY:  # whoever leads tells of the site
            return
        view, connected = dependencies.reports.view(), dependencies.connected()
        troubles = dependencies.reports.troubles(connected)
        yield from _health(view, troubles, dependencies.use_cases.saves.unsaved_us, leader.standing)
        yield from _promises(dependencies)
        yield from _plan(view, dependencies.use_cases.saves.unsaved_us)
        yield from _links(view, dependencies.network)
        yield from _circuits(view)
        yield from _hosts(view)
        yield from _entries(view)
        yield from _receivers(view)
        yield from _certificates(dependencies)
        yield from _drift(dependencies.drift())
        yield from _webhooks(dependencies.webhooks)
        up = GaugeMetricFamily("headway_switch_connected", "1 if the switch is connected.", labels=["switch"])
        for switch in dependencies.network.switches:
            up.add_metric([switch.name], switch.dpid in connected)
        yield up


def _leading(leader: LeaderView) -> Iterator[Metric]:
    """Yield how a controller of a pair stands; of one that is alone nothing."""
    if leader.standing is None:
        return
    about = "1 if this controller leads and takes what changes anything."
    yield GaugeMetricFamily("headway_leading", about, value=leader.takes)
    about = "1 if this controller led last and the database does not say that it still does: it decides nothing."
    yield GaugeMetricFamily("headway_leader_unsure", about, value=leader.standing is PairStanding.UNSURE)
    yield GaugeMetricFamily("headway_leader_term", "Under which is led; each change raises it.", value=leader.term)
    about = "How old what this controller knows of promises may be; 0 of who leads."
    yield GaugeMetricFamily("headway_standby_lag_seconds", about, value=leader.age_us / 1e6)
    if leader.takes:
        about = "Controllers that stand by, as who leads sees it."
        yield GaugeMetricFamily("headway_standbys", about, value=len(leader.others))


def _health(
    view: View, troubles: tuple[Trouble, ...], unsaved_us: int, standing: PairStanding | None
) -> Iterator[Metric]:
    """Yield what ``/healthz`` says: whether all is well, and what is not, by its kind."""
    is_well = render.health(view, troubles, unsaved_us, standing)["ok"]
    yield GaugeMetricFamily("headway_healthy", "1 if /healthz is ok.", value=is_well)
    about = "1 if the plan that is wanted is in force in the switches, and no step of it fails."
    yield GaugeMetricFamily("headway_plan_in_force", about, value=view.in_force and not view.error)
    about = "What is not well, by its kind, and by the switch, circuit or host that it is at."
    family = GaugeMetricFamily("headway_troubles", about, labels=["kind", "place"])
    counted = Counter((t.kind, "" if t.kind in NAMELESS else t.place) for t in troubles)
    for (kind, place), count in (dict.fromkeys(((kind, "") for kind in TroubleKind), 0) | counted).items():
        family.add_metric([kind, place], count)
    yield family


def _webhooks(webhooks: tuple[Webhook, ...]) -> Iterator[Metric]:
    """Yield what becomes of what they are told, by server: two on one server are one here."""
    about = "Messages to webhooks by what became of them; each time that one is sent again counts."
    messages = CounterMetricFamily("headway_webhook_messages", about, labels=["where", "outcome"])
    about = "For how long a webhook has taken nothing; 0 if it has taken the last."
    failing = GaugeMetricFamily("headway_webhook_failing_seconds", about, labels=["where"])
    for where in dict.fromkeys(webhook.where for webhook in webhooks):
        there = [webhook for webhook in webhooks if webhook.where == where]
        for outcome in Delivery:
            messages.add_metric([where, outcome], sum(webhook.outcomes[outcome] for webhook in there))
        failing.add_metric([where], max(webhook.failing_s() for webhook in there))
    yield messages
    yield failing


def _promises(dependencies: Dependencies) -> Iterator[Metric]:
    states, left = dependencies.use_cases.tally()
    reservations = GaugeMetricFamily("headway_reservations", "Reservations by state.", labels=["state"])
    ended = CounterMetricFamily("headway_reservations_ended", "Reservations that have ended.", labels=["state"])
    for state in ReservationState:
        if state in ENDED:
            ended.add_metric([state], left[state])
        else:
            reservations.add_metric([state], states[state])
    yield reservations
    yield ended
    announced = len(dependencies.use_cases.announcements())
    yield GaugeMetricFamily("headway_announcements", "Announcements in the plan.", value=announced)
    about = "Announcements that have ended, by how their promise was kept; two minutes after their end."
    kept = CounterMetricFamily("headway_announcements_ended", about, labels=["outcome"])
    outcomes = dependencies.announced.outcomes()
    for outcome in PromiseOutcome:
        kept.add_metric([outcome], outcomes[outcome])
    yield kept
    unkept = dependencies.reports.unkept()
    about = "Announcements that are late now, or will be as things are."
    yield GaugeMetricFamily("headway_announcements_late", about, value=unkept.late)
    about = "Reservations that the calendar has no room for any more: they will fail, or be interrupted."
    yield GaugeMetricFamily("headway_reservations_unkeepable", about, value=unkept.unkeepable)


def _plan(view: View, unsaved_us: int) -> Iterator[Metric]:
    yield GaugeMetricFamily("headway_plan_epoch", "Number of the plan that is wanted.", value=view.desired.epoch)
    installed = 0 if view.installed is None else view.installed.epoch
    yield GaugeMetricFamily("headway_plan_installed_epoch", "Number of the plan in the switches.", value=installed)
    off = "The wall clock less the time that promises are kept by; 0 below a second."
    yield GaugeMetricFamily("headway_calendar_off_seconds", off, value=view.calendar_off_us / 1e6)
    yield GaugeMetricFamily(
        "headway_store_unsaved_seconds",
        "Age of the oldest answer that the database has not confirmed.",
        value=unsaved_us / 1e6,
    )
    count = len(violations(view.layers))
    yield GaugeMetricFamily(
        "headway_invariant_violations", "Places where a layer lets through more than the next one.", value=count
    )


def _links(view: View, network: Network) -> Iterator[Metric]:
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
    for hop, link in view.desired.links.items():
        if not network.is_ours(hop.tail):
            continue
        layers, name = view.layers[hop], str(hop)
        circuit.add_metric([name], link.wire_bps)
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
    """Yield what agents say; of one that is gone what it has counted, and nothing that was so when it said it."""
    up = GaugeMetricFamily("headway_agent_connected", "1 if the host's agent is connected.", labels=["host"])
    lease = GaugeMetricFamily("headway_agent_lease_left_seconds", "How long its lease still holds.", labels=["host"])
    named = ["host", "allocation"]
    delivered = CounterMetricFamily("headway_delivered_bytes", "Payload confirmed by the receiver.", labels=named)
    again = CounterMetricFamily("headway_retransmitted_segments", "Segments that were sent again.", labels=named)
    sent = CounterMetricFamily("headway_sent_segments", "Segments that were sent, all of them.", labels=named)
    rtt = GaugeMetricFamily("headway_rtt_seconds", "Smoothed round trip.", labels=named)
    about = "1 if its connections run the host's own congestion control, because too much is lost."
    fallback = GaugeMetricFamily("headway_agent_fallback", about, labels=named)
    for host, state in view.hosts.items():
        up.add_metric([host], state.connected)
        if state.telemetry is None:
            continue
        if state.connected:
            lease.add_metric([host], state.telemetry.lease_left_ms / 1_000)
        for entry in state.telemetry.entries:
            delivered.add_metric([host, entry.name], entry.delivered_bytes)
            again.add_metric([host, entry.name], entry.retransmitted_segments)
            sent.add_metric([host, entry.name], entry.sent_segments)
            if state.connected:
                rtt.add_metric([host, entry.name], entry.rtt_us / 1e6)
                fallback.add_metric([host, entry.name], bool(entry.fallback))
    yield from (up, lease, delivered, again, sent, rtt, fallback)


def _entries(view: View) -> Iterator[Metric]:
    """Yield what the plan has for each allocation, what it delivers, and what is in the way."""
    named = ["host", "allocation"]
    about = "Payload that the plan has for it, bit/s."
    planned = GaugeMetricFamily("headway_planned_bps", about, labels=[*named, "class"])
    about = "Payload that was confirmed in the last second or so, bit/s."
    rate = GaugeMetricFamily("headway_delivered_bps", about, labels=named)
    about = "1 for what is in the way of more than is delivered."
    hindrance = GaugeMetricFamily("headway_hindrance", about, labels=[*named, "hindrance"])
    for entry in view.desired.entries:
        seen, flow = view.delivers(entry), entry.flow
        planned.add_metric([flow.host, flow.name, flow.flow_class], entry.payload_bps)
        rate.add_metric([flow.host, flow.name], seen.delivered_bps)
        if seen.hindrance is not None:
            hindrance.add_metric([flow.host, flow.name, seen.hindrance], 1)
    yield from (planned, rate, hindrance)


def _receivers(view: View) -> Iterator[Metric]:
    """Yield what stores take, and how many flows are held by receivers of a host that nobody there tells of."""
    named = ["host", "store"]
    about = "Payload that the store drains for good, bit/s; none if it takes all that it is sent."
    drain = GaugeMetricFamily("headway_store_drain_bps", about, labels=named)
    room = GaugeMetricFamily("headway_store_room_bytes", "What the store can take at once now.", labels=named)
    unread = GaugeMetricFamily("headway_store_unread_bytes", "What waits in its sockets to be read.", labels=named)
    about = (
        "Receivers of flows, and stores, on this host that keep somebody waiting; none whose operator says its rate."
    )
    slow = GaugeMetricFamily("headway_receivers_slow", about, labels=["host"])
    found = Counter(one.host for state in view.hosts.values() for one in slow_now(state))
    for host, state in view.hosts.items():
        slow.add_metric([host], found[host])
        for name, known in state.stores.items() if state.connected else ():
            if known.intake.drain_bps is not None:
                drain.add_metric([host, name], known.intake.drain_bps)
            room.add_metric([host, name], known.told.room_bytes)
            unread.add_metric([host, name], known.told.unread_bytes)
    yield from (drain, room, unread, slow)


def _certificates(dependencies: Dependencies) -> Iterator[Metric]:
    about = "When the certificate of the host's agent ends, Unix time."
    yield _ends("headway_agent_certificate_ends_seconds", about, "host", dependencies.certificates())
    about = "When the certificate ends that the switch shows, Unix time."
    yield _ends("headway_switch_certificate_ends_seconds", about, "switch", dependencies.switch_certificates())


def _ends(name: str, about: str, label: str, ends_s: Mapping[str, float]) -> Metric:
    ends = GaugeMetricFamily(name, about, labels=[label])
    for whose, end_s in ends_s.items():
        ends.add_metric([whose], end_s)
    return ends


def _own_certificates(found: Iterable[EndingCertificate]) -> Metric:
    """Return when those end that the controller stands on; of several of one name the first."""
    about = "When a certificate ends that the controller stands on, its own or its authority's, Unix time."
    ends = GaugeMetricFamily("headway_own_certificate_ends_seconds", about, labels=["whose", "name"])
    first: dict[tuple[str, str], float] = {}
    for one in found:
        first[one.whose, one.name] = min(one.end_s, first.get((one.whose, one.name), one.end_s))
    for labels, end_s in first.items():
        ends.add_metric([*labels], end_s)
    return ends


def _drift(view: DriftView) -> Iterator[Metric]:
    """Yield how often what was found and put right, and what waits for a person."""
    named = ["place", "kind", "shape"]
    found = CounterMetricFamily("headway_drift_found", "Objects that were not as planned.", labels=named)
    repaired = CounterMetricFamily("headway_drift_repaired", "Objects that were put right.", labels=named)
    for family, tally in ((found, view.found), (repaired, view.repaired)):
        for labels, count in tally.items():
            family.add_metric([*labels], count)
    audits = CounterMetricFamily("headway_audits", "Comparisons with the plan.", labels=["place"])
    messages = CounterMetricFamily("headway_drift_messages", "Changes sent to put things right.", labels=["place"])
    seconds = GaugeMetricFamily("headway_audit_seconds", "How long the latest audit took.", labels=["place"])
    alarms = GaugeMetricFamily("headway_drift_alarms", "What waits for a person.", labels=["place"])
    for place, audit in view.latest.items():
        audits.add_metric([place], view.audits[place])
        messages.add_metric([place], view.messages[place])
        seconds.add_metric([place], audit.took_us / 1e6)
        alarms.add_metric([place], len(audit.alarms))
    yield from (found, repaired, audits, messages, seconds, alarms)


class Metrics:
    """The handler."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def routes(self) -> Routes:
        """Return the route."""
        routes = Routes("state")
        text = {200: {"description": "The metrics", "content": {"text/plain": {"schema": {"type": "string"}}}}}
        routes.add("GET /metrics", self.metrics, text)
        return routes

    def metrics(self) -> Response:
        """Return metrics in the text format of Prometheus."""
        return Response(generate_latest(self._registry), media_type=TEXT)
