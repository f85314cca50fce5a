"""Why not all is well: whatever keeps a promise from being carried, or would keep the next one. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from controller.plan.clock import Instant
from controller.site import Site
from controller.state.carried import announcement_obstacles, reservation_obstacles
from controller.state.desired import is_cut
from controller.state.moment import Moment
from controller.state.progress import fallen_back
from controller.state.value import SiteState


class TroubleKind(StrEnum):
    """What is not well."""

    SWITCH_GONE = "switch-gone"
    SWITCH_CLAIMED = "switch-claimed"
    SWITCH_UNKNOWN = "switch-unknown"
    PORT = "port"
    CIRCUIT = "circuit"
    ALARM = "alarm"
    CREDENTIALS = "credentials"
    PROVIDER = "provider"
    FALLBACK = "fallback"
    RESERVATION = "reservation"
    ANNOUNCEMENT = "announcement"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is not well.

    Attributes:
        kind: what kind of thing.
        place: whose it is: a switch, a circuit, a host, or the id of a promise.
        text: the whole of it, for people: where and why.
        circuit: whose port it is at; empty if it is at none of a circuit.
    """

    kind: TroubleKind
    place: str
    text: str
    circuit: str = ""

    def __str__(self) -> str:
        """Return it for people."""
        return self.text


def troubles(site: Site, state: SiteState, connected: frozenset[int], now: Instant) -> tuple[Trouble, ...]:
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
        *_alarms(site, state),
        *_providers(state),
        *_hosts(state),
        *_promises(site, state, now),
    )
    return tuple(dict.fromkeys(found))


def _switches(site: Site, state: SiteState, connected: frozenset[int]) -> Iterator[Trouble]:
    """Yield who is not there, who should not be, and the ports that are not as the network has them."""
    wiring, switches = state.reported.wiring, site.network.switches
    for switch in switches:
        name = switch.name
        if switch.dpid not in connected:
            why = f"{name}: is not connected, so nothing can be changed there"
            yield Trouble(TroubleKind.SWITCH_GONE, name, why)
        if switch.dpid in wiring.claims:
            address = wiring.claims[switch.dpid].address
            why = f"{name}: another switch, at {address}, claims its datapath id {switch.dpid:016x}"
            yield Trouble(TroubleKind.SWITCH_CLAIMED, name, why)
    for dpid, address in wiring.unknown.items():
        why = f"switch {dpid:016x}, at {address}, is not in the network"
        yield Trouble(TroubleKind.SWITCH_UNKNOWN, f"{dpid:016x}", why)
    for hop, fault in wiring.faults.items():
        circuit = site.network.link(*hop).circuit
        if circuit not in site.redundant or not fault.is_down:
            yield Trouble(TroubleKind.PORT, hop.tail, str(fault), circuit or "")


def _lines(site: Site, state: SiteState, now: Instant) -> Iterator[Trouble]:
    """Yield the circuits that are down and have no way round them."""
    lines = state.reported.lines
    for circuit in sorted(lines.down(now.elapsed_us)):
        if is_cut(site, state.wished, lines, circuit, now):
            why = f"{circuit}: the line is down, and there is no way round it"
            yield Trouble(TroubleKind.CIRCUIT, circuit, why)


def _alarms(site: Site, state: SiteState) -> Iterator[Trouble]:
    """Yield what audits have left for a person."""
    circuits = {(tail, link.port_name): link.circuit or "" for tail, _, link in site.network.circuit_links}
    for place, alarms in state.reported.alarms.items():
        for alarm in alarms:
            circuit = circuits.get((place, alarm.port_name), "")
            yield Trouble(TroubleKind.ALARM, place, f"{place}: {alarm.what}", circuit)


def _providers(state: SiteState) -> Iterator[Trouble]:
    """Yield the providers that do not answer, or do not accept our credentials."""
    for circuit, trouble in state.reported.providers.items():
        kind = TroubleKind.CREDENTIALS if trouble.is_denied else TroubleKind.PROVIDER
        yield Trouble(kind, circuit, f"{circuit}: its provider: {trouble.what}", circuit)


def _hosts(state: SiteState) -> Iterator[Trouble]:
    """Yield the entries that run by their host's own congestion control: whatever they send, it is not the plan's."""
    for name, host in state.reported.hosts.items():
        if host.connected and host.telemetry is not None:
            for flow in sorted(fallen_back(host.telemetry.entries)):
                why = f"{name}: {flow} runs its own congestion control, not the plan: too much is lost"
                yield Trouble(TroubleKind.FALLBACK, name, why)


def _promises(site: Site, state: SiteState, now: Instant) -> Iterator[Trouble]:
    """Yield the promises that are not carried as they were made."""
    moment = Moment(site, state, now)
    for known in state.wished.ledger.carried():
        for why in reservation_obstacles(moment, known) or ():
            name = known.reservation_id
            yield Trouble(TroubleKind.RESERVATION, name, f"reservation {name}: {why}")
    for announcement in state.wished.ledger.shown_announcements().values():
        for why in announcement_obstacles(moment, announcement):
            name = announcement.announcement_id
            yield Trouble(TroubleKind.ANNOUNCEMENT, name, f"announcement {name}: {why}")
