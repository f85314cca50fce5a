"""No host is given more than its interface carries, however many circuits its flows cross."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.plan.failover import carries
from controller.plan.keys import ClassShare, FlowId
from controller.plan.plan import PlanInput
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import RING, any_network, demands_in, flow, flows_in, plan_of
from topology.network import Hop, Link
from topology.protocol import FlowClass
from topology.relinking import relinked
from topology.wire import Layer, converted_bps


def narrow(host, rate_bps):
    """The ring with another rate of a host's interface."""

    def changed(hop: Hop, link: Link) -> Link:
        return replace(link, rate_bps=rate_bps) if host in hop else link

    return relinked(RING, RING.framing, changed)


def carried(network, hop):
    """What a link carries, bit/s of frames."""
    return converted_bps(network.link(*hop).rate_bps, Layer.WIRE, Layer.FRAME, network.framing_of(hop))


def sums(network, plan):
    """What the plan gives together to the flows of each link that is no circuit."""
    found = {}
    for e in plan.entries:
        for hop in e.flow.links:
            if network.link(*hop).circuit is None and hop.tail in network.graph and set(hop) & network.host_names:
                found[hop] = found.get(hop, 0) + e.frame_bps
    return found


@given(any_network.flatmap(lambda n: st.tuples(st.just(n), demands_in(n))))
def test_no_interface_is_given_more_than_it_carries_in_any_plan(drawn):
    network, demand = drawn
    for hop, bps in sums(network, planned(2, network, DEFAULT_POLICY, demand)).items():
        assert bps <= carried(network, hop)


@given(flows_in(narrow("albu10", 10**9)))
def test_every_flow_gets_something_of_a_narrow_interface(flows):
    network = narrow("albu10", 10**9)
    assert {e.flow.name for e in planned(2, network, DEFAULT_POLICY, PlanInput(flows)).entries} == {
        f.name for f in flows
    }


def test_a_host_that_sends_by_two_circuits_has_one_interface_and_uses_all_of_it():
    flows = [
        replace(flow(FlowClass.URGENT, "albu10", target, RING), name=FlowId(target)) for target in ("losa10", "live10")
    ]
    plan = plan_of(*flows, network=RING)
    assert sums(RING, plan)[Hop("albu10", "albu1")] == carried(RING, ("albu10", "albu1"))
    assert [e.frame_bps for e in plan.entries] == pytest.approx([carried(RING, ("albu10", "albu1")) // 2] * 2, abs=1)


def test_of_an_interface_the_urgent_class_is_served_first_and_others_keep_what_they_are_guaranteed():
    urgent = flow(FlowClass.URGENT, "albu10", "losa10", RING)
    raw = flow(FlowClass.BACKGROUND, "albu10", "live10", RING)
    alone, (rest, image) = plan_of(urgent, network=RING), plan_of(raw, urgent, network=RING).entries
    assert image.frame_bps == alone.entries[0].frame_bps
    assert image.frame_bps + rest.frame_bps == carried(RING, ("albu10", "albu1"))
    at = narrow("albu10", 10**9)
    rest, image = plan_of(raw, urgent, network=at).entries
    total = carried(at, ("albu10", "albu1"))
    assert (rest.frame_bps, image.frame_bps) == (total // 100, total - total // 100)


def test_what_is_promised_of_an_interface_is_kept():
    urgent = flow(FlowClass.URGENT, "albu10", "losa10", RING)
    raw = replace(flow(FlowClass.BACKGROUND, "albu10", "live10", RING), floor_bps=4 * 10**9, wanted_bps=4 * 10**9)
    reserved = {ClassShare(hop, FlowClass.BACKGROUND): 4 * 10**9 for hop in raw.links}
    plan = planned(2, RING, DEFAULT_POLICY, PlanInput((urgent, raw), {}, reserved))
    by_name = {e.flow.name: e.frame_bps for e in plan.entries}
    promised = converted_bps(4 * 10**9, Layer.WIRE, Layer.FRAME, RING.framing)
    assert by_name[raw.name] == promised // 1000 * 1000  # as its circuit's meter counts it


def test_a_promise_that_takes_all_of_an_interface_is_kept_before_what_others_stand_by_with():
    """An image that was late kept 20 Mbit/s of an interface, and what was promised beside it had 571 of 600."""
    network = narrow("albu10", 10**9)
    late = replace(flow(FlowClass.URGENT, "albu10", "losa10", network), standby_bps=20_000_000)
    promised = replace(flow(FlowClass.BACKGROUND, "albu10", "live10", network), floor_bps=990_000_000)
    reserved = {ClassShare(hop, FlowClass.BACKGROUND): 10**9 for hop in promised.links}
    plan = planned(2, network, DEFAULT_POLICY, PlanInput((late, promised), {}, reserved))
    waits, kept = sorted(plan.entries, key=lambda e: e.frame_bps)
    assert carries(kept, promised.name, promised.floor_bps, network, frozenset())
    assert waits.frame_bps == carried(network, ("albu10", "albu1")) - kept.frame_bps


def test_what_a_slow_interface_cannot_use_of_a_circuit_others_have():
    network = narrow("albu10", 10**9)
    flows = [flow(FlowClass.URGENT, host, "losa10", network) for host in ("albu10", "albu20")]
    slow, fast = plan_of(*flows, network=network).entries
    assert slow.frame_bps == carried(network, ("albu10", "albu1"))
    most_bps = plan_of(flows[1], network=network).entries[0].frame_bps
    assert slow.frame_bps + fast.frame_bps == pytest.approx(most_bps, rel=1e-3)
