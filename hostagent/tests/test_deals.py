"""Connections are dealt to lanes in proportion, and nothing else is dealt."""

from collections import Counter
from dataclasses import replace
from ipaddress import IPv6Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostagent.kernel.deals import MOST_TURNS, Deal, Destination, deals_of, turns
from hostagent.kernel.plan import KernelPlan, MapChange, change_to
from topology.protocol import Allocation, CalledLane, FlowClass

TO = Destination(IPv6Address("::ffff:10.0.0.9"), 0)


def lane(number, size_bytes=100, **more):
    known = {"sources": (ip_network(f"10.0.0.{number}/32"),), "lanes": "image"} | more
    to = ip_network("10.0.0.9/32")
    return Allocation(f"image/{number}", FlowClass.URGENT, to, 800, 9, size_bytes=size_bytes, **known)


def at(address):
    return str(address.ipv4_mapped or address)


@given(st.lists(st.integers(1, 10**12), min_size=2, max_size=16))
def test_any_connections_in_a_row_are_in_proportion(weights):
    order = turns({IPv6Address(k): weight for k, weight in enumerate(weights)})
    counts, total = Counter(order), sum(weights)
    assert len(weights) <= len(order) <= MOST_TURNS // 2 + 1
    for k, weight in enumerate(weights):
        assert abs(counts[IPv6Address(k)] - weight * len(order) / total) < 1 + 1e-9
        for first in range(len(order)):
            assert abs(Counter(order[:first])[IPv6Address(k)] - weight * first / total) < len(weights)


@pytest.mark.parametrize(
    ("weights", "order"),
    [((1, 1), "01"), ((1_793_827_173, 894_172_827), "010"), ((3, 1), "0010"), ((1, 1, 1), "012"), ((1000, 1), "0" * 2)],
)
def test_the_round_is_the_shortest_that_is_right(weights, order):
    found = turns({IPv6Address(k): weight for k, weight in enumerate(weights)})
    assert "".join(str(int(address)) for address in found) == order


def test_of_more_lanes_than_a_round_has_turns_each_has_one():
    lanes = [IPv6Address(k) for k in range(MOST_TURNS + 1)]
    assert sorted(turns(dict.fromkeys(lanes, 1))) == lanes


@pytest.mark.parametrize(
    "more",
    [{"lanes": ""}, {"local_port": 5}, {"own_dscp": 8}, {"sources": ()}, {"sources": (ip_network("10.1.0.0/24"),)}],
    ids=["no lane", "a port of its own", "a mark", "any address", "a cluster"],
)
def test_what_cannot_be_told_when_a_connection_is_made_is_not_dealt(more):
    assert deals_of([lane(1, **more), lane(2, **more)]) == {}
    assert deals_of([lane(1), lane(2, **more)]) == {}


def test_a_port_and_each_family_are_dealt_by_themselves():
    own = ip_network("10.0.0.1/32"), ip_network("fd00::1/128")
    other = ip_network("10.0.0.2/32"), ip_network("fd00::2/128")
    to = (ip_network("fd00::9/128"),)
    found = deals_of([lane(1, sources=own, also=to, dest_port=443), lane(2, sources=other, also=to, dest_port=443)])
    assert {(at(d.address), d.port): [at(a) for a in deal.turns] for d, deal in found.items()} == {
        ("10.0.0.9", 443): ["10.0.0.1", "10.0.0.2"],
        ("fd00::9", 443): ["fd00::1", "fd00::2"],
    }


def test_only_what_is_dealt_otherwise_is_written():
    two = lane(1), lane(2)
    once = change_to(two, KernelPlan())
    assert [destination for destination, _ in once.deals] == [TO]
    faster = [replace(one, rate_bps=1600) for one in two]
    again = change_to(faster, once.plan)
    assert (again.deals, again.undealt) == ((), ())
    assert change_to(two, once.plan) == MapChange(once.plan)
    unequal = change_to([lane(1, 200), lane(2)], once.plan)
    assert (unequal.deals[0][0], unequal.undealt) == (TO, ((TO, 2),))
    assert change_to([lane(1)], once.plan).undealt == ((TO, 2),)


def called(number, size_bytes=100, *, lanes="image"):
    addresses = ip_network(f"10.0.0.{number}/32"), ip_network(f"fd00::{number}/128"), ip_network("10.1.0.0/24")
    return CalledLane(lanes, addresses, size_bytes)


def test_connections_to_any_address_of_a_sender_by_lanes_go_to_each_of_them_in_turn():
    found = deals_of((), [called(1, 200), called(2)])
    assert all(deal.is_far for deal in found.values())
    assert {at(d.address): [at(a) for a in deal.turns] for d, deal in found.items()} == {
        "10.0.0.1": ["10.0.0.1", "10.0.0.2", "10.0.0.1"],
        "10.0.0.2": ["10.0.0.1", "10.0.0.2", "10.0.0.1"],
        "fd00::1": ["fd00::1", "fd00::2", "fd00::1"],
        "fd00::2": ["fd00::1", "fd00::2", "fd00::1"],
    }
    assert deals_of((), [called(1), called(2, lanes="another")]) == {}


def test_lanes_that_are_called_no_more_are_dealt_to_no_more():
    once = change_to((), KernelPlan(), [called(1), called(2)])
    assert {to.port for to, _ in once.deals} == {0}
    assert change_to((), once.plan, [called(1), called(2)]) == MapChange(once.plan)
    over = change_to((), once.plan)
    assert sorted(over.undealt, key=str) == sorted(((to, 2) for to, _ in once.deals), key=str)
    assert over.plan.deals == {}


def test_where_both_ends_send_by_lanes_a_connection_is_dealt_to_those_of_its_own_host():
    to = ip_network("10.0.0.1/32")
    own = [replace(lane(number), dest=to, sources=(ip_network(f"10.0.0.{number}/32"),)) for number in (8, 9)]
    found = deals_of(own, [called(1), called(2)])
    assert found[Destination(IPv6Address("::ffff:10.0.0.1"), 0)] == Deal(
        (IPv6Address("::ffff:10.0.0.8"), IPv6Address("::ffff:10.0.0.9"))
    )
