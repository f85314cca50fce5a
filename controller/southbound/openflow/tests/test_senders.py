"""Every sender's own meter: its allocations fit, and together they are its class's; and the numbers they have."""

from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.plan.flows import flow_on
from controller.plan.plan import PlanInput, Selector
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import DATABASE, IMAGE, RAW_IMAGES, flow, plan_of
from controller.plan.tests.ring import RING, any_demand
from controller.southbound.errors import MetersExhausted
from controller.southbound.openflow.desired import lowered, switch_state
from controller.southbound.openflow.messages import messages
from controller.southbound.openflow.meter_numbers import SENDER_METER_IDS, MeterNumbers, SenderKey, numbered_meters
from controller.southbound.openflow.rule_parts import FLOW_TABLE, SENDER_TABLE
from controller.southbound.openflow.senders import senders, targets_apart
from controller.southbound.openflow.state import METER_IDS, SwitchState
from controller.southbound.openflow.tests.fake_switch import FakeSwitch
from controller.southbound.openflow.tests.test_desired import many
from mininet_tests.testing.networks import chile_illinois
from topology.network import Hop
from topology.protocol import FlowClass
from topology.wire import answers_ppm

NETWORK = chile_illinois()
CHILE, ILLINOIS = NETWORK.switches
MARKED = replace(flow(FlowClass.BACKGROUND, "base20"), name="marked", selector=Selector(dest_port=873), mark=0b000111)


def senders_of(switch, *flows):
    """The senders at a switch for these flows, by host and class."""
    found = senders(NETWORK, switch, plan_of(*flows), DEFAULT_POLICY, MeterNumbers())
    return {(sender.key.host, sender.key.flow_class): sender for sender in found}


def test_each_of_two_senders_in_a_class_has_a_meter_of_its_allocation_and_no_more():
    plan = plan_of(*IMAGE)
    found = senders_of(CHILE, *IMAGE)
    for entry in plan.entries:
        assert entry.frame_bps <= found[entry.flow.host, FlowClass.URGENT].frame_bps < entry.frame_bps + 1000


def test_what_a_host_sends_to_few_in_a_class_has_a_meter_for_each_and_to_many_one():
    network = many(100)
    (here, _), hosts = network.switches, [host.name for host in network.hosts if host.site == "there"]
    assert targets_apart(network, here) == 3
    for count, names in ((2, hosts[:2]), (3, hosts[:3]), (4, [""])):
        paths = [network.path("here0", target) for target in hosts[:count]]
        flows = [flow_on(network, f"to-{n}", FlowClass.URGENT, path) for n, path in enumerate(paths)]
        plan = planned(2, network, DEFAULT_POLICY, PlanInput(tuple(flows)))
        found = senders(network, here, plan, DEFAULT_POLICY, MeterNumbers())
        assert {sender.key.target for sender in found} == set(names)
        assert sum(entry.frame_bps for entry in plan.entries) <= sum(sender.frame_bps for sender in found)
        assert {sender.is_alone for sender in found} == {len(names) == 1}


def test_what_a_host_floods_one_with_meets_no_meter_of_what_it_answers_another():
    state = switch_state(NETWORK, ILLINOIS, plan_of(*IMAGE), DEFAULT_POLICY)
    switch, addresses = FakeSwitch(state.rules, state.meters), {host.name: str(host.ip) for host in NETWORK.hosts}
    fields = {"in_port": NETWORK.link(ILLINOIS.name, "arch").port_no, "eth_type": 0x0800, "ip_dscp": 46}
    ends = [{"ipv4_src": addresses["arch"], "ipv4_dst": addresses[name]} for name in ("base20", "base21")]
    (own, of_class), (others, same_class) = (switch.fate(fields | of_pair).meter_ids for of_pair in ends)
    assert own != others
    assert of_class == same_class
    kbps = {meter.meter_id: meter.rate_kbps for meter in state.meters}
    assert kbps[own] + kbps[others] <= kbps[of_class] + 2


@pytest.mark.parametrize("counts", [(3, 4), (4, 3)])
def test_a_host_that_comes_to_send_to_many_or_to_few_has_room_for_all_it_sends_at_every_instant(counts):
    network, numbers, states, plans = many(100), MeterNumbers(), [], []
    (here, _), targets = network.switches, [host.name for host in network.hosts if host.site == "there"]
    for count in counts:
        paths = [network.path("here0", target) for target in targets[:count]]
        flows = [flow_on(network, f"to-{n}", FlowClass.URGENT, path) for n, path in enumerate(paths)]
        plans.append(planned(2, network, DEFAULT_POLICY, PlanInput(tuple(flows))))
        states.append(switch_state(network, here, plans[-1], DEFAULT_POLICY, numbers))
    switch, addresses = FakeSwitch(states[0].rules, states[0].meters), {h.name: str(h.ip) for h in network.hosts}
    fields = {"in_port": network.link(here.name, "here0").port_no, "eth_type": 0x0800, "ip_dscp": 0}
    least_bps = {t: min(e.frame_bps for p in plans for e in p.entries if e.flow.target == t) for t in targets[:3]}
    for message in messages(states[1], states[0]):
        switch.apply(message)
        for target, bps in least_bps.items():
            packet = fields | {"ipv4_src": addresses["here0"], "ipv4_dst": addresses[target]}
            own, of_class = switch.fate(packet).meter_ids
            assert of_class < SENDER_METER_IDS.start <= own
            assert switch.meters[own].rate_kbps * 1000 >= bps, str(message)
    assert switch.ours() == states[1]


def test_hosts_that_only_answer_share_what_their_class_has_on_the_way_back():
    sends = [flow_on(NETWORK, h, FlowClass.URGENT, NETWORK.path("arch", h)) for h in ("base20", "base21")]
    limits = plan_of(*sends).links[Hop("ls1", "ch1")].classes[FlowClass.URGENT]
    found = senders_of(CHILE, *sends)
    one, other = (found[host, FlowClass.URGENT].frame_bps for host in ("base20", "base21"))
    assert one == other
    assert limits.meter_bps - 2000 < one + other < limits.meter_bps + 2000


def test_a_sender_with_others_in_its_class_may_send_less_at_once_than_one_alone():
    at_once_s = []
    for flows in (IMAGE, IMAGE[:1]):
        number = senders_of(CHILE, *flows)["base20", FlowClass.URGENT].meter_id
        meters = switch_state(NETWORK, CHILE, plan_of(*flows), DEFAULT_POLICY).meters
        at_once_s += [m.burst_kbit / m.rate_kbps for m in meters if m.meter_id == number]
    assert at_once_s == pytest.approx([0.02, 0.5], rel=0.001)


def test_nobody_has_a_meter_of_his_own_who_is_not_planned():
    assert senders_of(CHILE).keys() == set()
    assert senders_of(CHILE, DATABASE).keys() == {("base22", FlowClass.PREDICTABLE)}


def test_two_classes_of_one_pair_have_a_meter_each():
    found = senders_of(CHILE, IMAGE[0], MARKED)
    assert found.keys() == {("base20", FlowClass.URGENT), ("base20", FlowClass.BACKGROUND)}
    assert len({sender.meter_id for sender in found.values()}) == 2
    # nothing marks answers: all ride there
    assert senders_of(ILLINOIS, IMAGE[0], MARKED).keys() == {("arch", FlowClass.URGENT)}


def test_a_sender_keeps_its_meter_while_others_come_and_go():
    numbers, seen = MeterNumbers(), set()
    for flows in ((RAW_IMAGES,), (RAW_IMAGES, *IMAGE), (DATABASE, RAW_IMAGES), (RAW_IMAGES, MARKED)):
        known = senders(NETWORK, CHILE, plan_of(*flows), DEFAULT_POLICY, numbers)
        seen |= {sender.meter_id for sender in known if sender.key.host == "base23"}
    assert len(seen) == 1


names = st.sampled_from("abcdefgh")
keys = st.builds(SenderKey, names, st.sampled_from(FlowClass), names)
places = st.dictionaries(keys, st.integers(0, 10**6), max_size=40)


@given(st.lists(places, max_size=4))
def test_numbers_are_the_sender_s_own_and_kept(plans):
    before = {}
    for homes in plans:
        found = numbered_meters("ls1", homes, before)
        assert found.keys() == homes.keys()
        assert len(set(found.values())) == len(found)
        assert set(found.values()) <= set(SENDER_METER_IDS) <= set(METER_IDS)
        assert all(found[key] == before[key] for key in homes if key in before)
        assert not {found[key] for key in homes if key not in before} & set(before.values())
        before = found


def test_more_senders_than_numbers_are_refused_in_words():
    most = len(SENDER_METER_IDS)
    homes = {SenderKey(str(n), FlowClass.URGENT, "north"): n for n in range(most)}
    assert len(set(numbered_meters("ls1", homes, {}).values())) == most
    with pytest.raises(MetersExhausted, match=r"ls1 would need 8,001 meters .* there are 8,000"):
        numbered_meters("ls1", homes | {SenderKey("z", FlowClass.URGENT, "north"): 0}, {})


def test_a_sender_that_comes_begins_at_its_own_rate_and_its_class_at_what_is_installed():
    before, after = (switch_state(NETWORK, CHILE, plan_of(*flows), DEFAULT_POLICY) for flows in ((), IMAGE))
    kbps = {m.meter_id: m.rate_kbps for m in after.meters}
    begun = {m.meter_id: m.rate_kbps for m in lowered(after, before).meters}
    own, of_class = {n for n in kbps if n >= SENDER_METER_IDS.start}, {n for n in kbps if n < SENDER_METER_IDS.start}
    assert len(own) == 2
    assert all(begun[n] == kbps[n] for n in own)
    installed = {m.meter_id: m.rate_kbps for m in before.meters}
    assert all(begun[n] <= installed[n] for n in of_class)


def test_what_comes_and_goes_with_a_plan_looks_at_nothing_that_a_cached_flow_has_not_been_looked_at_for():
    numbers = MeterNumbers()
    plans = [plan_of(), plan_of(*IMAGE), plan_of(IMAGE[0], MARKED), plan_of(MARKED, DATABASE)]
    states = [switch_state(NETWORK, CHILE, plan, DEFAULT_POLICY, numbers) for plan in plans]
    always = frozenset.intersection(*(frozenset(rule.key for rule in state.rules) for state in states))
    for state in states:
        for table_id, _, matched in {rule.key for rule in state.rules} - always:
            assert table_id in (FLOW_TABLE, SENDER_TABLE)
            assert {name for name, _ in matched} <= {"metadata", "eth_type", "ip_dscp"}


def test_an_announcement_changes_no_rule_but_its_own():
    numbers = MeterNumbers()
    before, after = (
        switch_state(NETWORK, CHILE, plan_of(*flows), DEFAULT_POLICY, numbers)
        for flows in ((DATABASE, RAW_IMAGES), (DATABASE, RAW_IMAGES, IMAGE[0], MARKED))
    )
    assert [rule.table_id for rule in sorted(after.rules - before.rules, key=str)] == [FLOW_TABLE] * 2 + [
        SENDER_TABLE
    ] * 2
    assert before.rules < after.rules
    sent = messages(SwitchState(before.rules, before.meters), after)
    assert sum(type(message).__name__ == "DeleteMeter" for message in sent) == 2


def needs_bps(plan, sent_bps):
    """What each two hosts' data takes of each class, where it enters a circuit, and the answers to what is sent."""
    needs, ppm = defaultdict(int), answers_ppm(RING.framing)
    aggregates = {(e.flow.host, e.flow.target): e.flow for e in plan.entries}
    for e in plan.entries:
        flow = e.flow
        needs[flow.host, flow.flow_class, flow.path[2], flow.target] += e.frame_bps
        back = aggregates.get((flow.target, flow.host))
        path = flow.path[::-1] if back is None else back.path
        flow_class = flow.flow_class if back is None else back.flow_class
        needs[flow.target, flow_class, path[2], flow.host] += -(-sent_bps(e) * ppm // 1_000_000)
    return needs


def may_send_bps(e):
    """What a flow may come to send: all that its class may have, if it wants all or stands by."""
    policy, flow = DEFAULT_POLICY.classes, e.flow
    others_ppm = sum(policy[c].guarantee_ppm for c in policy if c is not flow.flow_class)
    rates_bps = [link.rate_bps for hop in flow.links if (link := RING.link(*hop)).circuit]
    most_bps = min(rates_bps) * min(policy[flow.flow_class].cap_ppm, 1_000_000 - others_ppm) // 1_000_000
    if flow.wanted_bps is not None and not flow.standby_bps and not flow.is_away:
        most_bps = min(most_bps, max(flow.wanted_bps, flow.floor_bps))
    return max(e.frame_bps, most_bps)


@settings(deadline=None)  # four switches
@given(any_demand())
def test_each_sender_has_what_it_needs_and_an_equal_part_of_what_those_of_its_class_do_not(demand):
    plan = planned(2, RING, DEFAULT_POLICY, demand)
    now_bps, ever_bps = needs_bps(plan, lambda e: e.frame_bps), needs_bps(plan, may_send_bps)
    seen = set()
    for switch in RING.switches:
        known = senders(RING, switch, plan, DEFAULT_POLICY, MeterNumbers())
        assert len({sender.meter_id for sender in known}) == len(known)
        for sender in known:
            seen.add(sender.key)
            _, flow_class, head, _ = sender.key
            beside = [one for one in known if one.key[1:3] == sender.key[1:3]]
            class_bps = plan.links[Hop(switch.name, head)].classes[flow_class].meter_bps
            has_room = sum(ever_bps[one.key] for one in beside) <= class_bps
            needed_bps = ever_bps if has_room else now_bps
            sum_bps = sum(needed_bps[one.key] for one in beside)
            rate_bps = needed_bps[sender.key] + max(0, class_bps - sum_bps) // len(beside)
            assert sender.frame_bps == -(-rate_bps // 1000) * 1000
            assert sender.is_alone is (beside == [sender])
            assert sum(one.frame_bps for one in beside) < max(class_bps, sum_bps) + 1000 * len(beside)
    assert seen == now_bps.keys()


@pytest.mark.parametrize("sending", [(), ("base20",), ("base20", "base21")], ids=len)
def test_the_far_switch_polices_answers_alike_whoever_of_an_images_hosts_sends(sending):
    network, standby_bps = chile_illinois(), 10**7
    images = (
        [replace(one, standby_bps=standby_bps, wanted_bps=None if one.host in hosts else standby_bps) for one in IMAGE]
        for hosts in ((), sending)
    )
    plans = [plan_of(*image, RAW_IMAGES) for image in images]
    near, far = (
        [senders(network, switch, plan, DEFAULT_POLICY, MeterNumbers()) for plan in plans]
        for switch in network.switches
    )
    assert far[0] == far[1]
    assert (near[0] == near[1]) is not bool(sending)


def test_a_demand_without_flows_has_no_senders():
    plan = planned(2, RING, DEFAULT_POLICY, PlanInput(()))
    assert all(not senders(RING, switch, plan, DEFAULT_POLICY, MeterNumbers()) for switch in RING.switches)
