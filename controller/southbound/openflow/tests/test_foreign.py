"""Which rules are left alone, and which stand in the way of ours."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.plan.plan import PlanInput
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import DATABASE, RAW_IMAGES
from controller.southbound.openflow.desired import switch_state
from controller.southbound.openflow.foreign import Ignored, beside, shadows, without_ignored
from controller.southbound.openflow.messages import DeleteMeter, PutMeter, messages
from controller.southbound.openflow.state import FailoverGroup, Rule, SwitchState, cookie, drop_meter, match
from mininet_tests.testing.networks import chile_illinois

OURS, THEIRS = cookie(1), 0x77
networks = st.builds(
    lambda low, length: f"10.0.0.{low & ~(2 ** (32 - length) - 1)}/{length}", st.integers(0, 3), st.integers(30, 32)
)
matches = st.fixed_dictionaries({}, optional={"ipv4_src": networks, "ipv4_dst": networks, "in_port": st.integers(1, 2)})


def rules(rule_cookie):
    """Rules of a few tables and priorities, on few addresses."""
    return st.builds(
        lambda table, priority, fields: Rule(table, priority, match(fields), rule_cookie),
        st.integers(0, 1),
        st.integers(1, 3),
        matches,
    )


def takes(rule, packet):
    """Whether a packet (source, destination, port) matches a rule, bit by bit."""
    for name, value in rule.match:
        if name == "in_port":
            if packet[2] != value:
                return False
            continue
        address, mask = value if isinstance(value, tuple) else (value, "255.255.255.255")
        low, bits = (int(text.rsplit(".", 1)[1]) for text in (address, mask))
        if (packet[0 if name == "ipv4_src" else 1] ^ low) & bits:
            return False
    return True


@given(st.frozensets(rules(OURS), max_size=4), st.frozensets(rules(THEIRS), max_size=3))
def test_a_rule_shadows_exactly_if_it_takes_a_packet_that_ours_would(ours, theirs):
    packets = list(product(range(4), range(4), (1, 2)))
    expected = {
        t
        for t in theirs
        for o in ours
        if t.table_id == o.table_id and t.priority >= o.priority and any(takes(t, p) and takes(o, p) for p in packets)
    }
    assert {shadow.rule for shadow in shadows(ours, theirs)} == expected


def test_a_shadow_in_the_very_place_of_ours_is_told_from_one_above():
    ours = [Rule(0, 400, match({"ipv4_dst": f"10.0.0.{i}"}), OURS) for i in (1, 2)]
    (above,) = shadows(frozenset(ours), frozenset({Rule(0, 500, match({}), THEIRS)}))
    assert (above.takes_place, above.first, above.more) == (False, ours[0], 1)
    (instead,) = shadows(frozenset(ours), frozenset({Rule(0, 400, ours[1].match, THEIRS)}))
    assert (instead.takes_place, instead.first) == (True, ours[1])


def test_our_own_rules_shadow_nothing():
    rule = Rule(0, 400, match({}), OURS)
    assert shadows(frozenset({rule}), frozenset({rule})) == ()


def test_a_field_that_we_cannot_read_is_no_reason_to_be_quiet():
    odd = Rule(0, 500, (("pkt_reg0", "?"),), THEIRS)
    assert [s.rule for s in shadows(frozenset({Rule(0, 400, match({}), OURS)}), frozenset({odd}))] == [odd]


DROP_TCP = Rule(1, 7, match({"eth_type": 0x0800, "ipv4_dst": "10.9.1.0/24"}), cookie(0x99))


@pytest.mark.parametrize(
    ("entry", "is_meant"),
    [
        (Ignored(cookie=cookie(0x99)), True),
        (Ignored(cookie=cookie(0x98)), False),
        (Ignored(cookie=cookie(0x90), cookie_mask=~0xF & 2**64 - 1), True),
        (Ignored(table_id=1, priority=7), True),
        (Ignored(table_id=1, priority=8), False),
        (Ignored(table_id=0, priority=7), False),
        (Ignored(match=match({"ipv4_dst": "10.9.0.0/16"})), True),
        (Ignored(match=match({"ipv4_dst": "10.9.1.1"})), False),
        (Ignored(match=match({"ipv4_src": "10.9.0.0/16"})), False),
        (Ignored(cookie=cookie(0x99), table_id=2), False),
        (Ignored(match=match({"eth_type": "0x0800"})), True),
        (Ignored(match=match({"eth_type": "0x0806"})), False),
    ],
)
def test_a_rule_is_on_the_list_if_all_that_is_given_holds(entry, is_meant):
    assert entry.covers(DROP_TCP) is is_meant


def test_a_rule_that_is_ignored_is_not_seen_unless_it_stands_where_the_plan_wants_one():
    ours = Rule(0, 400, match({}), OURS)
    changed = Rule(0, 400, match({}), cookie(0x99), output_port=3)
    installed = SwitchState(frozenset({changed, DROP_TCP}))
    seen = without_ignored(SwitchState(frozenset({ours})), installed, [Ignored(cookie=cookie(0x99))])
    assert seen.rules == {changed}


def test_what_a_rule_that_is_ignored_needs_stays_with_it_unless_the_plan_has_it():
    left = Rule(1, 7, match({}), cookie(0x99), meter_id=2005, group_id=1005)
    meters, group = [drop_meter(number, 1_000_000, 1000) for number in (2005, 2006)], FailoverGroup(1005, ())
    installed = SwitchState(frozenset({left}), frozenset(meters), frozenset({group}))
    rest = without_ignored(SwitchState(), installed, [Ignored(cookie=cookie(0x99))])
    assert messages(SwitchState(), rest) == (DeleteMeter(meters[1]),)
    held = SwitchState(frozenset({left}), frozenset({meters[0]}), frozenset({group}))
    assert beside(SwitchState(), installed, rest) == held
    larger = SwitchState(meters=frozenset({drop_meter(2005, 2_000_000, 1000)}))
    rest = without_ignored(larger, held, [Ignored(cookie=cookie(0x99))])
    assert messages(larger, rest) == (PutMeter(*larger.meters, exists=True),)
    assert beside(larger, held, rest) == SwitchState(frozenset({left}), larger.meters, frozenset({group}))


NETWORK = chile_illinois()
SWITCH = NETWORK.switches[0]
PLAN = planned(2, NETWORK, DEFAULT_POLICY, PlanInput((DATABASE, RAW_IMAGES)))
WANTED = switch_state(NETWORK, SWITCH, PLAN, DEFAULT_POLICY).rules
IP, ARP, IPV6 = 0x0800, 0x0806, 0x86DD


@pytest.mark.parametrize(
    ("fields", "touches"),
    [
        ({"eth_type": IP, "ipv4_dst": "10.99.1.0/24"}, False),
        ({"eth_type": IP, "ipv4_src": "10.99.1.7", "ipv4_dst": "10.20.20.100"}, False),
        ({"eth_type": ARP, "arp_tpa": "10.99.1.7"}, False),
        ({"eth_type": IPV6}, False),
        ({"eth_type": IP, "ipv4_src": "10.20.20.20"}, True),
        ({"eth_type": IP, "ipv4_dst": "10.20.0.0/16"}, True),
        ({"eth_type": IP, "ip_proto": 6, "tcp_dst": 443}, True),
        ({"in_port": 9}, True),
        ({}, True),
    ],
)
def test_a_rule_touches_ours_if_it_can_take_what_one_of_our_hosts_sends_to_another(fields, touches):
    (shadow,) = shadows(WANTED, frozenset({Rule(0, 900, match(fields), THEIRS)}))
    assert shadow.touches is touches
