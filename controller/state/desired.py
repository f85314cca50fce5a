"""The plan that is desired: a pure function of the site, of what was wished and of what was reported."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import repeat
from operator import attrgetter, is_

from controller.plan.clock import Instant
from controller.plan.deliveries import total_bytes
from controller.plan.failover import crossed, has_way_round, without
from controller.plan.faults import Faults, planned_beside
from controller.plan.flows import away, flow_on, standing_by
from controller.plan.held import StorePromise, Where, held
from controller.plan.keys import FlowId
from controller.plan.lines import Lines
from controller.plan.plan import Flow, Plan, PlanInput
from controller.plan.planning import no_workings
from controller.plan.reservations import Reservation
from controller.plan.workings import Workings
from controller.site import Site
from controller.state.installed import Installed
from controller.state.receivers import holding_receivers
from controller.state.reported import NEVER_US, NO_AGENT, Reported
from controller.state.wished import Wished
from topology.network import Hop
from topology.protocol import Tail

_TAIL = attrgetter("tail")


@dataclass(frozen=True, slots=True)
class Basis:
    """What a plan is made of, by versions: while it is the same, so is the plan.

    Attributes:
        wished: the version of what was wished.
        demands: the version of what hosts want to send.
        bought_bps: what each circuit that is bought at need carries.
        down: the circuits that nothing is sent by.
        faults: what cannot be changed now.
        absent: the hosts that are not there.
        measured_us: by circuit, the delay that was measured.
    """

    wished: tuple[int, int]
    demands: int
    bought_bps: tuple[int, ...]
    down: frozenset[str]
    faults: Faults = field(default_factory=dict)
    absent: frozenset[str] = frozenset()
    measured_us: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Desired:
    """The plan that the layers are brought to.

    Attributes:
        plan: it.
        since_us: since when it is desired, elapsed time.
        basis: what it was made of.
        first_epochs: by reservation, the first epoch it is in.
        prepared: by circuit, the plan for the case that it dies next.
        prepared_for: what those are made of; None before the first.
    """

    plan: Plan
    since_us: int
    basis: Basis
    first_epochs: Mapping[str, int] = field(default_factory=dict)
    prepared: Mapping[str, Plan] = field(default_factory=dict)
    prepared_for: Basis | None = None

    def becomes(self, plan: Plan, elapsed_us: int) -> "Desired":
        """Return it with another plan."""
        return replace(self, plan=plan, since_us=elapsed_us)

    @property
    def next_epoch(self) -> int:
        """The epoch of the plan after this one; the odd one between them is the way from one to the other."""
        return self.plan.epoch + 2


def circuits_down(site: Site, wished: Wished, reported: Reported, now: Instant) -> frozenset[str]:
    """Return the circuits that are down and have a way round them. Flows of others wait.

    Down is one whose line is dead, and one that is to carry nothing now, or before a plan made now has shrunk.
    """
    closed = wished.ledger.closed(now.calendar_us)
    return site.redundant & (reported.lines.down(now.elapsed_us) | closed)


def lines_used(site: Site, wished: Wished, reported: Reported, now: Instant) -> Lines:
    """Return the lines, where those that return and to whose ends nothing else leads are used at once.

    The first to return is looked at first, so that the next one has a way round it. Flows of a circuit that never has
    one were not taken away, so it is left to prove itself.
    """
    lines, closed = reported.lines, wished.ledger.closed(now.calendar_us)
    for circuit in lines.returning(now.elapsed_us):
        if circuit in site.redundant - closed and is_cut(site, wished, lines, circuit, now):
            lines = lines.trusted(circuit, now.elapsed_us)
    return lines


def is_cut(site: Site, wished: Wished, lines: Lines, circuit: str, now: Instant) -> bool:
    """Return whether nothing leads round a circuit that is down: what does is down too, worked on, or not bought."""
    idle = frozenset(name for name in wished.purchases if not wished.bought_bps(name, now.calendar_us))
    unused = lines.down(now.elapsed_us) | wished.ledger.closed(now.calendar_us) | idle
    return not has_way_round(site.network, circuit, unused)


def basis(site: Site, wished: Wished, reported: Reported, installed: Installed, now: Instant) -> Basis:
    """Return what the plan would be made of now."""
    bought_bps = tuple(wished.bought_bps(circuit, now.calendar_us) for circuit in wished.purchases)
    down = circuits_down(site, wished, reported, now)
    absent = hosts_absent(site, reported, now.elapsed_us)
    measured_us = site.network.measured_us
    return Basis(wished.version, reported.demands, bought_bps, down, installed.faults, absent, measured_us)


def hosts_absent(site: Site, reported: Reported, elapsed_us: int) -> frozenset[str]:
    """Return the hosts that have been away for a lease: what they were given others may use until they are back."""
    return reported.hosts.absent(elapsed_us, site.lease_ms * 1000).names


def absent_from_us(site: Site, reported: Reported, elapsed_us: int) -> int | None:
    """Return when the next host that is away will be absent, elapsed time; None if none is about to."""
    until_us = reported.hosts.absent(elapsed_us, site.lease_ms * 1000).until_us
    return None if until_us == NEVER_US else until_us


def demand_now(site: Site, wished: Wished, reported: Reported, now: Instant) -> PlanInput:
    """Return what the plan is made of now."""
    down = circuits_down(site, wished, reported, now)
    return plan_input(site, wished, reported, down, now.calendar_us, hosts_absent(site, reported, now.elapsed_us))


def desired_plan(
    site: Site, installed: Installed, epoch: int, demand: PlanInput, before: Workings | None = None
) -> Plan:
    """Return the plan for a demand, beside what cannot be changed now; worked out from another of these delays."""
    start = before if before is not None and before.network is site.network else no_workings(site.network, site.policy)
    return planned_beside(epoch, start, demand, installed.faults, installed.in_force)


def plan_input(
    site: Site,
    wished: Wished,
    reported: Reported,
    down: frozenset[str],
    now_us: int,
    absent: frozenset[str] = frozenset(),
) -> PlanInput:
    """Return what a plan is made of while some circuits are down, and some hosts absent."""
    demand = wished.ledger.demand(
        site.standing,
        now_us,
        lambda known: _flow(site, wished, known, down, now_us),
        lambda known: path_now(site, wished, known, down, now_us),
    )
    capacity_bps = {**demand.capacity_bps}
    for tail, head, link in site.network.circuit_links if wished.purchases else ():
        if link.circuit and link.circuit in wished.purchases:
            hop, bought_bps = Hop(tail, head), wished.bought_bps(link.circuit, now_us)
            capacity_bps[hop] = min(bought_bps, capacity_bps.get(hop, bought_bps))
    flows = tuple(
        _as_known(f, reported, absent) if f.standby_bps or (absent and f.machine in absent) else f for f in demand.flows
    )
    if site.hold_to_receivers:
        flows = held(
            flows,
            holding_receivers(flows, reported, site.network, absent),
            left_bytes(wished),
            Where(site.network, site.policy),
            store_promises(wished, now_us),
        )
    flows = with_tails(site, reported, flows)
    whole = PlanInput(flows, capacity_bps, demand.reserved_bps)
    if not down:
        return whole
    promised_bps = {
        before.name: before.floor_bps
        for before, now in zip(demand.flows, flows, strict=True)
        if before.floor_bps != now.floor_bps
    }
    return without(site.network, site.policy, whole, down, wished.ledger.asked_of_ways(), promised_bps)


def with_tails(site: Site, reported: Reported, flows: tuple[Flow, ...]) -> tuple[Flow, ...]:
    """Return flows whose tail is coded where one is wanted and the agents of both ends offer it, and else plain."""
    coded = {name for name, policy in site.policy.classes.items() if policy.tail is Tail.CODED}
    if not coded and all(map(is_, map(_TAIL, flows), repeat(Tail.PLAIN))):
        return flows
    return tuple(
        replace(flow, tail=Tail.CODED if _codes(site, reported, flow) else Tail.PLAIN)
        if flow.tail is Tail.CODED or flow.flow_class in coded
        else flow
        for flow in flows
    )


def _codes(site: Site, reported: Reported, flow: Flow) -> bool:
    """Return whether the agents of both ends of a flow offer coded tails."""
    target = site.network.host(flow.target)
    receiver = reported.hosts.get(target.interface_of or target.name, NO_AGENT)
    return receiver.codes_tails and reported.agent_of(flow).codes_tails


def _as_known(flow: Flow, reported: Reported, absent: frozenset[str]) -> Flow:
    """Return a flow as it is planned while its host is absent, or while it has nothing to send."""
    if flow.machine in absent:
        return away(flow)
    return standing_by(flow) if reported.agent_of(flow).waits(flow) else flow


def left_bytes(wished: Wished) -> dict[FlowId, int]:
    """Return what each announced flow has yet to deliver of what was announced; not of one that has delivered all."""
    found = dict[FlowId, int]()
    for known in wished.ledger.announcements.values():
        found |= known.left_bytes()
    return found


def store_promises(wished: Wished, now_us: int) -> dict[FlowId, StorePromise]:
    """Return what is promised of what each announced flow sends to a store; nothing of those without such a promise."""
    found = {}
    for known in wished.ledger.announcements.values():
        if known.store is None or (stored_us := known.stored_us) is None:
            continue
        is_due = known.floor_bps(now_us) > 0
        is_under_way = now_us < stored_us and total_bytes(known.delivered) > 0
        one = StorePromise(known.store, stored_us, is_due, is_under_way)
        found.update(dict.fromkeys((flow.name for flow in known.flows), one))
    return found


def path_now(site: Site, wished: Wished, known: Reservation, down: frozenset[str], now_us: int) -> tuple[str, ...]:
    """Return the path a reservation takes now: its first that is up; if the lines of all are down its first.

    None of a path whose circuits are bought at need and not up, or are to carry nothing and nothing leads round them:
    empty if all its paths are such.
    """
    shut = wished.ledger.closed(now_us) - down
    open_paths = (path for path in known.paths if not crossed(site.network, path, shut))
    bought = [path for path in open_paths if not circuits_not_up(site, wished, path, now_us)]
    whole = (path for path in bought if not crossed(site.network, path, down))
    return next(whole, bought[0] if bought else ())


def circuits_not_up(site: Site, wished: Wished, path: tuple[str, ...], now_us: int) -> list[str]:
    """Return the circuits of a path that are bought at need and are not up."""
    names = site.network.circuits_along(path) if wished.purchases else ()
    return [name for name in names if name in wished.purchases and not wished.bought_bps(name, now_us)]


def _flow(site: Site, wished: Wished, known: Reservation, down: frozenset[str], now_us: int) -> Flow | None:
    """Return the flow of a reservation between two hosts; None for one between sites, or without a circuit."""
    path = path_now(site, wished, known, down, now_us)
    if not path or not {known.a_end, known.z_end} <= site.network.host_names:
        return None
    flow = flow_on(site.network, known.flow_name, known.flow_class, path)
    return replace(flow, wanted_bps=known.rate_bps, floor_bps=known.rate_bps, selector=known.selector)
