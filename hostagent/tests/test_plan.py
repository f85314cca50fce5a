"""From allocations to the kernel, and from one plan to the next."""

from dataclasses import replace
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostagent.errors import NotEncodable
from hostagent.kernel import plan as kernel_plan
from hostagent.kernel.plan import MAX_ENTRIES, KernelEntry, KernelPlan, MapChange, Match, change_to, changes_to
from topology.protocol import Allocation, CalledLane, FlowClass

EMPTY = KernelPlan()

dests = st.sampled_from(["10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32", "2001:db8::/32"]).map(ip_network)
ports = st.sampled_from([0, 443, 5001])
names = st.sampled_from("abcdef")
allocations = st.builds(
    Allocation,
    name=names,
    flow_class=st.just(FlowClass.URGENT),
    dest=dests,
    rate_bps=st.integers(8, 10**11),
    window_segments=st.integers(1, 10**6),
    dest_port=ports,
    local_port=ports,
    dscp=st.none() | st.integers(0, 63),
    circuits=st.sampled_from([(), ("north",), ("south",), ("north", "east")]),
    also=st.sampled_from([(), (ip_network("2001:db8:9::/48"),)]),
)
plans = st.lists(
    allocations,
    max_size=6,
    unique_by=(lambda a: a.name, lambda a: (a.dest, a.dest_port, a.local_port), lambda a: a.also or a.name),
).map(tuple)


def an_allocation(name="a", dest="10.0.0.0/8", rate_bps=8_000, window_segments=10, **rest):
    return Allocation(name, FlowClass.URGENT, ip_network(dest), rate_bps, window_segments, **rest)


class FakeMaps:
    """The kernel's maps, after each single step of a change."""

    def __init__(self) -> None:
        self.entries: dict[int, KernelEntry] = {}
        self.matches: dict[Match, int] = {}

    def steps(self, change: MapChange):
        for slot, entry in change.entries:
            self.entries[slot] = entry
            yield
        for match, slot in change.puts:
            self.matches[match] = slot
            yield
        for match in change.deletes:
            del self.matches[match]
            yield

    def held(self) -> dict[Match, KernelEntry]:
        return {match: self.entries[slot] for match, slot in self.matches.items()}


def meaning(plan: KernelPlan) -> dict[Match, KernelEntry]:
    return {match: held.entry for held in plan.held.values() for match in held.matches}


@given(st.lists(plans, min_size=1, max_size=5))
def test_after_every_change_the_maps_hold_exactly_the_plan(told):
    maps, plan = FakeMaps(), EMPTY
    for wanted in told:
        change = change_to(wanted, plan)
        for _ in maps.steps(change):
            pass
        plan = change.plan
        assert maps.held() == meaning(plan)
        assert [held.entry.rate_bytes_per_s for held in plan.held.values()] == [a.rate_bps // 8 for a in wanted]


@given(plans, plans)
def test_at_no_step_is_a_match_of_both_plans_without_an_entry_of_either(first, second):
    maps = FakeMaps()
    start = change_to(first, EMPTY)
    for _ in maps.steps(start):
        pass
    change = change_to(second, start.plan)
    old, new = meaning(start.plan), meaning(change.plan)
    in_both = old.keys() & new.keys()
    allowed = {*old.values(), *new.values()}
    for _ in maps.steps(change):
        assert in_both <= maps.held().keys()
        assert set(maps.held().values()) <= allowed


@given(plans)
def test_the_same_plan_again_changes_nothing(wanted):
    once = change_to(wanted, EMPTY)
    assert change_to(wanted, once.plan) == MapChange(once.plan)


@given(plans, plans)
def test_a_name_keeps_its_slot_and_a_freed_slot_is_not_given_away_at_once(first, second):
    old = change_to(first, EMPTY).plan
    change = change_to(second, old)
    for name, held in change.plan.held.items():
        if name in old.held:
            assert held.slot == old.held[name].slot
            assert held.slot not in change.fresh_slots
        else:
            assert held.slot not in {before.slot for before in old.held.values()}
            assert held.slot in change.fresh_slots
    assert len({held.slot for held in change.plan.held.values()}) == len(change.plan.held)


@given(st.lists(plans.map(lambda plan: plan[:3]), min_size=1, max_size=5))
def test_a_plan_for_which_there_is_no_room_beside_the_one_before_comes_when_that_has_made_room(told):
    maps, plan = FakeMaps(), EMPTY
    with pytest.MonkeyPatch.context() as limits:
        limits.setattr(kernel_plan, "MAX_ENTRIES", 3)
        limits.setattr(kernel_plan, "MAX_MATCHES", 6)
        for wanted in told:
            changes = changes_to(wanted, plan)
            for change in changes:
                taken = {held.slot for held in plan.held.values()}
                assert taken.isdisjoint(change.fresh_slots)
                for _ in maps.steps(change):
                    assert len(maps.entries) <= 3
                    assert len(maps.matches) <= 6
                assert maps.held() == meaning(change.plan)
                assert change.plan.held.keys() >= plan.held.keys() & {a.name for a in wanted}
                plan = change.plan
            assert maps.held() == meaning(change_to(wanted, EMPTY).plan)
            assert len(changes) <= 2


def test_six_hundred_allocations_are_followed_by_six_hundred_others_of_which_some_stay():
    old = [an_allocation(f"{n}", f"10.0.{n >> 8}.{n & 255}/32") for n in range(600)]
    new = [an_allocation(f"{n}", f"10.0.{n >> 8}.{n & 255}/32", rate_bps=16_000) for n in range(500, 1100)]
    first = change_to(old, EMPTY).plan
    going, coming = changes_to(new, first)
    assert (len(going.deletes), len(going.puts), len(going.fresh_slots)) == (500, 0, 0)
    assert (len(coming.deletes), len(coming.puts), len(coming.fresh_slots)) == (0, 500, 500)
    assert {entry.rate_bytes_per_s for _, entry in going.entries} == {2_000}, "nobody has the old rate by the new plan"
    assert coming.plan.held["500"].slot == first.held["500"].slot


@given(plans, plans)
def test_what_shrinks_is_written_before_what_grows(first, second):
    old = change_to(first, EMPTY).plan
    rates = {held.slot: held.entry.rate_bytes_per_s for held in old.held.values()}
    grows = [e.rate_bytes_per_s > rates.get(slot, 0) for slot, e in change_to(second, old).entries]
    assert grows == sorted(grows)


def test_a_new_rate_alone_needs_no_walk_over_the_sockets():
    old = change_to([an_allocation()], EMPTY).plan
    change = change_to([an_allocation(rate_bps=16_000)], old)
    assert change.entries == ((0, KernelEntry(2_000, 10, None)),)
    assert change == MapChange(change.plan, entries=change.entries)


def test_another_way_makes_another_entry_and_the_same_one_has_its_number_with_every_agent():
    old = change_to([an_allocation(circuits=("north",))], EMPTY).plan
    ((_, moved),) = change_to([an_allocation(circuits=("south",))], old).entries
    assert moved.way not in {0, old.held["a"].entry.way}
    assert change_to([an_allocation()], EMPTY).plan.held["a"].entry.way == 0
    assert old.held["a"].entry.way == 0xDC2A30C2


def test_on_a_lane_no_more_is_written_ahead_than_it_sends_in_20_ms():
    def ahead_bytes(**of):
        return change_to([an_allocation(**of)], EMPTY).plan.held["a"].entry.ahead_bytes

    assert ahead_bytes(rate_bps=800_000_000, lanes="image") == 2_000_000
    assert ahead_bytes(rate_bps=8_000_000, lanes="image") == 262_144
    assert ahead_bytes(rate_bps=800_000_000) == 0


@pytest.mark.parametrize("other", [{"dscp": 46}, {"dest": "10.0.0.0/9"}, {"name": "b"}], ids=str)
def test_another_dscp_or_match_needs_a_walk(other):
    old = change_to([an_allocation()], EMPTY).plan
    assert change_to([an_allocation(**other)], old).rescan


def test_ipv4_is_held_as_mapped_ipv6():
    held = change_to([an_allocation(dest="192.0.2.0/24")], EMPTY).plan.held["a"]
    assert held.matches[0].dest == IPv6Network("::ffff:192.0.2.0/120")
    assert (
        IPv4Network("0.0.0.0/0").prefixlen + 96
        == change_to([an_allocation(dest="0.0.0.0/0")], EMPTY).plan.held["a"].matches[0].dest.prefixlen
    )


def test_every_address_of_a_destination_leads_to_the_one_entry():
    both = an_allocation(dest="192.0.2.7/32", also=(ip_network("2001:db8::7/128"), ip_network("10.9.0.0/16")))
    change = change_to([both], EMPTY)
    first, *others = (IPv6Network(one) for one in ("::ffff:192.0.2.7/128", "2001:db8::7/128", "::ffff:10.9.0.0/112"))
    assert {match.dest: slot for match, slot in change.puts} == dict.fromkeys((first, *others), 0)
    less = change_to([an_allocation(dest="192.0.2.7/32")], change.plan)
    assert ([match.dest for match in less.deletes], less.fresh_slots) == (others, ())


def test_an_allocation_of_one_interface_is_for_connections_from_its_addresses_alone():
    sources = tuple(map(ip_network, ("10.1.0.5/32", "2001:db8:1::5/128", "10.7.0.0/24")))
    dests = {"dest": "192.0.2.7/32", "also": (ip_network("2001:db8::7/128"),)}
    puts = change_to([an_allocation(sources=sources, **dests)], EMPTY).puts
    pairs = (("::ffff:10.1.0.5", "::ffff:192.0.2.7"), ("2001:db8:1::5", "2001:db8::7"))
    expected = {tuple(map(IPv6Address, pair)) for pair in pairs}
    assert {(match.source, match.dest.network_address) for match, _ in puts} == expected
    other = an_allocation("b", sources=(ip_network("10.1.0.6/32"),), **dests)
    assert len(change_to([an_allocation(sources=sources, **dests), other], EMPTY).puts) == 3


def with_addresses_each(addresses, count):
    return [
        an_allocation(
            f"{n}",
            f"10.{n >> 8}.{n & 255}.0/24",
            also=tuple(ip_network((n << 96 | k << 64, 64)) for k in range(1, addresses)),
        )
        for n in range(count)
    ]


def test_as_many_allocations_as_there_are_may_have_two_addresses_each_before_and_after():
    first = change_to(with_addresses_each(2, MAX_ENTRIES), EMPTY).plan
    moved = [replace(one, dest_port=443) for one in with_addresses_each(2, MAX_ENTRIES)]
    assert len(change_to(moved, first).puts) == 2 * MAX_ENTRIES


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ([an_allocation(), an_allocation(dest="10.9.0.0/16")], "occurs twice"),
        ([an_allocation("a"), an_allocation("b")], "same destination and ports"),
        ([an_allocation(rate_bps=7)], "less than one byte"),
        (
            [an_allocation("a", also=(ip_network("fd00::/8"),)), an_allocation("b", "fd00::/8")],
            "same destination and ports",
        ),
        (with_addresses_each(9, 1000), "910: more than 8191 addresses and ports"),
        (
            [an_allocation(str(n), f"10.{n >> 8}.{n & 255}.0/24") for n in range(MAX_ENTRIES + 1)],
            "1024: more than 1024",
        ),
    ],
    ids=["name", "match", "rate", "other address", "addresses", "number"],
)
def test_what_cannot_be_held_is_refused(wanted, why):
    with pytest.raises(NotEncodable, match=why):
        changes_to(wanted, EMPTY)


def test_connections_of_more_turns_than_are_held_are_refused(monkeypatch):
    monkeypatch.setattr(kernel_plan, "MAX_TURNS", 3)
    called = [CalledLane("image", (ip_network(one),), 100) for one in ("10.0.0.1/32", "10.0.0.2/32")]
    with pytest.raises(NotEncodable, match="4 turns of connections, of at most 3"):
        changes_to((), EMPTY, called)
