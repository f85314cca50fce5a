"""What the layers do not carry at this moment, and why: one answer for the plan's view, health and promises. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.plan.clock import Instant
from controller.plan.faults import in_the_way
from controller.plan.keys import FlowId
from controller.site import Site
from controller.state.value import SiteState, flows
from topology.network import Hop


@dataclass(frozen=True, slots=True)
class NotCarried:
    """What has a fault in its way.

    Attributes:
        flows: by flow, what is in its way.
        links: by direction of a circuit whose limits cannot be changed, why.
    """

    flows: Mapping[FlowId, str] = field(default_factory=dict)
    links: Mapping[Hop, str] = field(default_factory=dict)


def not_carried(site: Site, state: SiteState, now: Instant) -> NotCarried:
    """Return what switches, ports and databases that do not do what they are told keep from being carried."""
    faults = state.installed.faults
    if not faults:
        return NotCarried()
    wanted = flows(site, state, now)
    whys = {name: in_the_way(site.network, flow.path, faults) for flow in wanted for name in flow.names}
    links = {
        hop: "; ".join(str(fault) for fault in faults.values() if fault.closed.holds(hop))
        for hop in state.desired.plan.links
    }
    return NotCarried(
        {name: "; ".join(why) for name, why in whys.items() if why}, {hop: why for hop, why in links.items() if why}
    )
