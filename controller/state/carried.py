"""Whether a reservation is carried by every layer, and if not, what lacks. Pure."""

from controller.plan.clock import Instant
from controller.plan.failover import carries, crossed
from controller.plan.lifecycle import ReservationState
from controller.plan.reservations import Reservation
from controller.site import Site
from controller.state.desired import circuits_not_up, flow_name, path_now
from controller.state.value import SiteState

STARTING_US = 30_000_000  # switches and agents call again within seconds of a controller's start


def lacks(site: Site, state: SiteState, known: Reservation, now: Instant) -> str:
    """Return what keeps a reservation whose time it is from being carried; empty if nothing."""
    if known.state is ReservationState.ACTIVE and _starting(state, now.elapsed_us):
        return ""
    if cut := _cut(site, state, known, now):
        return cut
    if state.installed.error:
        return state.installed.error
    first_epoch = state.desired.first_epochs.get(known.reservation_id, state.desired.next_epoch)
    if state.installed.hosts_epoch < first_epoch:
        return "the plan with it is not in force yet"
    for end in (known.a_end, known.z_end):
        host = state.reported.hosts.get(end)
        if host is not None and not host.connected:
            return f"{end}: its agent is not connected"
    return ""


def unsettled(site: Site, state: SiteState, now: Instant) -> bool:
    """Return whether the state of a reservation is not what the layers say."""
    return any(
        bool(lacks(site, state, known, now)) is (known.state is ReservationState.ACTIVE)
        for known in state.wished.ledger.in_plan()
    )


def _starting(state: SiteState, elapsed_us: int) -> bool:
    """Return whether this process has not had the time yet to find its switches and agents, which go on as granted."""
    return not state.installed.hosts_epoch and elapsed_us < state.started_us + STARTING_US


def _cut(site: Site, state: SiteState, known: Reservation, now: Instant) -> str:
    """Return what of a reservation's path is missing; empty if nothing, or if it is carried another way in full."""
    network, down = site.network, state.reported.lines.down(now.elapsed_us)
    path = path_now(site, state.wished, known, down, now.calendar_us)
    if not path:
        names = circuits_not_up(site, state.wished, known.path, now.calendar_us)
        purchases = [p for name in names for p in state.wished.purchases[name].values()]
        states = ", ".join(f"{p.state} {p.reason}".strip() for p in purchases) or "not bought"
        return f"{', '.join(names)}: {states}"
    own = [e for e in state.desired.plan.entries if e.flow.name == flow_name(known)]
    led_round = any(carries(e, known.rate_bps, network, down) for e in own)
    dead = crossed(network, path, down)
    return f"{', '.join(dead)}: the line is down" if dead and not led_round else ""
