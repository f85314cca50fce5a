"""How a virtual site begins: the first plan in force, every agent connected, and the promises that there are. Pure."""

from dataclasses import replace

from controller.plan.clock import Instant
from controller.site import Site
from controller.state.desired import circuits_down, demand_now, left_bytes
from controller.state.installed import Installed
from controller.state.reported import Hosts, HostState
from controller.state.value import SiteState, first_state
from controller.whatif.awaited import Delays
from controller.whatif.begun import Begun
from controller.whatif.plans import Plans

TERM = 1  # the controller's first


def beginning(site: Site, begun: Begun, delays: Delays, plans: Plans, now: Instant) -> SiteState:
    """Return the state of a site that begins.

    Args:
        site: what does not change.
        begun: the promises that there are already.
        delays: how long what is decided takes.
        plans: what plans are made by.
        now: when it begins.
    """
    state = first_state(site, now, TERM)
    hosts = {n: HostState(connected=True, stores=begun.stores.get(n, {})) for n in state.reported.hosts}
    state = _going_on(site, begun, state, hosts, now)
    plan = plans.plan(demand_now(site, state.wished, state.reported, now), state.desired.plan.epoch)
    for name, known in hosts.items():
        hosts[name] = known._replace(leases=known.leases.sent(plan.epoch, plan.of_host(name), 0, 0))
    state = replace(state, reported=replace(state.reported, hosts=Hosts(hosts)))
    steps = begun.steps or delays.steps_of_one(plan.epoch, now.calendar_us)
    installed = Installed(plan, plan, plan.epoch, steps)
    return replace(state, installed=installed, desired=replace(state.desired, plan=plan))


def _going_on(site: Site, begun: Begun, state: SiteState, hosts: dict[str, HostState], now: Instant) -> SiteState:
    """Return it with the promises that there are, whose hosts send what is left, and with lines that are down."""
    ledger, lines, now_us = state.wished.ledger, state.reported.lines, now.calendar_us
    for circuit in sorted(begun.down):
        lines = lines.said(circuit, (0, 0), now.elapsed_us, is_live=False)
    ledger.down = circuits_down(site, state.wished, replace(state.reported, lines=lines), now)
    ledger.restore(begun.reservations, begun.announcements, now_us)
    ledger.tick(now_us)
    ledger.saved(ledger.changes(decided=True))
    left = left_bytes(state.wished)
    for flow in (flow for known in ledger.announcements.values() for flow in known.flows):
        if (host := hosts.get(flow.machine)) is None:  # it has no agent, and is not asked
            continue
        hosts[flow.machine] = host._replace(wants={**host.wants, flow.name: flow.name in left})
    return replace(state, reported=replace(state.reported, lines=lines, hosts=Hosts(hosts)))
