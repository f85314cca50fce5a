"""A switch with what an earlier version has put there, five tables and a meter for each two hosts, comes to ours."""

import json
from collections import Counter
from pathlib import Path

from controller.plan.plan import PlanInput
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.ring import PAIRS, RING, flow
from controller.southbound.openflow.circuit_ports import QUEUE_ID
from controller.southbound.openflow.desired import lowered, switch_state
from controller.southbound.openflow.messages import messages
from controller.southbound.openflow.meter_numbers import SENDER_METER_IDS, MeterNumbers
from controller.southbound.openflow.rule_parts import LEAVE_TABLE
from controller.southbound.openflow.senders import senders
from controller.southbound.openflow.state import DropMeter, Rule, SwitchState, match
from controller.southbound.openflow.tests.fake_switch import FakeSwitch
from topology.protocol import FlowClass

ALBUQUERQUE = RING.edge_switch("albuquerque")
CLASSES = FlowClass.URGENT, FlowClass.BACKGROUND
OURS = [pair for pair in PAIRS if pair[0].startswith("albu")]
FLOWS = tuple(flow(CLASSES[n % 2], *pair, way=n % 2) for n, pair in enumerate(OURS))
PLAN = planned(2, RING, DEFAULT_POLICY, PlanInput(FLOWS))


def left_behind():
    """What the version before this one had put on the switch for that plan; made by it."""
    shown = json.loads((Path(__file__).parent / "data" / "five_tables.json").read_text())
    rules = []
    for fields in shown["rules"]:
        matched = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.pop("match")}
        bits = tuple(fields.pop("metadata")) if "metadata" in fields else None
        rules.append(Rule(fields.pop("table_id", 0), match=match(matched), metadata=bits, **fields))
    return SwitchState(frozenset(rules), frozenset(DropMeter(*parts) for parts in shown["meters"]))


def packets():
    """A packet of each pair, and one of a stranger."""
    addresses = {h.name: str(h.ip) for h in RING.hosts}
    for source, target in OURS:
        port = RING.link(ALBUQUERQUE.name, source).port_no
        ends = {"ipv4_src": addresses[source], "ipv4_dst": addresses[target]}
        yield {"in_port": port, "eth_type": 0x0800, "ip_dscp": 0} | ends
    yield {"in_port": 99, "eth_type": 0x0800, "ip_dscp": 46, "ipv4_src": "10.9.9.9", "ipv4_dst": addresses["pop10"]}


def treated(switch, packet):
    """By which port and queue a packet leaves, with which mark, and the meter of its class."""
    fate = switch.fate(packet)
    return fate.output_port, fate.queue_id, fate.dscp, fate.meter_ids[-1]


def test_at_no_instant_of_an_upgrade_is_a_packet_treated_otherwise_or_held_by_less_than_what_is_planned():
    before = left_behind()
    after = switch_state(RING, ALBUQUERQUE, PLAN, DEFAULT_POLICY)
    known_senders = senders(RING, ALBUQUERQUE, PLAN, DEFAULT_POLICY, MeterNumbers())
    assert {rule.table_id for rule in before.rules} == set(range(LEAVE_TABLE)) != {r.table_id for r in after.rules}
    switch = FakeSwitch(before.rules, before.meters)
    known = list(packets())
    wanted = [treated(switch, packet) for packet in known]
    assert {queue_id for _, queue_id, _, _ in wanted} == {0, *(QUEUE_ID[c] for c in CLASSES)}
    planned_kbps = {e.flow.host + e.flow.target: e.frame_bps // 1000 for e in PLAN.entries}
    for step in (lowered(after, before), after):  # as a controller that starts brings in its first plan
        for message in messages(step, switch.ours()):
            switch.apply(message)
            assert [treated(switch, packet) for packet in known] == wanted, str(message)
            for (source, target), packet in zip(OURS, known, strict=False):
                own = [n for n in switch.fate(packet).meter_ids if n in SENDER_METER_IDS]
                assert all(switch.meters[n].rate_kbps >= planned_kbps[source + target] for n in own), str(message)
        sent_kbps = Counter()
        for entry in PLAN.entries:
            flow_ = entry.flow
            sent_kbps[flow_.host, flow_.flow_class, flow_.path[2], flow_.target] += entry.frame_bps // 1000
        for key, number in ((sender.key, sender.meter_id) for sender in known_senders):
            assert switch.meters[number].rate_kbps >= sent_kbps[key]
    assert switch.ours() == after
