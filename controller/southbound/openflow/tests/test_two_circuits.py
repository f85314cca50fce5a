"""What a plan means on switches that two circuits join: packets are followed, with all ports live and with one dead."""

import pytest

from controller.plan.failover import carried, without
from controller.plan.plan import PlanInput
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.test_failover import AFTER, BEFORE, NORTH, TWO, flow
from controller.plan.transitions import InForce, lesser_of, next_step
from controller.southbound.openflow.circuit_ports import QUEUE_ID, group_id, meter_id
from controller.southbound.openflow.desired import switch_state
from controller.southbound.openflow.messages import PutGroup, messages
from controller.southbound.openflow.meter_numbers import MeterNumbers
from controller.southbound.openflow.rules import make_ready, standing_rules
from controller.southbound.openflow.senders import senders
from controller.southbound.openflow.state import Bucket, FailoverGroup, SwitchState
from controller.southbound.openflow.tests.fake_switch import FakeSwitch
from controller.southbound.ovsdb.desired_queues import LEAST_QUEUE_BPS, port_queues
from topology.protocol import FlowClass
from topology.relinking import tagged

CHILE, ILLINOIS = TWO.switches
NORTH_PORT, SOUTH_PORT = 8, 9
URGENT, PREDICTABLE, BACKGROUND = FlowClass.URGENT, FlowClass.PREDICTABLE, FlowClass.BACKGROUND


def switch(plan, which=CHILE):
    """A switch that holds a plan."""
    fake = FakeSwitch()
    for message in messages(switch_state(TWO, which, plan, DEFAULT_POLICY), SwitchState()):
        fake.apply(message)
    return fake


def packet(source, target, port=None):
    """An IP packet between two hosts, from the port of the first."""
    addresses = {h.name: str(h.ip) for h in TWO.hosts}
    here = next(link.port_no for _, head, link in TWO.links() if head == source)
    return {"in_port": port or here, "eth_type": 0x0800, "ipv4_src": addresses[source], "ipv4_dst": addresses[target]}


def plan_of(*flows):
    """The plan for some flows, all circuits up."""
    return planned(2, TWO, DEFAULT_POLICY, PlanInput(flows))


@pytest.mark.parametrize("flow_class", [URGENT, PREDICTABLE], ids=str)
@pytest.mark.parametrize(("ends", "which"), [(("base20", "arch"), CHILE), (("arch", "base20"), ILLINOIS)], ids=str)
def test_a_protected_flow_and_its_answers_leave_by_the_other_port_when_their_own_is_dead(flow_class, ends, which):
    fake = switch(plan_of(flow(flow_class, "base20", "north")), which)
    before = fake.fate(packet(*ends))
    fake.dead_ports = {NORTH_PORT}
    after = fake.fate(packet(*ends))
    assert (before.output_port, after.output_port) == (NORTH_PORT, SOUTH_PORT)
    assert after.queue_id == before.queue_id == QUEUE_ID[flow_class]
    assert after.meter_ids == before.meter_ids
    assert before.meter_ids[1:] == (meter_id(TWO, (which.name, "north"), flow_class),)  # after the pair's own


def test_a_flow_of_the_other_circuit_is_led_over_the_first_when_its_own_is_dead():
    fake = switch(plan_of(flow(URGENT, "base20", "south")))
    assert fake.fate(packet("base20", "arch")).output_port == SOUTH_PORT
    fake.dead_ports = {SOUTH_PORT}
    assert fake.fate(packet("base20", "arch")).output_port == NORTH_PORT


def test_what_is_not_protected_waits_for_the_plan():
    fake = switch(plan_of(flow(BACKGROUND, "base23", "north")))
    fake.dead_ports = {NORTH_PORT}
    for source in ("base23", "base21"):  # background, and nobody's
        assert fake.fate(packet(source, "arch")).output_port == NORTH_PORT or (
            fake.fate(packet(source, "arch")).output_port is None
        )


def test_addresses_are_still_asked_for_when_a_port_is_dead():
    fake = switch(plan_of())
    fake.dead_ports = {NORTH_PORT}
    assert (
        fake.fate({"in_port": 1, "eth_type": 0x0806, "arp_spa": "10.20.20.20", "arp_tpa": "10.20.20.100"}).output_port
        == SOUTH_PORT
    )


def test_the_plan_for_a_death_needs_no_dead_port_for_anybody():
    flows = flow(URGENT, "base20", "north"), flow(BACKGROUND, "base23", "north")
    plan = planned(4, TWO, DEFAULT_POLICY, without(TWO, DEFAULT_POLICY, PlanInput(flows), NORTH))
    for which, known in ((CHILE, [("base20", "arch"), ("base23", "arch")]), (ILLINOIS, [("arch", "base21")])):
        fake = switch(plan, which)
        for ends in known:
            fate = fake.fate(packet(*ends))
            assert fate.output_port == SOUTH_PORT
            assert set(fate.meter_ids) < set(fake.meters)
        assert not {meter_id(TWO, (which.name, "north"), c) for c in FlowClass} & set(fake.meters)


def test_what_a_switch_holds_when_a_circuit_dies_is_there_before_it_does():
    network = tagged(TWO, {"north": 77})  # one that nobody has asked about yet
    make_ready(network, network.switches[0], frozenset(), {"north", "south"})
    known = standing_rules.cache_info().misses
    for circuit in ("north", "south"):
        standing_rules(network, network.switches[0], frozenset({circuit}))
    assert standing_rules.cache_info().misses == known
    standing_rules(network, network.switches[0], frozenset({"north", "south"}))
    assert standing_rules.cache_info().misses == known + 1


def test_after_a_death_a_line_that_flaps_moves_nobody():
    fake = switch(AFTER)
    assert fake.fate(packet("base20", "arch")).output_port == SOUTH_PORT
    fake.dead_ports = {NORTH_PORT}
    assert fake.fate(packet("base20", "arch")).output_port == SOUTH_PORT


@pytest.mark.parametrize(("old", "new"), [(BEFORE, AFTER), (AFTER, BEFORE)], ids=["it dies", "it returns"])
def test_while_the_rules_are_turned_over_every_packet_has_a_meter_that_is_there(old, new):
    before, after = (switch_state(TWO, CHILE, plan, DEFAULT_POLICY) for plan in (old, new))
    fake = FakeSwitch(before.rules, before.meters, before.groups)
    for message in messages(after, before):
        fake.apply(message)
        fate = fake.fate(packet("base20", "arch"))
        assert fate.output_port in (NORTH_PORT, SOUTH_PORT)
        assert len(fate.meter_ids) == 2


def test_what_is_still_sent_by_a_dead_circuit_leaves_at_its_rate_and_has_no_share():
    before, after = (port_queues(TWO, CHILE, plan) for plan in (BEFORE, AFTER))
    assert after["ls1-north"].port_max_bps >= before["ls1-north"].port_max_bps
    assert sum(queue.min_bps for queue in after["ls1-north"].queues) == len(FlowClass) * LEAST_QUEUE_BPS


def test_groups_do_not_change_with_the_plan():
    assert not any(
        isinstance(message, PutGroup)
        for message in messages(
            *(switch_state(TWO, CHILE, plan, DEFAULT_POLICY) for plan in (AFTER, BEFORE)),
        )
    )
    north, south = (group_id(TWO, ("ls1", line)) for line in ("north", "south"))
    groups = switch_state(TWO, CHILE, BEFORE, DEFAULT_POLICY).groups
    ports = Bucket(8), Bucket(9)
    assert groups == {FailoverGroup(north, ports), FailoverGroup(south, ports[::-1])}


def test_each_circuit_has_its_own_vlan_whichever_way_a_packet_has_come_to_it():
    network = tagged(TWO, {"north": 301, "south": 302})
    state = switch_state(network, CHILE, plan_of(flow(URGENT, "base20", "north")), DEFAULT_POLICY)
    fake = FakeSwitch(state.rules, state.meters, state.groups)
    assert fake.fate(packet("base20", "arch")).vlan_vids == (301,)
    fake.dead_ports = {NORTH_PORT}
    after = fake.fate(packet("base20", "arch"))
    assert (after.output_port, after.vlan_vids) == (SOUTH_PORT, (302,))
    arrived = packet("arch", "base20", SOUTH_PORT) | {"vlan_vid": 0x1000 | 302}
    assert (fake.fate(arrived).output_port, fake.fate(arrived).vlan_vids) == (1, ())


def test_with_both_lines_down_every_rule_has_its_meter():
    plan = planned(4, TWO, DEFAULT_POLICY, without(TWO, DEFAULT_POLICY, PlanInput(()), frozenset({"north", "south"})))
    assert set(switch(plan).meters) >= {meter_id(TWO, ("ls1", "north"), c) for c in FlowClass}


@pytest.mark.parametrize(("old", "new"), [(BEFORE, AFTER), (AFTER, BEFORE)], ids=["it dies", "it returns"])
def test_a_flow_that_moves_beside_keeps_room_in_its_sender_s_meter_until_the_rules_have_turned(old, new):
    carried_bps = {(e.flow.host, e.flow.flow_class): e.frame_bps for e in carried(old, new)}
    assert carried_bps
    lesser = lesser_of(old, new)
    via = next_step(InForce(lesser, old), lesser_of(lesser, new), new, is_within=True).plan
    for plan in (lesser, via):
        known = senders(TWO, CHILE, plan, DEFAULT_POLICY, MeterNumbers())
        rates_bps = {(sender.key.host, sender.key.flow_class): sender.frame_bps for sender in known}
        assert all(rates_bps[ends] >= bps for ends, bps in carried_bps.items())
