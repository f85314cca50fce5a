"""Values as JSON. Times leave as RFC 3339, rates in bit/s with the unit in the name."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from controller.book import HostState, StepDone, View
from controller.plan.announcements import Announcement, Refused
from controller.plan.invariant import violations
from controller.plan.plan import Plan
from topology.network import Network, Switch, link_name

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def kebab(name: str) -> str:
    """Return a class name as it stands in a problem's type.

    >>> kebab("NotKnown")
    'not-known'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def instant(unix_us: int) -> str:
    """Return a Unix time in microseconds as RFC 3339.

    >>> instant(1_767_225_600_000_000)
    '2026-01-01T00:00:00.000000+00:00'
    """
    return (_EPOCH + timedelta(microseconds=unix_us)).isoformat(timespec="microseconds")


def plan(value: Plan, network: Network) -> dict[str, Any]:
    """Return a plan."""
    circuit = {link_name(tail, head): link.circuit for tail, head, link in network.circuit_links}
    return {
        "epoch": value.epoch,
        "links": {
            name: {
                "circuit": circuit[name],
                "wire_bps": link.wire_bps,
                "frame_bps": link.circuit_bps,
                "classes": {
                    c: {
                        "wire_bps": limits.wire_bps,
                        "queue_frame_bps": limits.queue_bps,
                        "meter_frame_bps": limits.meter_bps,
                    }
                    for c, limits in link.classes.items()
                },
            }
            for name, link in value.links.items()
        },
        "allocations": [
            {
                "name": e.flow.name,
                "class": e.flow.flow_class,
                "from": e.flow.host,
                "to": e.flow.target,
                "path": list(e.flow.path),
                "payload_bps": e.payload_bps,
                "window_segments": e.window_segments,
            }
            for e in value.entries
        ],
    }


def view(value: View, network: Network) -> dict[str, Any]:
    """Return the plan at every layer."""
    return {
        "desired": plan(value.desired, network),
        "installed": None if value.installed is None else plan(value.installed, network),
        "layers": {
            name: {
                "hosts_frame_bps": dict(layers.hosts_bps),
                "meters_frame_bps": dict(layers.meters_bps),
                "queues_frame_bps": dict(layers.queues_bps),
                "circuit_frame_bps": layers.circuit_bps,
            }
            for name, layers in value.layers.items()
        },
        "violations": [str(v) for v in violations(value.layers)],
        "error": value.error,
    }


def health(value: View) -> dict[str, Any]:
    """Return whether the desired plan is in force in the switches, and which agents are missing."""
    in_force = value.installed is not None and value.installed.epoch == value.desired.epoch and not value.error
    missing = [name for name, state in value.hosts.items() if not state.connected]
    waiting = [n for n, s in value.hosts.items() if s.connected and s.confirmed_epoch != s.sent_epoch]
    return {
        "ok": in_force,
        "epoch": value.desired.epoch,
        "error": value.error,
        "hosts_missing": missing,
        "hosts_unconfirmed": waiting,
    }


def step(value: StepDone) -> dict[str, Any]:
    """Return a step of a transition."""
    return {
        "epoch": value.epoch,
        "place": value.place.value,
        "started": instant(value.started_us),
        "started_us": value.started_us,
        "done_us": value.done_us,
        "error": value.error,
    }


def host(name: str, state: HostState) -> dict[str, Any]:
    """Return a host's agent and its counters."""
    telemetry = state.telemetry
    return {
        "name": name,
        "connected": state.connected,
        "kernel": state.kernel,
        "sent_epoch": state.sent_epoch,
        "confirmed_epoch": state.confirmed_epoch,
        "lease_left_ms": None if telemetry is None else telemetry.lease_left_ms,
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


def switch(value: Switch, connected: bool) -> dict[str, Any]:
    """Return a switch, and whether it is connected."""
    return {"name": value.name, "site": value.site, "dpid": f"{value.dpid:016x}", "connected": connected}


def announcement(value: Announcement) -> dict[str, Any]:
    """Return an announcement with its promise."""
    return {
        "id": value.announcement_id,
        "class": value.flows[0].flow_class,
        "bytes": value.size_bytes,
        "from": [f.host for f in value.flows],
        "to": value.flows[0].target,
        "announced": instant(value.announced_us),
        "promised": instant(value.promised_us),
        "promised_in_s": (value.promised_us - value.announced_us) / 1e6,
        "lapses": instant(value.lapses_us),
    }


def refusal(value: Refused) -> dict[str, Any]:
    """Return the numbers of a refusal."""
    return {
        "circuit": value.circuit,
        "asked_s": value.asked_us / 1e6,
        "needed_s": value.needed_us / 1e6,
        "payload_bps": value.rate_bps,
    }


def topology(network: Network) -> dict[str, Any]:
    """Return the network."""
    return {
        "name": network.name,
        "mtu_bytes": network.framing.mtu_bytes,
        "hosts": [{"name": h.name, "site": h.site, "ip": str(h.ip)} for h in network.hosts],
        "switches": [{"name": s.name, "site": s.site, "dpid": f"{s.dpid:016x}"} for s in network.switches],
        "links": [
            {
                "from": tail,
                "to": head,
                "circuit": link.circuit,
                "wire_bps": link.rate_bps,
                "delay_us": link.delay_us,
                "loss_ppm": link.loss_ppm,
                "buffer_bytes": link.buffer_bytes,
            }
            for tail, head, link in network.links()
        ],
    }
