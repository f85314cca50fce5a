"""What each layer lets through at this moment. Pure."""

from collections.abc import Sequence

from controller.plan.failover import turned
from controller.plan.invariant import Layers
from controller.plan.plan import Entry
from controller.site import Site
from controller.state.installed import Installed
from controller.state.reported import Reported
from controller.state.value import SiteState
from topology.network import Hop
from topology.protocol import FlowClass


def acting(reported: Reported, installed: Installed, elapsed_us: int) -> tuple[Entry, ...]:
    """Return the most that hosts may be acting on now, where the rules in force send it."""
    entries = (e for host in reported.hosts.values() for e in host.leases.acting(elapsed_us))
    return turned(entries, installed.meters) if installed.meters else tuple(entries)


def lease_ends_us(reported: Reported, elapsed_us: int) -> list[int]:
    """Return when hosts may be acting on less by themselves, elapsed time."""
    ends_us = [host.leases.changes_us(elapsed_us) for host in reported.hosts.values()]
    ends_us.append(reported.unknown_until_us(elapsed_us))
    return [at_us for at_us in ends_us if at_us is not None]


def layers(site: Site, state: SiteState, elapsed_us: int) -> dict[Hop, Layers]:
    """Return what each layer lets through now on each direction of each circuit that is up.

    Until the first plan was granted, hosts may be doing what an earlier controller granted: all that the meters let
    through counts as used.
    """
    is_unknown = not state.installed.hosts_epoch or state.reported.unknown_until_us(elapsed_us) is not None
    entries, plan = acting(state.reported, state.installed, elapsed_us), state.desired.plan
    dead = {Hop(t, h) for t, h, link in site.network.circuit_links if link.circuit in plan.down}
    by_link: dict[Hop, list[Entry]] = {}
    for entry in entries:
        for hop in dict.fromkeys(entry.flow.links):
            by_link.setdefault(hop, []).append(entry)
    return {
        name: Layers({}, {}, {}, 0)
        if name in dead
        else _on_link(name, link.circuit_bps, by_link.get(name, ()), state.installed, is_unknown=is_unknown)
        for name, link in plan.links.items()
    }


def _on_link(
    link: Hop, circuit_bps: int, crossing: Sequence[Entry], installed: Installed, *, is_unknown: bool
) -> Layers:
    meters = installed.meters.links[link].classes if installed.meters else {}
    queues = installed.queues.links[link].classes if installed.queues else {}
    meters_bps = {c: limits.meter_bps for c, limits in meters.items()}
    known_bps = dict.fromkeys(FlowClass, 0)
    for entry in crossing:
        known_bps[entry.flow.flow_class] += entry.frame_bps
    return Layers(
        dict.fromkeys(FlowClass, 0) | meters_bps if is_unknown else known_bps,
        meters_bps,
        {c: limits.queue_bps for c, limits in queues.items()},
        circuit_bps,
    )
