"""Small makers of plans for the tests."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from controller.plan.flows import flow_on
from controller.plan.keys import ClassShare
from controller.plan.plan import THE_REST, Flow, Plan, PlanInput, Selector
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.told_apart import told_apart
from mininet_tests.testing.drawn import sections
from mininet_tests.testing.networks import asc_ring, chile_illinois, chile_illinois_2
from topology.network import Hop, Network
from topology.network_file import network_of
from topology.problems import Problems
from topology.protocol import FlowClass
from topology.relinking import tagged

GIGABIT = chile_illinois()
RING = asc_ring()
PLANNED_CLASSES = [c for c in FlowClass if c is not FlowClass.UNPLANNED]


def flow(flow_class: FlowClass, host: str, target: str = "arch", network: Network = GIGABIT) -> Flow:
    """A flow of ``host``, to the archive if nothing else is said."""
    return flow_on(network, f"{flow_class}/{host}", flow_class, network.path(host, target))


DATABASE = flow(FlowClass.PREDICTABLE, "base22")
RAW_IMAGES = flow(FlowClass.BACKGROUND, "base23")
IMAGE = (flow(FlowClass.URGENT, "base20"), flow(FlowClass.URGENT, "base21"))


def plan_of(*flows: Flow, epoch: int = 2, network: Network = GIGABIT) -> Plan:
    """The plan for these flows under the default policy."""
    return planned(epoch, network, DEFAULT_POLICY, PlanInput(flows))


def network_in(section: dict[str, Any]) -> Network:
    """The network in what YAML has read of a file, which must be right."""
    network = network_of(section, Problems())
    assert network is not None
    return network


drawn_network = sections().map(network_in)  # ports may have names alone
any_network = st.one_of(
    drawn_network,
    st.builds(chile_illinois, st.integers(10**8, 10**11), st.integers(100, 10**6), st.sampled_from([1500, 9000])),
    st.builds(chile_illinois_2, st.integers(10**8, 10**11), st.integers(100, 10**6)),
    st.builds(asc_ring, st.integers(10**8, 10**11), st.integers(100, 10**6)),
).flatmap(
    lambda network: st.dictionaries(st.sampled_from([c.name for c in network.circuits]), st.integers(1, 4094)).map(
        lambda vlan_vids: tagged(network, vlan_vids)
    )
)


@st.composite
def flows_in(draw, network: Network):
    """Any flows of a network, several of a pair of hosts too, on either way round."""
    found = []
    pairs = st.tuples(*(st.sampled_from([h.name for h in network.hosts]) for _ in "az"))
    for i, (a_end, z_end) in enumerate(draw(st.lists(pairs, max_size=8))):
        if network.host(a_end).site != network.host(z_end).site and network.is_ours(a_end):
            ways = [network.path(a_end, z_end), network.path(z_end, a_end)[::-1]]
            one = flow_on(
                network, f"{a_end}-{z_end}-{i}", draw(st.sampled_from(PLANNED_CLASSES)), draw(st.sampled_from(ways))
            )
            found.append(
                replace(one, selector=draw(st.sampled_from([THE_REST, Selector(873), Selector(local_port=1)])))
            )
    return told_apart(found, DEFAULT_POLICY)


@st.composite
def demands_in(draw, network: Network):
    """Any demand on a network: flows, capacities the provider has cut, and shares that promises keep."""
    links = [Hop(tail, head) for tail, head, _ in network.circuit_links]
    capacity = draw(st.dictionaries(st.sampled_from(links), st.integers(0, 10**10), max_size=3))
    capacity = {link: min(bps, 10**8) for link, bps in capacity.items()}
    places = st.builds(ClassShare, st.sampled_from(links), st.sampled_from(PLANNED_CLASSES))
    return PlanInput(
        draw(flows_in(network)), capacity, draw(st.dictionaries(places, st.integers(0, 10**9), max_size=4))
    )
