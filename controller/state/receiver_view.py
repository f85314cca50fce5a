"""What receivers take, which flows they hold, and who has what these do not use, for people. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from controller.plan.clock import Instant
from controller.plan.held import can_be_held
from controller.plan.intake import Intake
from controller.plan.plan import Plan
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


def receivers_view(site: Site, state: SiteState, now: Instant) -> ReceiversView:
    """Return what receivers take at a moment: every store, and of flows the receivers that are slow."""
    hosts, plan = state.reported.hosts, state.desired.plan
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
    found = [*stores, *flows]
    is_any = any(intake.drain_bps is not None for intake, *_ in found)
    changed = _changed(site, state, now) if is_any and site.hold_to_receivers else ()
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
        for intake, store, flow, told in found
    )
    return ReceiversView(tuple(views), tuple(one for one in changed if one.planned_bps > one.without_bps))


def _changed(site: Site, state: SiteState, now: Instant) -> tuple[ChangedFlow, ...]:
    """Return the flows that have another rate than in the plan that would be made if nobody was held."""
    plan = state.desired.plan
    nobody_held = replace(site, hold_to_receivers=False)
    demand = demand_now(nobody_held, state.wished, state.reported, now)
    free = desired_plan(nobody_held, state.installed, plan.epoch, demand)
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
