"""The OpenFlow southbound against a real Open vSwitch: userspace datapath, in a network namespace of our own."""

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from controller.plan.flows import flow_on
from controller.plan.plan import PlanInput
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.southbound.errors import RuleTaken, SwitchGone, SwitchRefused, SwitchTooSmall
from controller.southbound.openflow.circuit_ports import QUEUE_ID
from controller.southbound.openflow.connection import FEW
from controller.southbound.openflow.desired import switch_state
from controller.southbound.openflow.messages import PutRule
from controller.southbound.openflow.state import (
    Bucket,
    DropMeter,
    FailoverGroup,
    Rule,
    SwitchState,
    cookie,
    drop_meter,
    match,
)
from mininet_tests.site.openflow_stranger import TELLS, OpenFlowStranger
from mininet_tests.site.userspace_switch import (
    DPID,
    NEEDS_OVS,
    UserspaceSwitch,
    bridge_settings,
    connected_switch,
    in_switch_namespace,
)
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import asc_ring, chile_illinois_2
from topology.protocol import FlowClass
from topology.relinking import tagged

pytestmark = NEEDS_OVS

IP, ARP = 0x0800, 0x0806


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[UserspaceSwitch]:
    """A connected switch."""
    with connected_switch(tmp_path) as switch:
        yield switch


def desired() -> SwitchState:
    """A state that uses everything that a rule, a meter and a group can have."""
    meters = frozenset(drop_meter(1000 + number, 984_395_000, 500_000_000) for number in range(3))
    flow = match({"eth_type": IP, "ipv4_src": "10.0.0.1", "ipv4_dst": "10.2.0.0/16", "ip_proto": 6, "tcp_dst": 5000})
    return SwitchState(
        frozenset(
            {
                Rule(0, 400, flow, cookie(1), meter_id=1000, dscp=46, queue_id=2, goto_table=1),
                Rule(0, 200, match({"in_port": 7}), cookie(2), meter_id=1001, goto_table=1),
                Rule(
                    0, 100, match({"eth_type": IP, "ip_dscp": 8}), cookie(3), meter_id=1002, queue_id=0, output_port=1
                ),
                Rule(0, 90, match({"vlan_vid": 0x1000 | 5}), cookie(3), output_port=0xFFFF_FFFD),
                Rule(0, 95, match({"in_port": 9, "vlan_vid": 0x1000 | 6}), cookie(3), pop_vlan=True, goto_table=1),
                Rule(0, 80, match({"vlan_vid": (0x1000, 0x1000)}), cookie(3)),
                Rule(
                    0, 70, match({"in_port": 6}), cookie(3), metadata=(0x6 << 44 | 2, 0xFFFFF << 44 | 0xF), goto_table=1
                ),
                Rule(1, 60, match({"metadata": (2, 0x1F), "eth_type": ARP}), cookie(3), output_port=5),
                Rule(1, 90, match({"in_port": 8}), cookie(4), push_vlan=True, vlan_vid=6, output_port=9),
                Rule(1, 100, match({"eth_type": ARP, "arp_tpa": "10.2.0.1"}), cookie(4), output_port=2),
                Rule(1, 110, match({"eth_type": IP, "ip_dscp": 46}), cookie(4), group_id=1001),
                Rule(1, 0, match({}), cookie(4)),
            }
        ),
        meters,
        frozenset(
            {FailoverGroup(1000, (Bucket(8), Bucket(9))), FailoverGroup(1001, (Bucket(9, vlan_vid=6), Bucket(8)))}
        ),
    )


def test_a_plan_that_a_table_of_the_switch_has_no_room_for_is_refused_before_anything_is_sent(rig):
    small = ["--id=@small", "create", "Flow_Table", "flow_limit=1", "overflow_policy=refuse"]
    rig.ovs.vsctl("--", *small, "--", "set", "bridge", "s1", "flow_tables:1=@small")
    remote = rig.ovs.vsctl("get-controller", "s1").strip()
    rig.ovs.vsctl("del-controller", "s1")
    eventually(lambda: rig.listener.told == [DPID, -DPID], within_s=10, what="the switch has gone")
    rig.ovs.vsctl("set-controller", "s1", remote)
    eventually(
        lambda: rig.listener.told == [DPID, -DPID, DPID], within_s=10, what="it is back, and asked for its limits"
    )
    rules = [Rule(1, number, match({"in_port": number}), cookie(1), output_port=5) for number in (1, 2)]
    with pytest.raises(SwitchTooSmall, match="holds 1 rules in table 1 and 2 are needed"):
        rig.sessions.apply(DPID, SwitchState(frozenset(rules)), timeout_s=5)
    assert rig.sessions.installed(DPID) == SwitchState()
    rig.sessions.apply(DPID, SwitchState(frozenset(rules[:1])), timeout_s=5)


def test_what_is_read_back_is_what_was_desired(rig):
    rig.sessions.apply(DPID, desired(), timeout_s=5)
    assert rig.sessions.installed(DPID) == desired()


def test_the_same_state_again_changes_nothing_on_the_switch(rig):
    rig.sessions.apply(DPID, desired(), timeout_s=5)
    age_s = youngest_rule_s(rig)
    rig.sessions.apply(DPID, desired(), timeout_s=5)
    rig.sessions.installed(DPID)
    rig.sessions.apply(DPID, desired(), timeout_s=5)
    assert youngest_rule_s(rig) > age_s


def youngest_rule_s(rig: UserspaceSwitch) -> float:
    """The least age of all rules, seconds: a rule that is sent again starts from 0."""
    flows = rig.ovs.ofctl("dump-flows", "s1").splitlines()[1:]
    return min(float(line.split("duration=")[1].split("s")[0]) for line in flows)


def test_a_state_that_no_longer_wants_something_takes_it_away(rig):
    rig.sessions.apply(DPID, desired(), timeout_s=5)
    rig.sessions.apply(DPID, SwitchState(), timeout_s=5)
    assert rig.sessions.installed(DPID) == SwitchState()
    assert rig.flows().strip() == ""


def test_a_change_made_behind_our_back_is_seen_and_put_right(rig):
    rig.sessions.apply(DPID, desired(), timeout_s=5)
    rig.ovs.ofctl("del-flows", "s1", "table=1")
    rig.ovs.ofctl("mod-flows", "s1", "in_port=7,actions=drop")
    rig.ovs.ofctl("mod-meter", "s1", "meter=1000,pktps,bands=type=drop,rate=5")
    rig.ovs.ofctl("mod-group", "s1", "group_id=1000,type=all,bucket=output:8,bucket=output:9")
    rig.ovs.ofctl("mod-group", "s1", "group_id=1001,type=ff,bucket=watch_port:9,output:8,bucket=watch_port:8,output:8")
    seen = rig.sessions.installed(DPID)
    assert len(seen.rules) == len([rule for rule in desired().rules if rule.table_id != 1])
    assert DropMeter(1000, 0, 0) in seen.meters
    assert seen.groups == {FailoverGroup(1000, ()), FailoverGroup(1001, ())}
    rig.sessions.apply(DPID, desired(), timeout_s=5)
    assert rig.sessions.installed(DPID) == desired()


def test_an_action_that_we_never_write_is_seen_and_put_right(rig):
    rig.sessions.apply(DPID, desired(), timeout_s=5)
    rig.ovs.ofctl("mod-flows", "s1", "in_port=7,actions=set_field:02:00:00:00:00:09->eth_src,output:3")
    odd = [rule for rule in rig.sessions.installed(DPID).rules if rule.extra]
    assert [rule.match for rule in odd] == [match({"in_port": 7})]
    rig.sessions.apply(DPID, desired(), timeout_s=5)
    assert rig.sessions.installed(DPID) == desired()


def test_a_refusal_has_the_switch_s_type_and_code_and_leaves_us_knowing_what_is_there(rig):
    rig.sessions.apply(DPID, desired(), timeout_s=5)
    lacks_prerequisite = Rule(0, 50, match({"ipv4_dst": "10.3.0.1"}), cookie(5))
    bad = replace(desired(), rules=desired().rules | {lacks_prerequisite})
    with pytest.raises(SwitchRefused) as refused:
        rig.sessions.apply(DPID, bad, timeout_s=5)
    assert (refused.value.error_type, refused.value.error_code) == (4, 9)  # OFPET_BAD_MATCH, OFPBMC_BAD_PREREQ
    assert refused.value.message == PutRule(lacks_prerequisite)
    rig.sessions.apply(DPID, desired(), timeout_s=5)
    assert rig.sessions.installed(DPID) == desired()


def test_a_group_that_is_taken_away_behind_our_back_comes_again_with_the_rules_that_went_with_it(rig):
    rig.sessions.apply(DPID, desired(), timeout_s=5)
    rig.ovs.ofctl("del-groups", "s1", "group_id=1001")
    seen = rig.sessions.installed(DPID)
    assert len(seen.groups) == 1
    assert len(seen.rules) == len(desired().rules) - 1
    rig.sessions.apply(DPID, desired(), timeout_s=5)
    assert rig.sessions.installed(DPID) == desired()


def test_it_is_told_at_once_of_a_port_that_goes_down_and_comes_up(rig):
    rig.ovs.vsctl("add-port", "s1", "p8", "--", "set", "interface", "p8", "type=internal", "ofport_request=8")
    eventually(lambda: rig.listener.names.get(8) == "p8", within_s=5, what="told of the new port, by its name")
    for config, is_live in (("up", True), ("down", False), ("up", True)):
        rig.ovs.ofctl("mod-port", "s1", "p8", config)
        eventually(lambda live=is_live: rig.listener.live[8] is live, within_s=1, what=f"told that it is {config}")
    rig.ovs.vsctl("del-port", "s1", "p8")
    eventually(lambda: rig.listener.live[8] is False, within_s=1, what="told that the port is gone")


def test_a_protected_packet_leaves_by_the_other_port_in_its_queue_while_its_own_is_down(rig):
    network = chile_illinois_2()
    urgent = flow_on(network, "urgent", FlowClass.URGENT, network.path("base20", "arch"))
    plan = planned(2, network, DEFAULT_POLICY, PlanInput((urgent,)))
    for number in (1, 8, 9):
        name = f"p{number}"
        rig.ovs.vsctl(
            "add-port", "s1", name, "--", "set", "interface", name, "type=internal", f"ofport_request={number}"
        )
        rig.ovs.ofctl("mod-port", "s1", name, "up")
    eventually(
        lambda: all(rig.listener.live.get(number) for number in (1, 8, 9)), within_s=5, what="all ports are live"
    )
    rig.sessions.apply(DPID, switch_state(network, network.switches[0], plan, DEFAULT_POLICY), timeout_s=5)
    packets = {
        host: f"in_port=1,tcp,nw_src={network.host(host).ip},nw_dst=10.20.20.100" for host in ("base20", "base21")
    }

    def actions(host: str) -> str:
        return rig.ovs.appctl("ofproto/trace", "s1", packets[host]).partition("Datapath actions: ")[2].strip()

    def leaves_by(host: str) -> str:
        return actions(host).rpartition(",")[2] or "drop"

    ports = {number: leaves_by_port(rig, number) for number in (8, 9)}
    assert (leaves_by("base20"), leaves_by("base21")) == (ports[8], ports[8])
    whole = actions("base20")
    rig.ovs.ofctl("mod-port", "s1", "p8", "down")
    eventually(lambda: leaves_by("base20") == ports[9], within_s=1, what="the urgent packet leaves by the other port")
    assert actions("base20").rpartition(",")[0] == whole.rpartition(",")[0]  # meter, mark and queue are the same
    assert "skb_priority(0x" in whole
    assert leaves_by("base21") != ports[9]  # nobody has planned it, so it waits
    rig.ovs.ofctl("mod-port", "s1", "p8", "up")
    eventually(lambda: leaves_by("base20") == ports[8], within_s=1, what="it leaves by its own port again")


def leaves_by_port(rig: UserspaceSwitch, number: int) -> str:
    """The datapath's number of a port."""
    shown = rig.ovs.appctl("dpif/show")
    return next(line.split("/")[1].split(":")[0] for line in shown.splitlines() if line.split()[:1] == [f"p{number}"])


def test_somebody_else_s_rule_meter_and_group_stay(rig):
    rig.ovs.ofctl("add-group", "s1", "group_id=5,type=ff,bucket=watch_port:3,output:3")
    rig.ovs.ofctl("add-meter", "s1", "meter=5,kbps,bands=type=drop,rate=1000")
    rig.ovs.ofctl("add-flow", "s1", "cookie=0x77,priority=7,ip,nw_dst=10.9.9.9,actions=meter:5,output:3")
    rig.sessions.apply(DPID, desired(), timeout_s=5)
    rig.sessions.apply(DPID, SwitchState(), timeout_s=5)
    assert "cookie=0x77" in rig.flows()
    assert "meter=5" in rig.ovs.ofctl("dump-meters", "s1")
    assert "group_id=5" in rig.ovs.ofctl("dump-groups", "s1")


def test_a_rule_is_not_put_over_somebody_else_s(rig):
    rig.ovs.ofctl("add-flow", "s1", "cookie=0x77,priority=100,ip,nw_tos=32,actions=output:3")
    with pytest.raises(RuleTaken) as taken:
        rig.sessions.apply(DPID, desired(), timeout_s=5)
    assert taken.value.cookie == 0x77
    assert rig.sessions.installed(DPID) == SwitchState()


def test_somebody_else_s_rule_is_found_among_many_new_ones_of_ours(rig):
    rig.sessions.apply(DPID, SwitchState(), timeout_s=5)
    many = [Rule(0, 100, match({"in_port": number}), cookie(1), output_port=3) for number in range(1, 2 * FEW)]
    rig.ovs.ofctl("add-flow", "s1", "cookie=0x77,priority=100,in_port=7,actions=output:3")
    with pytest.raises(RuleTaken) as taken:
        rig.sessions.apply(DPID, SwitchState(frozenset(many)), timeout_s=5)
    assert taken.value.rule == many[6]
    rig.ovs.ofctl("del-flows", "s1", "in_port=7")
    assert rig.sessions.apply(DPID, SwitchState(frozenset(many)), timeout_s=5) == len(many)


def test_a_switch_that_dies_is_noticed_within_a_second(rig):
    rig.sessions.apply(DPID, desired(), timeout_s=5)
    rig.ovs.kill_switch()
    eventually(lambda: rig.listener.told == [DPID, -DPID], within_s=1, what="told that the switch has gone")
    with pytest.raises(SwitchGone):
        rig.sessions.apply(DPID, desired(), timeout_s=5)


def test_a_switch_that_hangs_is_noticed_by_its_silence(rig):
    pid = int((rig.ovs.directories.run / "ovs-vswitchd.pid").read_text())
    os.kill(pid, signal.SIGSTOP)
    try:
        eventually(lambda: rig.listener.told == [DPID, -DPID], within_s=5, what="told that the switch has gone")
    finally:
        os.kill(pid, signal.SIGCONT)
    eventually(lambda: rig.listener.told == [DPID, -DPID, DPID], within_s=10, what="the switch is back")


def test_another_bridge_under_the_same_datapath_id_never_takes_the_place_of_the_one_that_is_there(rig):
    rig.sessions.apply(DPID, desired(), timeout_s=5)
    target = rig.ovs.vsctl("get-controller", "s1").strip()
    settings = ["set", "bridge", "s2", *bridge_settings(DPID)]
    rig.ovs.vsctl("add-br", "s2", "--", *settings, "--", "set-controller", "s2", target)
    rig.ovs.vsctl("set", "controller", "s2", "max_backoff=1000")
    eventually(lambda: len(rig.listener.claims) >= 2, within_s=10, what="turned away twice")
    assert {dpid for dpid, _ in rig.listener.claims} == {DPID}
    assert rig.listener.told == [DPID]
    assert rig.sessions.apply(DPID, SwitchState(), timeout_s=5) > 10  # the first obeys
    assert rig.flows().strip() == ""
    assert rig.ovs.ofctl("--no-stats", "dump-flows", "s2").strip() == ""
    rig.ovs.vsctl("del-br", "s1")
    eventually(lambda: rig.listener.told == [DPID, -DPID, DPID], within_s=10, what="the other has its place then")


def test_a_stranger_who_copies_all_of_a_switch_gets_no_rule_and_nothing_of_what_he_says_is_believed(rig):
    rig.sessions.apply(DPID, desired(), timeout_s=5)
    port = int(rig.ovs.vsctl("get-controller", "s1").strip().rpartition(":")[2])
    mac = rig.ovs.vsctl("get", "interface", "s1", "mac_in_use").strip().strip('"')
    with in_switch_namespace():
        stranger = OpenFlowStranger(("127.0.0.1", port), DPID, {0xFFFF_FFFE: mac})
    eventually(lambda: stranger.is_ended, within_s=10, what="it is turned away")
    stranger.loses_ports()
    stranger.close()
    eventually(lambda: rig.listener.claims, within_s=10, what="it is told of")
    assert not TELLS & set(stranger.heard)
    assert (rig.listener.told, [claim[0] for claim in rig.listener.claims]) == ([DPID], [DPID])
    assert rig.sessions.ports(DPID)
    assert rig.sessions.apply(DPID, SwitchState(), timeout_s=5) > 10  # the switch obeys


def test_a_switch_that_comes_back_empty_gets_all_of_it(rig):
    rig.sessions.apply(DPID, desired(), timeout_s=5)
    rig.ovs.kill_switch()
    rig.ovs.start_switch()
    eventually(lambda: rig.listener.told == [DPID, -DPID, DPID], within_s=10, what="the switch is back")
    rig.sessions.apply(DPID, desired(), timeout_s=5)
    assert rig.sessions.installed(DPID) == desired()


def test_after_a_lost_connection_only_the_difference_is_sent(rig):
    rig.sessions.apply(DPID, desired(), timeout_s=5)
    target = rig.ovs.vsctl("get-controller", "s1").strip()
    rig.ovs.vsctl("set-controller", "s1", "tcp:127.0.0.1:1")  # another, not none: with none OVS would flush
    eventually(lambda: rig.listener.told == [DPID, -DPID], within_s=5, what="told that the switch has gone")
    rig.ovs.vsctl("set-controller", "s1", target)
    eventually(lambda: rig.listener.told == [DPID, -DPID, DPID], within_s=10, what="the switch is back")
    age_s = youngest_rule_s(rig)
    rig.sessions.apply(DPID, desired(), timeout_s=5)
    assert youngest_rule_s(rig) > age_s


def test_a_change_of_meters_is_confirmed_within_milliseconds(rig):
    rig.sessions.apply(DPID, desired(), timeout_s=5)
    times_ms = []
    for number in range(100):
        rate_bps = 100_000_000 + number % 2 * 1_000_000
        meters = frozenset(drop_meter(meter.meter_id, rate_bps, 50_000_000) for meter in desired().meters)
        started_s = time.perf_counter()
        rig.sessions.apply(DPID, replace(desired(), meters=meters), timeout_s=5)
        times_ms.append((time.perf_counter() - started_s) * 1000)
    times_ms.sort()
    print(f"meters confirmed: median {times_ms[50]:.2f} ms, worst {times_ms[-1]:.2f} ms")
    assert times_ms[50] < 20


def test_where_circuits_meet_a_packet_leaves_in_the_next_ones_vlan_and_its_class_s_queue(rig):
    ring = tagged(asc_ring(), {"albuquerque-los-alamos": 301, "los-alamos-pop": 302})
    wanted = flow_on(ring, "images", FlowClass.URGENT, ring.path("albu10", "pop10"))
    plan = planned(2, ring, DEFAULT_POLICY, PlanInput((wanted,)))
    for port_no in (1, 2, 8, 9):
        port = ["add-port", "s1", f"p{port_no}", "--", "set", "interface", f"p{port_no}", "type=internal"]
        rig.ovs.vsctl(*port, f"ofport_request={port_no}")
    state = switch_state(ring, ring.edge_switch("los-alamos"), plan, DEFAULT_POLICY)
    rig.sessions.apply(DPID, state, timeout_s=5)
    assert rig.sessions.installed(DPID) == state

    def traced(**fields: object) -> str:
        addresses = {"nw_src": ring.host("albu10").ip, "nw_dst": ring.host("pop10").ip}
        packet = ",".join(f"{name}={value}" for name, value in (addresses | fields).items())
        return rig.ovs.appctl("ofproto/trace", "s1", f"ip,{packet}").split("Datapath actions: ")[1].strip()

    marked = {"in_port": 9, "nw_tos": DEFAULT_POLICY.classes[FlowClass.URGENT].dscp << 2}
    transit = traced(**marked, dl_vlan=301)
    urgent = f"0x{QUEUE_ID[FlowClass.URGENT]:x}"  # the userspace datapath's name of the queue
    assert transit.startswith(f"pop_vlan,push_vlan(vid=302,pcp=0),set(skb_priority({urgent})),"), transit
    assert traced(**marked) == traced(**marked, dl_vlan=302) == "drop"
    assert traced(in_port=9, dl_vlan=301, nw_dst=ring.host("losa10").ip).startswith("pop_vlan,")
