"""Whether a promise is carried by every layer, and if not, what lacks. Pure."""

from collections.abc import Iterable

from controller.plan.announcements import Announcement
from controller.plan.failover import carries, crossed, late
from controller.plan.faults import in_the_way
from controller.plan.lifecycle import ENDED, ReservationState
from controller.plan.paths import Path
from controller.plan.purchases import PurchaseState
from controller.plan.reservations import MAX_TIME_US, Reservation
from controller.site import Site
from controller.state.desired import circuits_not_up
from controller.state.lateness import waiting_flows
from controller.state.moment import Circumstances, Moment
from controller.state.receivers import why_held
from controller.state.value import SiteState
from topology.network import hops
from topology.units import shown_time


def lacks(moment: Moment, known: Reservation) -> str:
    """Return what keeps a reservation whose time it is from being carried; empty if nothing."""
    state = moment.state
    if known.state is ReservationState.ACTIVE and moment.is_starting:
        return ""
    if found := (*_in_the_way(moment, known), *_unchangeable(moment, known)):
        return found[0]
    if state.installed.in_force is None and state.installed.error:
        return state.installed.error
    first_epoch = state.desired.first_epochs.get(known.reservation_id, state.desired.next_epoch)
    if state.installed.hosts_epoch < first_epoch:
        return "the plan with it is not in force yet"
    absent = _absent(moment, (known.a_end, known.z_end))
    return absent[0] if absent else ""


def unsettled(moment: Moment) -> bool:
    """Return whether the state of a reservation is not what the layers say."""
    return any(
        bool(lacks(moment, known)) is (known.state is ReservationState.ACTIVE)
        for known in moment.state.wished.ledger.in_plan()
    )


class SettledWatch:
    """Says the same as :func:`unsettled`, and looks at the reservations again only in other circumstances."""

    def __init__(self) -> None:
        self._seen: Circumstances | None = None
        self._unsettled = False

    def unsettled(self, moment: Moment) -> bool:
        """Return whether the state of a reservation is not what the layers say."""
        circumstances = moment.circumstances()
        if not circumstances.are(self._seen):
            self._seen, self._unsettled = circumstances, unsettled(moment)
        return self._unsettled


def reservation_obstacles(moment: Moment, known: Reservation) -> tuple[str, ...] | None:
    """Return why a reservation cannot be carried at this moment; none of them if it can.

    None if it is not its time, or only held, which is no promise: no plan has it.
    """
    if known.state in {*ENDED, ReservationState.HELD} or not known.start_us <= moment.now.calendar_us < known.end_us:
        return None
    site, state = moment.site, moment.state
    path, found = moment.path_of(known) or known.path, _in_the_way(moment, known)
    return _each_once(
        (
            *found,
            *_unable(site, state, path),
            *_absent(moment, (known.a_end, known.z_end)),
        )
    )


def announcement_obstacles(moment: Moment, known: Announcement) -> tuple[str, ...]:
    """Return why what was announced cannot be carried at this moment as it was promised; none of them if it can.

    What has arrived needs nothing any more, whatever becomes of who has sent it.
    """
    site, state, found = moment.site, moment.state, list[str]()
    flows = known.awaited_flows
    ways = [moment.way_of(flow.machine, flow.name) for flow in flows]
    for flow, way in zip(flows, ways, strict=True):
        path = way or flow.path
        down = moment.down if known.floor_bps(moment.now.calendar_us) else moment.dead  # its pause is as promised
        found += _not_used(moment, crossed(site.network, path, down))
        found += _at_ports(site, state, path)
        found += _unable(site, state, path)
        found += _absent(moment, (flow.host, flow.target))
    waiting = waiting_flows(moment, [known])
    if any(ways) and any(late([known], state.desired.plan, site.network.framing, moment.now.calendar_us, waiting)):
        slow = [why for flow in flows if (why := why_held(flow, state.reported, site.network))]
        found += slow or ["the plan has less for it than was promised"]
    return _each_once(found)


def _in_the_way(moment: Moment, known: Reservation) -> tuple[str, ...]:
    """Return what of a reservation's path is missing; nothing if it is carried another way in full."""
    site, state, down = moment.site, moment.state, moment.down
    network, path = site.network, moment.path_of(known)
    if not path:
        names = circuits_not_up(site, state.wished, known.path, moment.now.calendar_us)
        bought = [p for name in names for p in state.wished.purchases[name].values()]
        purchases = [p for p in bought if p.state is not PurchaseState.DROPPED]
        states = ", ".join(f"{p.state} {p.reason}".strip() for p in purchases) or "not bought"
        return (f"{', '.join(names)}: {states}",)
    enough, dead = _ways_in_full(moment, known), crossed(network, path, down)
    is_known = moment.is_current or not moment.dead.isdisjoint(dead)  # else what closes has yet to be planned for
    if dead and not enough and is_known:
        return (*_not_used(moment, dead), *_at_ports(site, state, path))
    between_hosts = {known.a_end, known.z_end} <= network.host_names
    current = between_hosts and not enough and moment.is_current
    less = ("the plan has less for it than it is promised",) if current else ()
    return (*_at_ports(site, state, enough[0] if dead and enough else path), *less)


def is_cut_off(moment: Moment, known: Reservation) -> bool:
    """Return whether a reservation's way is down, and the plan, made with it, leads it by no other in full."""
    dead = crossed(moment.site.network, moment.path_of(known), moment.down)
    return bool(dead) and moment.is_current and not _ways_in_full(moment, known)


def _ways_in_full(moment: Moment, known: Reservation) -> list[Path]:
    """Return the ways that the plan has for a reservation between hosts, at its rate."""
    network, name = moment.site.network, known.flow_name
    own = moment.state.desired.plan.of_host(network.machine(known.a_end))
    return [e.flow.path for e in own if carries(e, name, known.rate_bps, network, moment.down)]


def _not_used(moment: Moment, circuits: tuple[str, ...]) -> tuple[str, ...]:
    """Return why nothing goes by some circuits."""
    dead, closed = ([n for n in circuits if (n in moment.dead) is is_dead] for is_dead in (True, False))
    until_us = moment.state.wished.ledger.schedules.opens_us(closed, moment.now.calendar_us)
    when = "now" if until_us >= MAX_TIME_US else f"until {shown_time(until_us)}"
    found = ((dead, "the line is down"), (closed, f"it is to carry nothing {when}"))
    return tuple(f"{', '.join(names)}: {why}" for names, why in found if names)


def _unchangeable(moment: Moment, known: Reservation) -> tuple[str, ...]:
    """Return the faults in the way that a reservation takes."""
    path = moment.way_of(known.a_end, known.flow_name) or moment.path_of(known)
    return in_the_way(moment.site.network, path, moment.state.installed.faults)


def _at_ports(site: Site, state: SiteState, path: Path) -> tuple[str, ...]:
    """Return what is wrong with the ports of a path, either way."""
    reported, found = state.reported, list[str]()
    for hop in (*hops(path), *hops(path[::-1])):
        if hop in reported.wiring.faults:
            found.append(str(reported.wiring.faults[hop]))
        port_name = site.network.link(*hop).port_name
        found += [f"{hop.tail}: {a.what}" for a in reported.alarms.get(hop.tail, ()) if a.port_name == port_name]
    return tuple(found)


def _unable(site: Site, state: SiteState, path: Path) -> tuple[str, ...]:
    """Return what keeps the switches of a path from being told of anything new."""
    if state.installed.meters is None or state.installed.queues is None:
        return ("no plan is in force in the switches yet",)
    wiring = state.reported.wiring
    gone = [s.name for s in site.network.switches if s.name in path and s.dpid in wiring.gone]
    silent = [f"{place}: {a.what}" for place in path for a in state.reported.alarms.get(place, ()) if a.is_silent]
    others = {place: fault for place, fault in state.installed.faults.items() if not fault.is_gone}
    return (*(f"{name}: is not connected" for name in gone), *silent, *in_the_way(site.network, path, others))


def _absent(moment: Moment, ends: tuple[str, ...]) -> tuple[str, ...]:
    """Return which hosts among some ends, which may be interfaces of theirs, have no agent now."""
    hosts, machines = moment.state.reported.hosts, map(moment.site.network.machine, ends)
    return tuple(f"{one}: its agent is not connected" for one in machines if one in hosts and not hosts[one].connected)


def _each_once(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))
