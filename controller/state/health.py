"""Why not all is well: whatever keeps a promise from being carried, or would keep the next one. Pure."""

from collections.abc import Iterator

from controller.plan.clock import Instant
from controller.site import Site
from controller.state.carried import announcement_obstacles, reservation_obstacles
from controller.state.moment import Moment
from controller.state.progress import fallen_back
from controller.state.value import SiteState


def troubles(site: Site, state: SiteState, connected: frozenset[int], now: Instant) -> tuple[str, ...]:
    """Return what is not well, each with where and why; nothing if all that is promised is carried.

    Args:
        site: where.
        state: as it is now.
        connected: the dpids of the switches that are connected.
        now: this moment.
    """
    found = (
        *_switches(site, state, connected),
        *_lines(site, state, now),
        *(f"{place}: {alarm.what}" for place, alarms in state.reported.alarms.items() for alarm in alarms),
        *_hosts(state),
        *_promises(site, state, now),
    )
    return tuple(dict.fromkeys(found))


def _switches(site: Site, state: SiteState, connected: frozenset[int]) -> Iterator[str]:
    """Yield who is not there, who should not be, and the ports that are not as the network has them."""
    wiring, switches = state.reported.wiring, site.network.switches
    for switch in switches:
        if switch.dpid not in connected:
            yield f"{switch.name}: is not connected, so nothing can be changed there"
        if switch.dpid in wiring.claims:
            address = wiring.claims[switch.dpid].address
            yield f"{switch.name}: another switch, at {address}, claims its datapath id {switch.dpid:016x}"
    for dpid, address in wiring.unknown.items():
        yield f"switch {dpid:016x}, at {address}, is not in the network"
    for hop, fault in wiring.faults.items():
        circuit = site.network.link(*hop).circuit
        if circuit not in site.redundant or not fault.is_down:
            yield str(fault)


def _lines(site: Site, state: SiteState, now: Instant) -> Iterator[str]:
    """Yield the circuits that are down and have no way round them."""
    for circuit in sorted(state.reported.lines.down(now.elapsed_us) - site.redundant):
        yield f"{circuit}: the line is down, and there is no way round it"


def _hosts(state: SiteState) -> Iterator[str]:
    """Yield the entries that run by their host's own congestion control: whatever they send, it is not the plan's."""
    for name, host in state.reported.hosts.items():
        if host.connected and host.telemetry is not None:
            for flow in sorted(fallen_back(host.telemetry.entries)):
                yield f"{name}: {flow} runs its own congestion control, not the plan: too much is lost"


def _promises(site: Site, state: SiteState, now: Instant) -> Iterator[str]:
    """Yield the promises that are not carried as they were made."""
    moment = Moment(site, state, now)
    for known in state.wished.ledger.carried():
        for why in reservation_obstacles(moment, known) or ():
            yield f"reservation {known.reservation_id}: {why}"
    for announcement in state.wished.ledger.shown_announcements().values():
        for why in announcement_obstacles(moment, announcement):
            yield f"announcement {announcement.announcement_id}: {why}"
