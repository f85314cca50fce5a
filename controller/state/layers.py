"""What each layer lets through at this moment. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain

from controller.plan.differences import differing_keys
from controller.plan.invariant import Layers, Violation, violations
from controller.plan.plan import Entry, LinkPlan, Plan
from controller.site import Site
from controller.state.acts import NO_BPS, Acts, acts
from controller.state.installed import Installed
from controller.state.reported import Reported
from controller.state.value import SiteState
from topology.network import Hop
from topology.protocol import FlowClass


def acting(reported: Reported, installed: Installed, elapsed_us: int) -> tuple[Entry, ...]:
    """Return the most that hosts may be acting on now, where the rules in force send it."""
    return tuple(chain.from_iterable(acts(reported, installed.meters, elapsed_us).by_host.values()))


@dataclass(frozen=True, slots=True)
class LinkLayers:
    """What each layer lets through on each direction of each circuit that is up, and what that was found from.

    Attributes:
        links: of the desired plan.
        down: its circuits that are down.
        meters: the links of the plan whose meters are in force.
        queues: the links of the plan whose queues are.
        hosts_bps: by link and class, what hosts may be sending; None while they may be doing what an earlier controller
            granted: then all that the meters let through counts as used.
        by_link: the layers.
        violations: by link, where a layer lets through more than the one that must hold it.
    """

    links: Mapping[Hop, LinkPlan] = field(default_factory=dict)
    down: frozenset[str] = frozenset()
    meters: Mapping[Hop, LinkPlan] = field(default_factory=dict)
    queues: Mapping[Hop, LinkPlan] = field(default_factory=dict)
    hosts_bps: Mapping[Hop, Mapping[FlowClass, int]] | None = None
    by_link: Mapping[Hop, Layers] = field(default_factory=dict)
    violations: Mapping[Hop, tuple[Violation, ...]] = field(default_factory=dict)


UNKNOWN = LinkLayers()


def layers(site: Site, state: SiteState, elapsed_us: int) -> Mapping[Hop, Layers]:
    """Return what each layer lets through now on each direction of each circuit that is up.

    Until the first plan was granted, hosts may be doing what an earlier controller granted: all that the meters let
    through counts as used.
    """
    return link_layers(site, state, elapsed_us, acts(state.reported, state.installed.meters, elapsed_us)).by_link


def link_layers(site: Site, state: SiteState, elapsed_us: int, now: Acts, before: LinkLayers = UNKNOWN) -> LinkLayers:
    """Return the same, with what breaks the invariant.

    The answer is the same whatever was found ``before``, and costs what differs from it.

    Args:
        site: where.
        state: of the site.
        elapsed_us: now.
        now: what its hosts may be acting on now.
        before: what was found before.
    """
    is_unknown = not state.installed.hosts_epoch or state.reported.unknown_until_us(elapsed_us) is not None
    plan, hosts_bps = state.desired.plan, None if is_unknown else now.bps
    meters, queues = _links(state.installed.meters), _links(state.installed.queues)
    if before.down != plan.down or (before.hosts_bps is None) is not is_unknown:
        before = UNKNOWN
    differing = {
        *differing_keys(before.links, plan.links),
        *differing_keys(before.meters, meters),
        *differing_keys(before.queues, queues),
        *differing_keys(before.hosts_bps or {}, hosts_bps or {}),
    }
    dead = {Hop(t, h) for t, h, link in site.network.circuit_links if link.circuit in plan.down} if plan.down else set()
    changed = {
        hop: Layers({}, {}, {}, 0)
        if hop in dead
        else _on_link(link.circuit_bps, meters.get(hop), queues.get(hop), _bps(hosts_bps, hop))
        for hop in differing
        if (link := plan.links.get(hop)) is not None
    }
    by_link: Mapping[Hop, Layers] = {**before.by_link, **changed}
    if plan.links is not before.links and by_link.keys() != plan.links.keys():
        by_link = {hop: by_link[hop] for hop in plan.links}
    broken = {hop: found for hop, found in before.violations.items() if hop not in differing and hop in plan.links}
    for one in violations(changed):
        broken[one.link] = (*broken.get(one.link, ()), one)
    return LinkLayers(plan.links, plan.down, meters, queues, hosts_bps, by_link, broken)


def _links(plan: Plan | None) -> Mapping[Hop, LinkPlan]:
    return plan.links if plan else {}


def _bps(hosts_bps: Mapping[Hop, Mapping[FlowClass, int]] | None, hop: Hop) -> Mapping[FlowClass, int] | None:
    return None if hosts_bps is None else hosts_bps.get(hop, NO_BPS)


def _on_link(
    circuit_bps: int, meters: LinkPlan | None, queues: LinkPlan | None, hosts_bps: Mapping[FlowClass, int] | None
) -> Layers:
    """Return the layers of a link; ``hosts_bps`` None: what its hosts do is unknown."""
    meters_bps = {c: limits.meter_bps for c, limits in meters.classes.items()} if meters else {}
    queues_bps = {c: limits.queue_bps for c, limits in queues.classes.items()} if queues else {}
    known_bps = dict.fromkeys(FlowClass, 0) | meters_bps if hosts_bps is None else hosts_bps
    return Layers(known_bps, meters_bps, queues_bps, circuit_bps)
