"""Which promises will be late as things are, which are late already, and why. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from controller.plan.announcements import Announcement
from controller.plan.clock import Instant
from controller.plan.deliveries import total_bytes
from controller.plan.failover import METER_STEP_BPS, late
from controller.plan.faults import in_the_way
from controller.plan.keys import FlowId
from controller.plan.paths import Path
from controller.plan.plan import Flow
from controller.site import Site
from controller.state.desired import hosts_absent
from controller.state.moment import Moment
from controller.state.receivers import why_held
from controller.state.value import SiteState
from topology.units import shown_size

TOLD_US = 2_500_000  # hosts tell each second what has arrived, and one telling may be under way


@dataclass(frozen=True, slots=True)
class Late:
    """A promise that the plan does not keep.

    Attributes:
        promised_us: by when it was to be done, Unix time.
        expected_us: when it will be done as planned, Unix time; None if nobody knows.
        why: what keeps it from its rate.
    """

    promised_us: int
    expected_us: int | None
    why: str


def late_promises(site: Site, state: SiteState, now: Instant) -> Mapping[str, Late]:
    """Return the announcements that will be late under the desired plan, by name.

    One that is on its way to the database is not looked at: no plan has it before. One that waits for something to send
    has its floor when it sends, unless its way has a fault, or has gone and what is left has less room.
    """
    ledger, plan = state.wished.ledger, state.desired.plan
    saved = ledger.shown_announcements()
    announcements = {name: known for name, known in ledger.announcements.items() if name in saved}
    if not announcements:
        return {}
    waiting = waiting_flows(Moment(site, state, now), announcements.values())
    awaited = (known for known in announcements.values() if known.awaited)
    found = late(awaited, plan, site.network.framing, now.calendar_us, waiting)
    return {
        name: Late(promised_us, expected_us, _why(site, state, name, now)) for name, promised_us, expected_us in found
    }


def waiting_flows(moment: Moment, announcements: Collection[Announcement]) -> frozenset[FlowId]:
    """Return the flows of announcements that have nothing to send and had their rate if they had, by name.

    They are planned for what they stand by with: that is no less than was promised. One whose way has a fault is none
    of them, nor one whose way is down where the others have no room for all that it was promised. One that has
    delivered all its part needs none, nor its host's agent.
    """
    site, state = moment.site, moment.state
    known_by = {flow.name: (known, flow) for known in announcements for flow in known.flows}
    done = frozenset(name for known in announcements for name in {f.name for f in known.flows} - known.awaited)
    return done | frozenset(
        name
        for host in {flow.machine for known in announcements for flow in known.flows}
        for e in state.desired.plan.of_host(host)
        for name in e.flow.names
        if name in known_by
        and state.reported.agent_of(e.flow).waits(e.flow)
        and not in_the_way(site.network, e.flow.path, state.installed.faults)
        and (e.flow.path in _ways(state, *known_by[name]) or _is_kept(moment, *known_by[name]))
    )


def _is_kept(moment: Moment, known: Announcement, flow: Flow) -> bool:
    """Return whether a flow that is led round a circuit has all that it was promised there, if it sends.

    Lanes have one promise: another of theirs may have more than it was promised, and this one less.
    """
    if not moment.state.desired.plan.down:
        return False
    floors_bps = zip(known.flows, known.floors_bps(moment.now.calendar_us), strict=True)
    names = known.awaited if known.lanes else {flow.name}
    own = [(one.name, bps) for one, bps in floors_bps if one.name in names]
    kept_bps = sum(moment.kept_bps.get(name, 0) for name, _ in own)
    return kept_bps > sum(bps for _, bps in own) - METER_STEP_BPS


def _ways(state: SiteState, known: Announcement, flow: Flow) -> tuple[Path, ...]:
    """Return the ways on which a flow has the room that was promised: of what draws on a reservation, all of its."""
    drawn_on = state.wished.ledger.reservations.get(known.pool)
    others = () if drawn_on is None else tuple((flow.host, *path, flow.target) for path in drawn_on.paths)
    return (flow.path, *others)


def overdue_promises(state: SiteState, now: Instant) -> Mapping[str, Late]:
    """Return the announcements whose promise is over while not all has arrived, by name: whoever is the cause of it.

    Where not every byte was counted, because an agent was started again or none is there, it may have arrived: nothing
    is said of it.
    """
    return {
        name: Late(known.promised_us, None, _lacks(state, known))
        for name, known in state.wished.ledger.announcements.items()
        if known.promised_us + TOLD_US < now.calendar_us
        and lacks_counted(state, known)
        and not any(one.is_least for one in known.delivered)
    }


def lacks_counted(state: SiteState, known: Announcement) -> bool:
    """Return whether some host that counts what it sends, for it has an agent, has yet to deliver its part."""
    return any(flow.machine in state.reported.hosts for flow in known.awaited_flows)


def _lacks(state: SiteState, known: Announcement) -> str:
    """Return how much of an announcement has arrived, and what is in the way of the rest, by sender."""
    own = (e.flow for flow in known.flows for e in state.desired.plan.of_host(flow.machine))
    entries = {name: flow.name for flow in own for name in flow.names}
    hindrances = (
        (flow.host, state.reported.agent_of(flow).delivers(entries.get(flow.name, flow.name), 0).hindrance)
        for flow in known.flows
    )
    ways = ", ".join(f"{host}: {why}" for host, why in hindrances if why is not None)
    arrived = f"{shown_size(total_bytes(known.delivered))} of {shown_size(known.size_bytes)} have arrived"
    return f"{arrived}; {ways}" if ways else arrived


def _why(site: Site, state: SiteState, name: str, now: Instant) -> str:
    known, absent = state.wished.ledger.announcements[name], hosts_absent(site, state.reported, now.elapsed_us)
    flows = known.awaited_flows
    gone = [f"{flow.host}: its agent is not connected" for flow in flows if flow.machine in absent]
    faults = [why for flow in flows for why in in_the_way(site.network, flow.path, state.installed.faults)]
    slow = [why for flow in flows if (why := why_held(flow, state.reported, site.network))]
    return "; ".join(dict.fromkeys((*gone, *faults, *slow))) or "what is left of the circuits has less room"
