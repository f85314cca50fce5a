"""The site as JSON. Times leave as RFC 3339, rates in bit/s with the unit in the name."""

from controller.northbound.rest.network_shapes import (
    BurstOut,
    CircuitDelayOut,
    CircuitOut,
    HostStateOut,
    SwitchOut,
    TopologyOut,
)
from controller.northbound.rest.render_promises import connections
from controller.northbound.rest.shapes import (
    HealthOut,
    LayersOut,
    LinkPlanOut,
    PlanOut,
    ProgressOut,
    StepOut,
    ViewOut,
)
from controller.plan.delays import DelaySource, MeasuredDelay
from controller.plan.invariant import Layers, violations
from controller.plan.leading import LeaderView, PairStanding
from controller.plan.plan import LinkPlan, Plan
from controller.plan.ports import PortBurst
from controller.state.health import Trouble
from controller.state.installed import StepDone
from controller.state.progress import EntryProgress
from controller.state.reported import HostState
from controller.view import View
from topology.addresses import shown_address
from topology.network import Circuit, Hop, Network, Switch
from topology.units import shown_time

STANDBY_BEHIND_US = 5_000_000  # so old what who stands by knows may be before that is trouble


def plan(value: Plan, network: Network, seen: View | None = None) -> PlanOut:
    """Return a plan; ``seen`` is what is delivered now, if the plan is more than held ready."""
    circuit = {Hop(tail, head): link.circuit for tail, head, link in network.circuit_links}
    links = {hop: link for hop, link in value.links.items() if network.is_ours(hop.tail)}
    return {
        "epoch": value.epoch,
        "links": {str(hop): _link(link, circuit[hop]) for hop, link in links.items()},
        "allocations": [
            {
                "name": e.flow.name,
                "class": e.flow.flow_class,
                "from": e.flow.host,
                "to": e.flow.target,
                "path": list(e.flow.path),
                "payload_bps": e.payload_bps,
                "window_segments": e.window_segments,
                "connections": connections(e.flow.selector),
                "dscp": e.flow.mark,
                "tail": e.flow.tail,
                "carries": list(e.flow.names),
                "progress": None if seen is None else _progress(seen.delivers(e)),
            }
            for e in value.entries
        ],
    }


def _progress(value: EntryProgress) -> ProgressOut:
    return {
        "delivered_bytes": value.delivered_bytes,
        "delivered_bps": value.delivered_bps,
        "least": value.is_least,
        "hindrance": value.hindrance,
        "since": shown_time(value.since_us),
    }


def _link(value: LinkPlan, circuit: str | None) -> LinkPlanOut:
    return {
        "circuit": circuit,
        "wire_bps": value.wire_bps,
        "frame_bps": value.circuit_bps,
        "classes": {
            c: {"wire_bps": limits.wire_bps, "queue_frame_bps": limits.queue_bps, "meter_frame_bps": limits.meter_bps}
            for c, limits in value.classes.items()
        },
    }


def view(value: View, network: Network) -> ViewOut:
    """Return the plan at every layer."""
    return {
        "desired": plan(value.desired, network, value),
        "installed": None if value.installed is None else plan(value.installed, network, value),
        "layers": {str(hop): _layers(layers) for hop, layers in value.layers.items()},
        "violations": [str(v) for v in violations(value.layers)],
        "error": value.error,
    }


def _layers(value: Layers) -> LayersOut:
    return {
        "hosts_frame_bps": dict(value.hosts_bps),
        "meters_frame_bps": dict(value.meters_bps),
        "queues_frame_bps": dict(value.queues_bps),
        "circuit_frame_bps": value.circuit_bps,
    }


def burst(value: PortBurst) -> BurstOut:
    """Return what a start needs at a port, and what is done about it."""
    return {
        "link": str(value.link),
        "circuit": value.circuit,
        "senders": list(value.hosts),
        "window_bytes": value.window_bytes,
        "unpaced_bytes": value.unpaced_bytes,
        "chosen_bytes": value.chosen_bytes,
        "buffer_bytes": value.buffer_bytes,
        "fits": value.fits,
        "choices": [
            {
                "choice": chosen.choice,
                "senders": list(chosen.hosts),
                "needed_bytes": chosen.needed_bytes,
                "reason": chosen.reason,
                "offsets_us": list(chosen.offsets_us),
                "nic_bps": chosen.nic_bps,
            }
            for chosen in value.chosen
        ],
    }


def health(value: View, troubles: tuple[Trouble, ...], unsaved_us: int, standing: PairStanding | None) -> HealthOut:
    """Return whether the desired plan is in force in the switches and all that is promised is carried; if not, why."""
    unsure = ["the pair: the database does not say that this controller still leads"]
    missing = [name for name, state in value.hosts.items() if not state.connected]
    waiting = [n for n, s in value.hosts.items() if s.connected and s.confirmed_epoch != s.sent_epoch]
    behind = [] if value.in_force else [f"plan {value.desired.epoch} is not in force in the switches yet"]
    ours = [*(unsure if standing is PairStanding.UNSURE else []), *([value.error] if value.error else behind)]
    reasons = [*ours, *map(str, troubles)]
    return {
        "ok": not reasons,
        "reasons": list(dict.fromkeys(reasons)),
        "epoch": value.desired.epoch,
        "error": value.error,
        "hosts_missing": missing,
        "hosts_unconfirmed": waiting,
        "calendar_off_us": value.calendar_off_us,
        "unsaved_us": unsaved_us,
    }


def standby_health(value: View, leader: LeaderView) -> HealthOut:
    """Return whether somebody leads and a controller that stands by knows of what was promised.

    Whoever leads says how the site is.
    """
    leaderless = [] if leader.holder else ["the pair: no controller leads"]
    behind = f"this controller stands by, and what it knows of promises is {leader.age_us / 1e6:.0f} s old"
    reasons = [*leaderless, *([behind] if leader.age_us >= STANDBY_BEHIND_US else [])]
    return {
        "ok": not reasons,
        "reasons": reasons,
        "epoch": value.desired.epoch,
        "error": "",
        "hosts_missing": [name for name, state in value.hosts.items() if not state.connected],
        "hosts_unconfirmed": [],
        "calendar_off_us": value.calendar_off_us,
        "unsaved_us": 0,
    }


def step(value: StepDone) -> StepOut:
    """Return a step of a transition."""
    return {
        "epoch": value.epoch,
        "place": value.stage.value,
        "started": shown_time(value.started_us),
        "started_us": value.started_us,
        "done_us": value.done_us,
        "error": value.error,
        "changes": [
            {"where": c.where, "what": c.what, "from_frame_bps": c.from_bps, "to_frame_bps": c.to_bps}
            for c in value.changes
        ],
    }


def host(name: str, state: HostState) -> HostStateOut:
    """Return a host's agent and its counters."""
    telemetry = state.telemetry
    return {
        "name": name,
        "connected": state.connected,
        "kernel": state.kernel,
        "codes_tails": state.codes_tails,
        "sent_epoch": state.sent_epoch,
        "confirmed_epoch": state.confirmed_epoch,
        "lease_left_ms": telemetry.lease_left_ms if telemetry is not None and state.connected else None,
        "allocations": []
        if telemetry is None
        else [
            {
                "name": e.name,
                "connections": e.connections,
                "active": e.active,
                "delivered_bytes": e.delivered_bytes,
                "sent_segments": e.sent_segments,
                "retransmitted_segments": e.retransmitted_segments,
                "rtt_us": e.rtt_us,
            }
            for e in telemetry.entries
        ],
    }


def circuits(value: View, network: Network) -> list[CircuitOut]:
    """Return every circuit, how its line is, and the plan that is ready for the case that it dies."""
    plan_now = value.desired
    used = {network.link(*hop).circuit for hop, link in plan_now.links.items() if link.wire_bps} - plan_now.down
    return [
        {
            "name": one.name,
            "a_end": one.a_end,
            "z_end": one.z_end,
            "wire_bps": one.rate_bps,
            "state": value.lines[one.name],
            "in_use": one.name in used,
            "delay": _delay(network, one, value.delays.get(one.name)),
            "if_it_dies": plan(value.prepared[one.name], network) if one.name in value.prepared else None,
        }
        for one in network.circuits
    ]


def _delay(network: Network, circuit: Circuit, measured: MeasuredDelay | None) -> CircuitDelayOut:
    if measured is not None:
        at, by = shown_time(measured.at_us), list(measured.hosts)
        return {"one_way_us": measured.delay_us, "source": DelaySource.MEASURED, "measured_at": at, "measured_by": by}
    link, _ = network.links_of(circuit)
    source = DelaySource.BOUND if link.is_bound else DelaySource.FILE
    return {"one_way_us": link.delay_us, "source": source, "measured_at": None, "measured_by": []}


def switch(value: Switch, connected: bool) -> SwitchOut:
    """Return a switch, and whether it is connected."""
    return {"name": value.name, "site": value.site, "dpid": f"{value.dpid:016x}", "connected": connected}


def topology(network: Network) -> TopologyOut:
    """Return the network."""
    return {
        "name": network.name,
        "mtu_bytes": network.framing.mtu_bytes,
        "sites": list(network.sites),
        "circuits": [circuit.name for circuit in network.circuits],
        "hosts": [
            {
                "name": h.name,
                "site": h.site,
                "ip": str(h.ip),
                "addresses": list(map(shown_address, h.prefixes)),
                "ours": network.is_ours(h.name),
                "agent": h.machine if h.has_agent else None,
            }
            for h in network.hosts
        ],
        "switches": [{"name": s.name, "site": s.site, "dpid": f"{s.dpid:016x}"} for s in network.switches],
        "links": [
            {
                "from": tail,
                "to": head,
                "circuit": link.circuit,
                "wire_bps": link.rate_bps,
                "delay_us": network.delay_us(tail, head),
                "buffer_bytes": link.buffer_bytes,
            }
            for tail, head, link in network.links()
        ],
    }
