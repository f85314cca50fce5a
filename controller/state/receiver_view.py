"""What receivers take, which flows they hold, and who has what these do not use, for people. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from controller.plan.clock import Instant
from controller.plan.held import can_be_held
from controller.plan.intake import Intake
from controller.plan.plan import Plan, PlanInput
from controller.site import Site
from controller.state.desired import demand_now, desired_plan, hosts_absent
from controller.state.receivers import is_kept_in
from controller.state.value import SiteState
from topology.telemetry import StoreTelemetry


@dataclass(frozen=True, slots=True)
class ChangedFlow:
    """A flow that has another rate because receivers are slow: payload, bit/s, and what it would have if none was."""

    name: str
    planned_bps: int
    without_bps: int


@dataclass(frozen=True, slots=True)
class ReceiverView:
    """A store, or the receiver of a flow that is slow.

    Attributes:
        intake: what it takes.
        store: its name; empty for the receiver of a flow.
        flow: the flow's name; empty for a store.
        told: what its host has told of a store last.
        since_us: since when it is held, or is not, Unix time.
        holds: the flows that it holds.
    """

    intake: Intake
    store: str
    flow: str
    told: StoreTelemetry | None
    since_us: int
    holds: tuple[ChangedFlow, ...] = ()


@dataclass(frozen=True, slots=True)
class ReceiversView:
    """All of them, and the flows that have more because others are held."""

    receivers: tuple[ReceiverView, ...]
    gained: tuple[ChangedFlow, ...] = ()


def unheld_demand(site: Site, state: SiteState, now: Instant) -> PlanInput | None:
    """Return what the plan would be made of if nobody was held to what receivers take; None if nobody is."""
    if not site.hold_to_receivers or all(intake.drain_bps is None for intake, *_ in _known(site, state, now)):
        return None
    return demand_now(replace(site, hold_to_receivers=False), state.wished, state.reported, now)


def receivers_view(site: Site, state: SiteState, now: Instant, unheld: PlanInput | None) -> ReceiversView:
    """Return what receivers take at a moment: every store, and of flows the receivers that are slow.

    Args:
        site: where.
        state: at that moment; its ledger is not looked at, so it may go on meanwhile.
        now: the moment.
        unheld: as in :func:`unheld_demand`.
    """
    plan = state.desired.plan
    changed = () if unheld is None else _changed(site, state, unheld)
    less = {one.name: one for one in changed if one.planned_bps < one.without_bps}
    views = (
        ReceiverView(
            intake,
            store,
            flow,
            told,
            now.calendar_us - (now.elapsed_us - intake.since_us),
            tuple(less[name] for name in _sending(site, plan, intake.host, flow, told) if name in less)
            if intake.drain_bps is not None
            else (),
        )
        for intake, store, flow, told in _known(site, state, now)
    )
    return ReceiversView(tuple(views), tuple(one for one in changed if one.planned_bps > one.without_bps))


def _known(site: Site, state: SiteState, now: Instant) -> list[tuple[Intake, str, str, StoreTelemetry | None]]:
    """Return what is known of each receiver: what it takes, its store or its flow, and what its host has told of it."""
    hosts = state.reported.hosts
    absent = hosts_absent(site, state.reported, now.elapsed_us)  # what their stores take is not known any more
    there = [host for name, host in hosts.items() if name not in absent]
    stores = [(one.intake, name, "", one.told) for host in there for name, one in sorted(host.stores.items())]
    flows = [
        (one, "", name, None)
        for host in hosts.values()
        if host.connected
        for name, one in sorted(host.intakes.items())
        if one.drain_bps is not None
    ]
    return [*stores, *flows]


def _changed(site: Site, state: SiteState, unheld: PlanInput) -> tuple[ChangedFlow, ...]:
    """Return the flows that have another rate than in the plan that would be made if nobody was held."""
    plan = state.desired.plan
    free = desired_plan(site, state.installed, plan.epoch, unheld, plan.workings)
    without = {e.flow.name: e.payload_bps for e in free.entries}
    return tuple(
        ChangedFlow(e.flow.name, e.payload_bps, without.get(e.flow.name, 0))
        for e in plan.entries
        if e.payload_bps != without.get(e.flow.name, 0)
    )


def _sending(site: Site, plan: Plan, host: str, flow: str, told: StoreTelemetry | None) -> Iterable[str]:
    """Yield the names of the flows that a receiver may hold."""
    for e in plan.entries:
        is_there = site.network.machine(e.flow.target) == host
        is_of_store = told is not None and is_there and is_kept_in(e.flow, told, site.network)
        if e.flow.name == flow or (is_of_store and can_be_held(e.flow)):
            yield e.flow.name
