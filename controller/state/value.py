"""The one value that holds all parts, and what becomes of it. Pure."""

from dataclasses import dataclass, replace

from controller.plan.clock import Instant
from controller.plan.failover import carries, crossed
from controller.plan.leading import VOUCHED_US
from controller.plan.leases import Leases
from controller.plan.lines import Lines, LineState
from controller.plan.plan import Flow, Plan
from controller.plan.reservations import MAX_TIME_US, Reservation
from controller.site import Site
from controller.state.desired import (
    Basis,
    Desired,
    absent_from_us,
    basis,
    circuits_down,
    demand_now,
    desired_plan,
    lines_used,
    plan_input,
)
from controller.state.installed import Installed
from controller.state.reported import Hosts, HostState, Reported
from controller.state.wished import Wished


@dataclass(frozen=True, slots=True)
class Unkept:
    """How many promises are said not to be kept, as long as nothing else is said of them.

    Attributes:
        late: announcements that are late, or will be.
        unkeepable: reservations that the calendar has no room for.
    """

    late: int = 0
    unkeepable: int = 0


@dataclass(frozen=True, slots=True)
class SiteState:
    """All that changes while the controller runs.

    Attributes:
        wished: what was wished.
        reported: what was reported.
        installed: what is in force.
        desired: the plan that the layers are brought to.
        started_us: when this process began, elapsed time.
        sleeping_until_us: when the clock is looked at next without being woken, elapsed time.
        stopping: whether the threads are to end.
        stands_by: whether another controller of a pair leads; then nobody is granted anything.
        own_epoch: of one that has taken over, what hosts go on with is granted under this number at least, which is
            above every one of the controllers before: so they hear no more what one of those says; else 0.
        unkept: what was said of promises that are not kept.
    """

    wished: Wished
    reported: Reported
    installed: Installed
    desired: Desired
    started_us: int
    sleeping_until_us: int = 0
    stopping: bool = False
    stands_by: bool = False
    own_epoch: int = 0
    unkept: Unkept = Unkept()


def first_state(site: Site, now: Instant, term: int, *, stands_by: bool = False) -> SiteState:
    """Return the state of a controller that has just begun, under a term, and knows nothing yet.

    Its epochs begin at twice the term, above those of every controller before it: agents obey no lower ones.
    """
    wished = Wished(site.ledger(), purchases={circuit: {} for circuit in site.lead_us})
    # What it acts on may be what an earlier controller granted.
    unknown = HostState(away_us=now.elapsed_us, unknown_until_us=now.elapsed_us + site.lease_ms * 1000)
    hosts = Hosts(dict.fromkeys(site.network.agents, unknown))
    reported = Reported(hosts, lines=Lines(site.return_after_us))
    plan = desired_plan(site, Installed(), 2 * term, demand_now(site, wished, reported, now))
    made_of = basis(site, wished, reported, Installed(), now)
    return SiteState(wished, reported, Installed(), Desired(plan, 0, made_of), now.elapsed_us, stands_by=stands_by)


def leading(site: Site, state: SiteState, now: Instant, term: int) -> SiteState:
    """Return the state of a controller that stood by and leads from now on, under a term.

    It is as one that has just begun, but for what it has read and heard already: no plan is in force that it knows of,
    and hosts may be acting on what was granted before.
    """
    until_us = now.elapsed_us + site.lease_ms * 1000 + VOUCHED_US  # who led before may have repeated for so long
    hosts = {
        name: host._replace(leases=Leases(), confirmed_epoch=0, unknown_until_us=until_us)
        for name, host in state.reported.hosts.items()
    }
    reported = replace(state.reported, hosts=Hosts(hosts), demands=state.reported.demands + 1)
    desired = state.desired.becomes(replace(state.desired.plan, epoch=2 * term), now.elapsed_us)
    mine = replace(state, started_us=now.elapsed_us, stands_by=False, own_epoch=2 * term - 1)
    return replace(mine, reported=reported, desired=desired)


def must_replan(site: Site, state: SiteState, now: Instant, *, beside_hosts: bool = False) -> bool:
    """Return whether anything has changed that the plan is made of; ``beside_hosts``: but which hosts are there."""
    known, made_of = state.desired.basis, basis(site, state.wished, state.reported, state.installed, now)
    if beside_hosts:
        made_of = replace(made_of, demands=known.demands, absent=known.absent)
    return known != made_of


def must_prepare(site: Site, state: SiteState) -> bool:
    """Return whether the plans for a circuit's death go with an earlier plan."""
    return bool(site.redundant) and state.desired.prepared_for != state.desired.basis


def replanned(site: Site, state: SiteState, now: Instant) -> SiteState:
    """Return it with the plan for what there is now, if that is another; and with demand of flows in it alone.

    A flow that has no part in a plan is watched no more, so it is not known to want anything: that is planned for too.
    """
    desired, wished, reported = state.desired, state.wished, state.reported
    made_of = basis(site, wished, reported, state.installed, now)
    if made_of == desired.basis:
        return state
    demand = demand_now(site, wished, reported, now)
    plan = desired_plan(site, state.installed, desired.next_epoch, demand, desired.plan.workings)
    after = _with_plan(site, state, plan, made_of, now)
    return after if after.reported is reported else replanned(site, after, now)


def _with_plan(site: Site, state: SiteState, plan: Plan, made_of: Basis, now: Instant) -> SiteState:
    """Return it with a plan as the desired one, if it is another, and with demand of flows in that alone."""
    desired, reported = state.desired, state.reported
    if replace(plan, epoch=desired.plan.epoch) != desired.plan:
        desired = desired.becomes(plan, now.elapsed_us)
    closed = state.wished.ledger.closed(now.calendar_us)
    carried = (known for known in state.wished.ledger.carried() if not _is_left_out(site, plan, known, closed))
    running = (known.reservation_id for known in carried)
    firsts = {name: desired.first_epochs.get(name, desired.plan.epoch) for name in running}
    watched = reported.with_watched((e.flow.machine, e.flow.name) for e in plan.entries if e.standby)
    if watched is not reported:
        reported = replace(watched, demands=watched.demands + 1)
    return replace(state, reported=reported, desired=replace(desired, basis=made_of, first_epochs=firsts))


def _is_left_out(site: Site, plan: Plan, known: Reservation, closed: frozenset[str]) -> bool:
    """Return whether all paths of a reservation have circuits that are to carry nothing, and no other has its rate."""
    if not closed or not all(crossed(site.network, path, closed) for path in known.paths):
        return False
    own = plan.of_host(site.network.machine(known.a_end))
    return not any(carries(e, known.flow_name, known.rate_bps, site.network, closed) for e in own)


def with_lines_noted(site: Site, state: SiteState, now: Instant) -> tuple[SiteState, tuple[tuple[str, LineState], ...]]:
    """Return it after lines that have died since the last call were acted on; and those, and lines used again.

    A plan that was prepared for a death is put in force only if exactly the circuits that it was made for are down,
    beside the faults that it was made beside: another would lead flows over a circuit that died together with this one,
    or change what cannot be changed. The clock's next look makes one that does not.
    """
    lines, news = lines_used(site, state.wished, state.reported, now).noted(now.elapsed_us)
    desired, noted = state.desired, replace(state, reported=replace(state.reported, lines=lines))
    died, made_of = [circuit for circuit, line in news if line is LineState.DOWN], desired.prepared_for
    if not died or made_of is None or made_of.faults != state.installed.faults:
        return noted, news
    down = circuits_down(site, noted.wished, noted.reported, now)
    ready = next((plan for plan in map(desired.prepared.get, died) if plan is not None and plan.down == down), None)
    if ready is None:
        return noted, news
    # its own workings were not kept, and any other plan's do
    ready = replace(ready, epoch=desired.next_epoch, workings=desired.plan.workings)
    noted = replace(noted, desired=replace(desired, prepared={}))
    return _with_plan(site, noted, ready, replace(made_of, down=down), now), news


def due_us(site: Site, state: SiteState, now: Instant) -> int:
    """Return when the clock has something to do next, elapsed time."""
    in_calendar_us, proved_us = state.wished.ledger.due_us(), state.reported.lines.due_us(now.elapsed_us)
    kept_us = None if in_calendar_us is None else in_calendar_us - now.calendar_us + now.elapsed_us
    given_up_us = absent_from_us(site, state.reported, now.elapsed_us)
    return min((at_us for at_us in (kept_us, proved_us, given_up_us) if at_us is not None), default=MAX_TIME_US)


def flows(site: Site, state: SiteState, now: Instant) -> tuple[Flow, ...]:
    """Return every flow in the plan, or that would be if there were anything for it."""
    down = circuits_down(site, state.wished, state.reported, now)
    return plan_input(site, state.wished, state.reported, down, now.calendar_us).flows
