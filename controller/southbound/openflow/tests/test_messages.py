"""From one switch state to another, message by message."""

import itertools
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.southbound.errors import NotExpressible, NotSettable
from controller.southbound.openflow.messages import (
    Barrier,
    DeleteGroup,
    DeleteMeter,
    DeleteRule,
    PutGroup,
    PutMeter,
    PutRule,
    messages,
)
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
from controller.southbound.openflow.tests.fake_switch import FakeSwitch, Fate, Packet, RefusedByFake

FOREIGN_METER = DropMeter(7, 5_000, 500)
FOREIGN_RULE = Rule(0, 65_535, match({"in_port": 9}), cookie=0x77, meter_id=7, output_port=3)
FOREIGN_GROUP = FailoverGroup(7, (Bucket(3), Bucket(4)))
_METER_IDS = (1000, 1001, 1002, 1003)
_DESTINATIONS = ("10.0.0.1", "10.0.0.2")
_PACKETS: tuple[Packet, ...] = tuple({"eth_type": 0x0800, "ipv4_dst": address} for address in _DESTINATIONS)


def rule(priority: int, address: str, meter_id: int | None = None, port_no: int = 1) -> Rule:
    """A rule of ours for one destination; a negative port is a group."""
    fields = match({"eth_type": 0x0800, "ipv4_dst": address})
    out = {"output_port": port_no} if port_no > 0 else {"group_id": -port_no}
    return Rule(0, priority, fields, cookie(1), meter_id=meter_id, queue_id=meter_id and 1, **out)


@st.composite
def states(draw: st.DrawFn) -> SwitchState:
    """Any state over few meters, groups, priorities and destinations, so that two of them often collide."""
    rates = draw(st.dictionaries(st.sampled_from(_METER_IDS), st.integers(1, 9)))
    meters = frozenset(drop_meter(id_, rate * 1_000_000, 1_000_000) for id_, rate in rates.items())
    ports = draw(st.dictionaries(st.integers(1000, 1001), st.permutations((1, 2))))
    groups = frozenset(FailoverGroup(id_, tuple(map(Bucket, order))) for id_, order in ports.items())
    actions = st.tuples(st.sampled_from([None, *rates]), st.sampled_from([1, 2, *(-id_ for id_ in ports)]))
    keys = st.tuples(st.integers(1, 3), st.sampled_from((*_DESTINATIONS, "10.0.0.0/24")))
    rules = draw(st.dictionaries(keys, actions))
    return SwitchState(frozenset(rule(*key, *action) for key, action in rules.items()), meters, groups)


def shared_switch(state: SwitchState) -> FakeSwitch:
    """A switch with ``state`` of ours on it and something of somebody else's."""
    return FakeSwitch(state.rules | {FOREIGN_RULE}, state.meters | {FOREIGN_METER}, state.groups | {FOREIGN_GROUP})


def instants(before: SwitchState, after: SwitchState) -> Iterator[FakeSwitch]:
    """Yield the switch before the first message and after each."""
    switch = shared_switch(before)
    yield switch
    for message in messages(after, before):
        switch.apply(message)
        yield switch


def rates_kbps(switch: FakeSwitch, meter_ids: set[int]) -> int:
    """The sum over some meters."""
    return sum(meter.rate_kbps for meter in switch.ours().meters if meter.meter_id in meter_ids)


@given(states(), states())
def test_the_messages_lead_to_the_desired_state_and_a_second_time_there_are_none(before, after):
    *_, switch = instants(before, after)
    assert switch.ours() == after
    assert messages(after, switch.ours()) == ()


@given(states(), st.integers(1, 9))
def test_where_only_rates_change_the_same_rules_need_not_be_looked_at(state, rate):
    meters = frozenset(drop_meter(m.meter_id, rate * 1_000_000, 1_000_000) for m in state.meters)
    same, equal = (SwitchState(rules, meters, state.groups) for rules in (state.rules, frozenset(list(state.rules))))
    assert messages(same, state) == messages(equal, state)


@given(states(), states())
def test_there_is_one_message_for_each_rule_meter_and_group_that_differs_and_no_more(before, after):
    rule_keys = {r.key for r in before.rules ^ after.rules}
    meter_ids = {m.meter_id for m in before.meters ^ after.meters}
    sent = [message for message in messages(after, before) if not isinstance(message, Barrier)]
    group_ids = {g.group_id for g in before.groups ^ after.groups}
    assert len(sent) == len(rule_keys) + len(meter_ids) + len(group_ids)


@given(states(), states())
def test_at_no_instant_do_the_meters_that_stay_sum_to_more_than_before_or_after(before, after):
    stay = {m.meter_id for m in before.meters} & {m.meter_id for m in after.meters}
    sums = [rates_kbps(switch, stay) for switch in instants(before, after)]
    assert max(sums) <= max(sums[0], sums[-1])


@given(states(), states())
def test_at_no_instant_do_all_meters_sum_to_more_unless_one_replaces_another(before, after):
    old, new = ({m.meter_id for m in state.meters} for state in (before, after))
    sums = [rates_kbps(switch, set(_METER_IDS)) for switch in instants(before, after)]
    if not (old - new and new - old):
        assert max(sums) <= max(sums[0], sums[-1])


@given(states(), states())
def test_a_packet_that_has_a_rule_before_and_after_has_one_at_every_instant(before, after):
    for packet in _PACKETS:
        had, will_have = (shared_switch(state).fate(packet) for state in (before, after))
        if had.rules and will_have.rules:
            assert all(switch.fate(packet).rules for switch in instants(before, after))


def refused(before: SwitchState, after: SwitchState, number: int) -> Iterator[FakeSwitch]:
    """Yield the switch before the first message and after each that it is sent; it refuses one, by its number.

    What has been sent with that one is done, as far as it does not stand on it; nothing after the next awaited barrier
    is sent.
    """
    switch = shared_switch(before)
    yield switch
    is_refused = False
    for count, message in enumerate(messages(after, before)):
        if is_refused and isinstance(message, Barrier) and message.is_awaited:
            return
        is_refused = is_refused or count == number
        with suppress(RefusedByFake):
            if count != number:
                switch.apply(message)
        yield switch


@given(states(), states(), st.data())
def test_whatever_is_refused_nothing_sums_to_more_and_no_packet_loses_its_rule(before, after, data):
    sent = messages(after, before)
    if not sent:
        return
    number = data.draw(st.integers(0, len(sent) - 1))
    old, new = ({m.meter_id for m in state.meters} for state in (before, after))
    for some in (old & new, old | new):
        sums = [rates_kbps(switch, some) for switch in refused(before, after, number)]
        bound_kbps = max(rates_kbps(shared_switch(state), some) for state in (before, after))
        assert max(sums) <= bound_kbps or (some != old & new and old - new and new - old)  # one replaces another
    for packet in _PACKETS:
        had, will_have = (shared_switch(state).fate(packet) for state in (before, after))
        if had.rules and will_have.rules:
            assert all(switch.fate(packet).rules for switch in refused(before, after, number))


def meters(**rates_mbps: int) -> frozenset[DropMeter]:
    """Meters by ``m`` and their number."""
    return frozenset(drop_meter(int(name[1:]), mbps * 1_000_000, 1000) for name, mbps in rates_mbps.items())


OLD, NEW = rule(5, "10.0.0.1", 2000), rule(5, "10.0.0.1", 2001)
OTHER, LATER = rule(5, "10.0.0.2", 1000), rule(6, "10.0.0.2", 1000)


@pytest.mark.parametrize(
    ("before", "after", "waits"),
    [
        (SwitchState(meters=meters(m1000=5, m2000=5)), SwitchState(meters=meters(m1000=1, m2000=1)), [False]),
        (SwitchState(meters=meters(m1000=1, m2000=1)), SwitchState(meters=meters(m1000=5, m2000=5)), [False]),
        (SwitchState(meters=meters(m1000=5, m1001=1)), SwitchState(meters=meters(m1000=1, m1001=5)), [True]),
        (SwitchState(meters=meters(m1000=5)), SwitchState(meters=meters(m1000=1, m1001=4)), [True]),
        (
            SwitchState(frozenset({OLD}), meters(m2000=5)),
            SwitchState(frozenset({NEW}), meters(m2000=1, m2001=5)),
            [True],
        ),
        (
            SwitchState(frozenset({OTHER}), meters(m1000=1, m1001=5)),
            SwitchState(frozenset({LATER}), meters(m1000=5, m1001=1)),
            [False, True, False],
        ),
    ],
    ids=[
        "a class's and its sender's meter shrink",
        "both grow",
        "one class for another",
        "a class's meter comes for another's part",
        "a sender has less once its rule is turned",
        "a class for another, a rule for another",
    ],
)
def test_a_switch_is_waited_for_only_where_a_refusal_must_stop_what_comes_next(before, after, waits):
    assert [message.is_awaited for message in messages(after, before) if isinstance(message, Barrier)] == waits


@given(states(), states())
def test_what_others_have_set_is_not_touched(before, after):
    for switch in instants(before, after):
        assert switch.others() == SwitchState(
            frozenset({FOREIGN_RULE}), frozenset({FOREIGN_METER}), frozenset({FOREIGN_GROUP})
        )


def test_shrinking_is_confirmed_before_anything_grows():
    before = SwitchState(meters=frozenset({drop_meter(1000, 5_000_000, 1000), drop_meter(1001, 5_000_000, 1000)}))
    shrunk, grown = drop_meter(1001, 1_000_000, 1000), drop_meter(1000, 9_000_000, 1000)
    sent = messages(SwitchState(meters=frozenset({shrunk, grown})), before)
    assert sent == (PutMeter(shrunk, exists=True), Barrier(), PutMeter(grown, exists=True))


@pytest.mark.parametrize("rates", [(1_000_000, 5_000_000), (5_000_000, 1_000_000)], ids=["grows", "shrinks"])
def test_a_sender_s_meter_has_room_for_before_and_after_as_long_as_rules_are_turned(rates):
    came, stays = rule(5, "10.0.0.1", 2000), rule(5, "10.0.0.2", 2000)
    of_rates = [drop_meter(2000, bps, 1000) for bps in rates]
    before, after = (
        SwitchState(rules, frozenset({meter}))
        for rules, meter in zip((frozenset({stays}), frozenset({stays, came})), of_rates, strict=True)
    )
    seen_at = [(len(at.rules), {m.rate_kbps for m in at.meters}) for at in (s.ours() for s in instants(before, after))]
    most_kbps = {max(rates) // 1000}
    assert [count for count, kbps in seen_at if kbps == most_kbps][:2] == [1, 2]
    (seen,) = {message for message in messages(after, before) if isinstance(message, PutMeter)}
    assert seen.meter == of_rates[1]


def test_a_rule_whose_action_changes_is_replaced_in_place():
    before, after = rule(5, "10.0.0.1", port_no=1), rule(5, "10.0.0.1", port_no=2)
    assert messages(SwitchState(frozenset({after})), SwitchState(frozenset({before}))) == (PutRule(after),)


def test_a_meter_comes_before_its_rule_and_goes_after_it():
    old, new = drop_meter(1000, 5_000_000, 1000), drop_meter(1001, 5_000_000, 1000)
    before = SwitchState(frozenset({rule(5, "10.0.0.1", 1000)}), frozenset({old}))
    after = SwitchState(frozenset({rule(6, "10.0.0.1", 1001)}), frozenset({new}))
    assert messages(after, before) == (
        PutMeter(new, exists=False),
        PutRule(rule(6, "10.0.0.1", 1001)),
        Barrier(),
        DeleteRule(rule(5, "10.0.0.1", 1000)),
        DeleteMeter(old),
    )


def test_a_group_comes_before_its_rule_and_goes_after_it():
    old, new = FailoverGroup(1000, (Bucket(1), Bucket(2, vlan_vid=5))), FailoverGroup(1001, (Bucket(2), Bucket(1)))
    before = SwitchState(frozenset({rule(5, "10.0.0.1", port_no=-1000)}), groups=frozenset({old}))
    after = SwitchState(frozenset({rule(6, "10.0.0.1", port_no=-1001)}), groups=frozenset({new}))
    assert messages(after, before) == (
        PutGroup(new, exists=False),
        PutRule(rule(6, "10.0.0.1", port_no=-1001)),
        Barrier(),
        DeleteRule(rule(5, "10.0.0.1", port_no=-1000)),
        DeleteGroup(old),
    )


def test_a_packet_leaves_by_the_first_live_port_of_its_group():
    group = FailoverGroup(1000, (Bucket(1), Bucket(2, vlan_vid=5)))
    switch = FakeSwitch(frozenset({rule(5, "10.0.0.1", port_no=-1000)}), groups=frozenset({group}))
    left_by = []
    for dead in (set(), {1}, {1, 2}, {2}):
        switch.dead_ports = dead
        left_by.append(switch.fate(_PACKETS[0]).output_port)
    assert left_by == [1, 2, None, 1]


def test_a_packet_goes_through_meter_mark_queue_and_next_table():
    classify = Rule(0, 5, match({"eth_type": 0x0800}), cookie(1), meter_id=1000, dscp=46, queue_id=2, goto_table=1)
    forward = Rule(1, 5, match({"ipv4_dst": "10.0.0.0/24", "eth_type": 0x0800}), cookie(1), output_port=4)
    switch = FakeSwitch(frozenset({classify, forward}))
    assert switch.fate(_PACKETS[0]) == Fate((classify, forward), (1000,), 46, 2, 4)
    assert switch.fate({"eth_type": 0x0800, "ipv4_dst": "10.9.0.1"}).output_port is None


@pytest.mark.parametrize(
    "desired",
    [
        SwitchState(frozenset({Rule(0, 1, (), cookie=0x77)})),
        SwitchState(frozenset({rule(1, "10.0.0.1", meter_id=1000)})),
        SwitchState(meters=frozenset({DropMeter(7, 1, 1)})),
        SwitchState(meters=frozenset({DropMeter(1000, 1, 1), DropMeter(1000, 2, 1)})),
        SwitchState(frozenset({rule(1, "10.0.0.1", port_no=1), rule(1, "10.0.0.1", port_no=2)})),
        SwitchState(frozenset({rule(1, "10.0.0.1", port_no=-1000)})),
        SwitchState(groups=frozenset({FailoverGroup(7, (Bucket(1),))})),
        SwitchState(groups=frozenset({FailoverGroup(1000, (Bucket(1),)), FailoverGroup(1000, (Bucket(2),))})),
    ],
    ids=[
        "foreign cookie",
        "meter not desired",
        "foreign meter",
        "a meter twice",
        "a key twice",
        "group not desired",
        "foreign group",
        "a group twice",
    ],
)
def test_a_state_that_is_not_ours_to_set_is_refused(desired):
    with pytest.raises(NotSettable):
        messages(desired, SwitchState())


@pytest.mark.parametrize(("cir_bps", "cbs_bits"), [(999, 1), (0, 1), (1_500, 1), (2**32 * 1000, 1), (1000, 0)])
def test_a_rate_that_openflow_cannot_carry_exactly_is_refused(cir_bps, cbs_bits):
    with pytest.raises(NotExpressible):
        drop_meter(1000, cir_bps, cbs_bits)


def test_a_meter_outside_our_range_is_refused():
    with pytest.raises(NotSettable):
        drop_meter(999, 1_000_000, 1000)


def test_bits_outside_a_network_s_mask_are_refused():
    with pytest.raises(ValueError, match="host bits"):
        match({"eth_type": 0x0800, "ipv4_dst": "10.0.0.1/24"})


@pytest.mark.parametrize("circuit", [-1, 2**48])
def test_a_circuit_number_longer_than_the_cookie_has_room_for_is_refused(circuit):
    with pytest.raises(NotExpressible):
        cookie(circuit)


def test_every_message_and_state_reads_as_one_line():
    state = SwitchState(
        frozenset({rule(5, "10.0.0.1", 1000, port_no=-1000)}),
        frozenset({drop_meter(1000, 5_000_000, 1000)}),
        frozenset({FailoverGroup(1000, (Bucket(1), Bucket(2, vlan_vid=5)))}),
    )
    lines = [
        str(message) for message in itertools.chain(messages(state, SwitchState()), messages(SwitchState(), state))
    ]
    assert lines == [
        "put meter 1000: 5,000 kbit/s, burst 1 kbit",
        "put group 1000: the first live port of 1, 2 in VLAN 5",
        "put table 0 priority 5 eth_type=2048,ipv4_dst=10.0.0.1 -> meter 1000, queue 1, group 1000",
        "delete table 0 priority 5 eth_type=2048,ipv4_dst=10.0.0.1 -> meter 1000, queue 1, group 1000",
        "delete meter 1000: 5,000 kbit/s, burst 1 kbit",
        "delete group 1000: the first live port of 1, 2 in VLAN 5",
    ]
