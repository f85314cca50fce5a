"""Flows and demands on the ring, where there are two ways between any two sites."""

from hypothesis import strategies as st

from controller.plan.flows import flow_on
from controller.plan.invariant import Layers
from controller.plan.keys import ClassShare
from controller.plan.plan import Entry, Flow, Plan, PlanInput
from mininet_tests.testing.networks import asc_ring
from topology.network import Hop
from topology.protocol import FlowClass

RING = asc_ring(10**9)
RATE_BPS = 10**9
LINKS = tuple(Hop(tail, head) for tail, head, _ in RING.circuit_links)
PLANNED = tuple(c for c in FlowClass if c is not FlowClass.UNPLANNED)


def ways(source: str, target: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return both paths between two hosts of different sites, the default one first."""
    circle = [switch.name for switch in RING.switches]
    here, there = (circle.index(RING.edge_switch(RING.host(host).site).name) for host in (source, target))
    found = []
    for step in (1, -1):
        nodes, at = [circle[here]], here
        while at != there:
            at = (at + step) % len(circle)
            nodes.append(circle[at])
        found.append((source, *nodes, target))
    default = RING.path(source, target)
    first, second = sorted(found, key=lambda path: path != default)
    return first, second


def flow(flow_class: FlowClass, source: str, target: str, *, way: int = 0) -> Flow:
    """Return a flow by the default way (0) or the other (1)."""
    return flow_on(RING, f"{source}-{target}", flow_class, ways(source, target)[way])


PAIRS = tuple((a.name, z.name) for a in RING.hosts for z in RING.hosts if a.site != z.site)
flow_sets = st.lists(
    st.builds(
        lambda pair, flow_class, way, wanted, floor: (pair, flow_class, way, wanted, floor),
        st.sampled_from(PAIRS),
        st.sampled_from(PLANNED),
        st.integers(0, 1),
        st.none() | st.integers(0, RATE_BPS),
        st.just(0) | st.integers(0, RATE_BPS),
    ),
    max_size=8,
    unique_by=lambda parts: parts[0],
)


@st.composite
def any_demand(draw) -> PlanInput:
    """Return any demand, sensible or not: it must never break the invariant."""
    flows = []
    for pair, flow_class, way, wanted_bps, floor_bps in draw(flow_sets):
        path = ways(*pair)[way]
        bare = flow_on(RING, "-".join(pair), flow_class, path)
        flows.append(Flow(bare.name, flow_class, *pair, bare.dest, path, wanted_bps, floor_bps))
    capacity = draw(st.dictionaries(st.sampled_from(LINKS), st.just(0) | st.integers(0, RATE_BPS), max_size=8))
    reserved = draw(
        st.dictionaries(
            st.builds(ClassShare, st.sampled_from(LINKS), st.sampled_from(PLANNED)), st.integers(0, RATE_BPS)
        )
    )
    return PlanInput(tuple(flows), capacity, reserved)


def hosts_bps(entries: tuple[Entry, ...], link: Hop) -> dict[FlowClass, int]:
    """Return what entries send over a link, by class."""
    crossing = [e for e in entries if link in e.flow.links]
    return {c: sum(e.frame_bps for e in crossing if e.flow.flow_class is c) for c in FlowClass}


def layers(plan: Plan) -> dict[Hop, Layers]:
    """Return what a plan lets through, were all of it installed."""
    return {
        name: Layers(
            hosts_bps(plan.entries, name),
            {c: limits.meter_bps for c, limits in link.classes.items()},
            {c: limits.queue_bps for c, limits in link.classes.items()},
            link.circuit_bps,
        )
        for name, link in plan.links.items()
    }
