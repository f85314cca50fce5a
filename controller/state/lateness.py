"""Which promises will be late as things are, and why. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from controller.plan.clock import Instant
from controller.plan.failover import late
from controller.plan.faults import in_the_way
from controller.site import Site
from controller.state.desired import hosts_absent
from controller.state.value import SiteState


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

    One that waits for something to send has its floor when it sends, unless its way has gone, or has a fault.
    """
    announcements, plan = state.wished.ledger.announcements, state.desired.plan
    if not announcements:
        return {}
    ways = {flow.name: flow.path for known in announcements.values() for flow in known.flows}
    waiting = frozenset(
        name
        for e in plan.entries
        for name in e.flow.names
        if e.flow.path == ways.get(name)
        and state.reported.hosts[e.flow.host].waits(e.flow)
        and not in_the_way(site.network, e.flow.path, state.installed.faults)
    )
    found = late(announcements.values(), plan, site.network.framing, now.calendar_us, waiting)
    return {
        name: Late(promised_us, expected_us, _why(site, state, name, now)) for name, promised_us, expected_us in found
    }


def _why(site: Site, state: SiteState, name: str, now: Instant) -> str:
    flows, absent = state.wished.ledger.announcements[name].flows, hosts_absent(site, state.reported, now.elapsed_us)
    gone = [f"{flow.host}: its agent is not connected" for flow in flows if flow.host in absent]
    faults = [why for flow in flows for why in in_the_way(site.network, flow.path, state.installed.faults)]
    return "; ".join(dict.fromkeys((*gone, *faults))) or "what is left of the circuits has less room"
