"""What a plan means on the switches of a ring: packets are followed from switch to switch."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.plan.plan import PlanInput, Selector
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.ring import LINKS, PAIRS, RATE_BPS, RING, any_demand, flow, ways
from controller.southbound.openflow.circuit_ports import QUEUE_ID, meter_id
from controller.southbound.openflow.desired import switch_state
from controller.southbound.openflow.messages import messages
from controller.southbound.openflow.meter_numbers import MeterNumbers, SenderKey
from controller.southbound.openflow.rule_parts import FLOW_TABLE, SENDER_TABLE
from controller.southbound.openflow.senders import senders
from controller.southbound.openflow.state import SwitchState
from controller.southbound.openflow.tests.fake_switch import FakeSwitch
from controller.southbound.ovsdb.desired_queues import port_queues
from controller.southbound.ovsdb.queues import check_queues
from topology.network import Hop, Host
from topology.protocol import FlowClass
from topology.relinking import tagged

URGENT, BACKGROUND, UNPLANNED = FlowClass.URGENT, FlowClass.BACKGROUND, FlowClass.UNPLANNED
STRANGER = "10.99.0.1"
CIRCUITS = [circuit.name for circuit in RING.circuits]
# No VLAN, one each, one for all, and some circuits with and some without; built once, for their paths are remembered.
RINGS = [
    tagged(RING, vlan_vids)
    for vlan_vids in (
        {},
        {name: 300 + n for n, name in enumerate(CIRCUITS)},
        dict.fromkeys(CIRCUITS, 4094),
        {CIRCUITS[0]: 1, CIRCUITS[2]: 2},
    )
]


@dataclass(frozen=True, slots=True)
class Crossed:
    """A circuit link that a packet crossed, the meters that counted it before, and the queue it left by."""

    link: Hop
    meter_ids: tuple[int, ...]
    queue_id: int | None


class Ring:
    """All switches of the ring under one plan; some of its circuits may be handed over as VLANs."""

    def __init__(self, demand, network=RING):
        self.network = network
        plan = planned(2, self.network, DEFAULT_POLICY, demand)
        self.own_meter = {}
        self.switches = {}
        for switch in RING.switches:
            self.switches[switch.name] = FakeSwitch()
            numbers = MeterNumbers()
            for sender in senders(self.network, switch, plan, DEFAULT_POLICY, numbers):
                self.own_meter[sender.key] = sender.meter_id
            state = switch_state(self.network, switch, plan, DEFAULT_POLICY, numbers)
            for message in messages(state, SwitchState()):
                self.switches[switch.name].apply(message)

    def crossed(self, source, target, dscp=0, *, is_arp=False):
        """The circuit links that an IP packet crosses, or one of ARP, up to its target."""
        addresses = {h.name: str(h.ip) for h in RING.hosts}
        at, came_from = RING.edge_switch(RING.host(source).site if source in addresses else "albuquerque").name, source
        ends = addresses.get(source, source), addresses[target]
        fields = dict(zip(("arp_spa", "arp_tpa") if is_arp else ("ipv4_src", "ipv4_dst"), ends, strict=True))
        fields["eth_type"] = 0x0806 if is_arp else 0x0800
        hops, tag = [], {}
        while len(hops) < 10:
            port = RING.link(at, came_from).port_no if came_from in addresses or hops else 2
            mark = {} if is_arp else {"ip_dscp": dscp}
            fate = self.switches[at].fate(fields | tag | mark | {"in_port": port})
            assert fate.output_port is not None, (at, fields)
            head = next(h for t, h, link in RING.links() if t == at and link.port_no == fate.output_port)
            vlan_vid = self.network.link(at, head).vlan_vid
            assert fate.vlan_vids == (() if vlan_vid is None else (vlan_vid,)), (at, head)
            tag = {} if vlan_vid is None else {"vlan_vid": 0x1000 | vlan_vid}
            if isinstance(RING.graph.nodes[head]["node"], Host):
                assert head == target
                return hops
            hops.append(Crossed(Hop(at, head), fate.meter_ids, fate.queue_id))
            dscp = dscp if fate.dscp is None else fate.dscp
            at, came_from = head, at
        raise AssertionError(f"round and round: {hops}")


def circuits_of(path):
    """The circuit links of a path."""
    return [name for name in map(Hop, path, path[1:]) if name in LINKS]


@pytest.mark.parametrize("way", [0, 1])
@pytest.mark.parametrize("pair", [("albu10", "live10"), ("albu10", "pop10"), ("losa20", "live20")], ids="-".join)
def test_a_flow_its_meter_and_its_answers_keep_to_its_way_and_its_class(pair, way):
    wanted = flow(URGENT, *pair, way=way)
    ring = Ring(PlanInput((wanted,)))
    for ends, path in ((pair, wanted.path), (pair[::-1], wanted.path[::-1])):
        hops = ring.crossed(*ends)
        assert [hop.link for hop in hops] == circuits_of(path)
        own = ring.own_meter[ends[0], URGENT, path[2], ends[1]]
        assert hops[0].meter_ids == (own, meter_id(RING, path[1:3], URGENT))
        assert {hop.meter_ids for hop in hops[1:]} <= {()}
        assert {hop.queue_id for hop in hops} == {QUEUE_ID[URGENT]}


@pytest.mark.parametrize("way", [0, 1])
@pytest.mark.parametrize("pair", [("albu10", "live10"), ("albu10", "pop10"), ("losa20", "live20")], ids="-".join)
def test_two_hosts_find_each_other_by_the_way_that_is_planned_between_them(pair, way):
    wanted = flow(URGENT, *pair, way=way)
    ring = Ring(PlanInput((wanted,)))
    for ends, path in ((pair, wanted.path), (pair[::-1], wanted.path[::-1])):
        assert [hop.link for hop in ring.crossed(*ends, is_arp=True)] == circuits_of(path)


def test_arp_keeps_to_the_way_of_what_has_no_mark_where_a_pair_goes_two_ways():
    plain, other = flow(BACKGROUND, "albu10", "pop10", way=1), flow(URGENT, "albu10", "pop10")
    ring = Ring(PlanInput((plain, replace(other, name="other", selector=Selector(dest_port=873), mark=0b001011))))
    assert [hop.link for hop in ring.crossed("albu10", "pop10", is_arp=True)] == circuits_of(plain.path)


@settings(deadline=None)  # it follows 48 packets through four switches
@given(any_demand(), st.sampled_from(RINGS))
def test_every_planned_packet_goes_by_its_flows_way_under_its_meter_and_every_other_by_the_default(demand, network):
    ring = Ring(demand, network)
    entries = {(e.flow.host, e.flow.target): e.flow for e in planned(2, network, DEFAULT_POLICY, demand).entries}
    for pair in PAIRS:
        own, answered = entries.get(pair), entries.get(pair[::-1])
        if own is not None:
            path, flow_class = own.path, own.flow_class
        elif answered is not None:
            path, flow_class = answered.path[::-1], answered.flow_class
        else:
            path, flow_class = RING.path(*pair), UNPLANNED
        hops = ring.crossed(*pair)
        assert [hop.link for hop in hops] == circuits_of(path), pair
        key = SenderKey(pair[0], flow_class, path[2], pair[1])
        own_meter = () if flow_class is UNPLANNED else (ring.own_meter[key],)
        assert hops[0].meter_ids == (*own_meter, meter_id(RING, path[1:3], flow_class))
        assert {hop.queue_id for hop in hops} == {QUEUE_ID[flow_class]}


def test_flows_of_one_pair_by_different_ways_there_and_back_do_not_contradict_each_other():
    there, back = flow(URGENT, "albu10", "live10", way=1), flow(BACKGROUND, "live10", "albu10", way=0)
    ring = Ring(PlanInput((there, back)))
    assert [hop.link for hop in ring.crossed("albu10", "live10")] == circuits_of(there.path)
    assert [hop.link for hop in ring.crossed("live10", "albu10")] == circuits_of(back.path)


def test_a_stranger_is_policed_by_the_unplanned_meter_of_the_circuit_it_takes():
    ring = Ring(PlanInput(()))
    for target in ("losa10", "live10"):
        (hop, *_) = ring.crossed(STRANGER, target)
        assert hop.meter_ids == (meter_id(RING, hop.link, UNPLANNED),), target


def test_a_dscp_that_a_host_sets_itself_buys_nothing_on_any_circuit():
    hops = Ring(PlanInput(())).crossed("albu10", "pop10", dscp=46)
    assert len(hops) == 2
    assert {hop.queue_id for hop in hops} == {QUEUE_ID[UNPLANNED]}


def test_the_meters_of_a_switch_are_numbered_by_circuit_and_class():
    ids = {meter_id(RING, ("albu1", head), c) for head in ("losa1", "live1") for c in FlowClass}
    assert ids == {1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007}


@pytest.mark.parametrize("ways_now", [(0, 1), (1, 0)])
def test_a_flow_that_changes_its_way_changes_its_rule_in_place_and_has_the_meter_of_the_other_circuit(ways_now):
    before, after = (
        switch_state(
            RING,
            RING.edge_switch("albuquerque"),
            planned(2, RING, DEFAULT_POLICY, PlanInput((flow(URGENT, "albu10", "live10", way=way),))),
            DEFAULT_POLICY,
        )
        for way in ways_now
    )
    keys = [{rule.key for rule in state.rules if rule.table_id != SENDER_TABLE} for state in (before, after)]
    assert keys[0] == keys[1]
    assert [rule.table_id for rule in sorted(after.rules - before.rules, key=str)] == [FLOW_TABLE, SENDER_TABLE]


def test_one_pair_in_two_classes_goes_two_ways_at_once():
    mark = 0b001011
    one, other = flow(URGENT, "albu10", "pop10"), flow(BACKGROUND, "albu10", "pop10", way=1)
    other = replace(other, name="other", selector=Selector(dest_port=873), mark=mark)
    ring = Ring(PlanInput((one, other)))
    for wanted, dscp in ((one, 0), (other, mark)):
        hops = ring.crossed("albu10", "pop10", dscp=dscp)
        assert [hop.link for hop in hops] == circuits_of(wanted.path)
        assert {hop.queue_id for hop in hops} == {QUEUE_ID[wanted.flow_class]}
        assert hops[0].meter_ids[1:] == (meter_id(RING, wanted.path[1:3], wanted.flow_class),)
    assert [hop.queue_id for hop in ring.crossed("pop10", "albu10")] == [QUEUE_ID[URGENT]] * 2


@given(any_demand())
def test_the_queues_of_every_port_can_be_set_whatever_the_plan(demand):
    plan = planned(2, RING, DEFAULT_POLICY, demand)
    for switch in RING.switches:
        queues = port_queues(RING, switch, plan)
        assert len(queues) == 2
        for port in queues.values():
            check_queues(port)


@given(st.integers(0, RATE_BPS))
def test_a_circuit_cut_to_anything_can_be_told_to_a_switch(cut_bps):
    wanted = flow(BACKGROUND, "albu10", "live10")
    (link,) = circuits_of(wanted.path)
    plan = planned(2, RING, DEFAULT_POLICY, PlanInput((wanted,), {link: cut_bps}))
    switch = RING.edge_switch("albuquerque")
    switch_state(RING, switch, plan, DEFAULT_POLICY)
    for port in port_queues(RING, switch, plan).values():
        check_queues(port)


def test_both_ways_of_a_pair_differ():
    assert all(len({*ways(*pair)}) == 2 for pair in PAIRS)
    assert replace(flow(URGENT, *PAIRS[0]), path=ways(*PAIRS[0])[1]) == flow(URGENT, *PAIRS[0], way=1)
