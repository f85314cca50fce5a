"""What is looked up of faults for every flow at once is what each flow finds by itself."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from controller.plan.faults import FaultsByPlace, PlaceFault, across
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import any_network, demands_in


@st.composite
def fault_and_flows(draw):
    """A network, faults at some of its places with what flows had across them, and the flows of another moment."""
    network = draw(any_network)
    plans = [planned(2, network, DEFAULT_POLICY, draw(demands_in(network))) for _ in range(2)]
    entries = [e for plan in plans for e in plan.entries]
    held = st.lists(st.sampled_from(entries), max_size=6).map(tuple) if entries else st.just(())
    switches = st.sets(st.sampled_from([switch.name for switch in network.switches]), max_size=1).map(frozenset)
    ports = st.sets(st.sampled_from([*plans[0].links]), max_size=2).map(frozenset)
    fault = st.builds(
        lambda at, by, had, back: PlaceFault("a place", "why", at, by, held=had, is_back=back),
        *(switches, ports, held, st.booleans()),
    )
    faults = {str(n): one for n, one in enumerate(draw(st.lists(fault, max_size=3)))}
    flows = [*draw(demands_in(network)).flows, *(e.flow for e in entries)]
    paths = [flow.path for flow in flows]
    flows += [replace(flow, path=draw(st.sampled_from(paths))) for flow in flows[:3]]
    return network, faults, flows


def ways_had(fault, flow):
    """The ways on which a flow had something across a fault, in the eyes of a switch."""
    return {e.flow.path for e in fault.held if fault.held_entry(replace(flow, path=e.flow.path)) is not None}


@given(fault_and_flows())
def test_every_flow_finds_what_it_finds_by_itself(known):
    network, faults, flows = known
    places = FaultsByPlace(network, faults)
    for flow in flows:
        there = across(network, flow.path, faults)
        assert [[*faults.values()][number] for number in places.across(flow.path)] == [*there]
        had = [fault.held_entry(flow) for fault in there]
        keeps = None if None in had or not had else min(had, key=lambda entry: entry.frame_bps)
        assert places.kept(flow) is keeps
        common = set.intersection(*(ways_had(fault, flow) for fault in there)) if there else set()
        way = flow.path if flow.path in common else min(common, default=flow.path)
        assert places.way_there(flow, frozenset()) == way
