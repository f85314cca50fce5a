"""What keeps connections back, summed by entry; and the counts of entries that have ended."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address, ip_network

import pytest

from hostagent.agent.counting import NOT_KEPT_BACK, TOLD_FOR_NS, Counting
from hostagent.agent.hindrances import Entries, Hindrances, KeptBack
from hostagent.doctor.connections import SendingConnection
from hostagent.kernel.image import object_image
from hostagent.kernel.layout import layout_of
from topology.protocol import Allocation, FlowClass

S_NS = 1_000_000_000
LAYOUT = layout_of(object_image())
NOTHING = LAYOUT.counters(LAYOUT.zero_counters)
ENTRY = Allocation("image/a", FlowClass.URGENT, IPv4Network("10.0.0.2/32"), 80_000_000, 100)


def connection(cookie: int, busy_us: int, receiver_us: int = 0, peer: str = "10.0.0.2") -> SendingConnection:
    return SendingConnection(
        cookie, IPv4Address(peer), 5001, IPv4Address("10.0.0.1"), 40_000, 0, busy_us, receiver_us, 0
    )


def between(local: str, peer: str, dscp: int = 0) -> SendingConnection:
    return SendingConnection(1, ip_address(peer), 5001, ip_address(local), 40_000, dscp, 0, 0, 0)


def by_interface(name: str, dest: str, *sources: str, **more: int) -> Allocation:
    of_source = tuple(ip_network(source) for source in sources)
    return Allocation(name, FlowClass.URGENT, ip_network(dest), 80_000_000, 100, sources=of_source, **more)


def test_what_has_come_since_the_look_before_is_summed_over_the_connections_of_the_entry():
    looks = [
        (connection(1, 900_000, 300_000), connection(2, 10_000_000)),
        (connection(1, 1_900_000, 1_100_000), connection(2, 10_200_000), connection(3, 0, peer="10.0.0.9")),
    ]
    watch = Hindrances(lambda: looks.pop(0))
    seen = {"image/a": replace(NOTHING, connections=2)}
    assert watch.seen((ENTRY,), seen, 1 * S_NS) == {"image/a": KeptBack(1_900_000, 300_000)}, "a new one: one second"
    assert watch.seen((ENTRY,), seen, 2 * S_NS) == {"image/a": KeptBack(1_200_000, 800_000)}


@pytest.mark.parametrize(
    ("dest", "first", "second", "peer"),
    [
        ("10.0.0.0/24", "10.1.0.1", "10.2.0.1", "10.0.0.2"),
        ("fd00::/64", "fd01::1", "fd02::1", "fd00::2"),
    ],
    ids=["IPv4", "IPv6"],
)
def test_a_connection_of_a_host_with_several_interfaces_is_of_the_entry_of_its_own_address(dest, first, second, peer):
    entries = Entries((by_interface("first", dest, first), by_interface("second", dest, second)))
    assert [entries.name_of(between(local, peer)) for local in (first, second)] == ["first", "second"]
    assert entries.name_of(between(peer, peer)) is None, "from an address that none is for"


def test_an_entry_of_ones_own_address_goes_before_one_of_any_with_a_longer_prefix_as_in_the_kernel_part():
    entries = Entries((by_interface("own", "10.0.0.0/8", "10.1.0.1"), by_interface("any", "10.0.0.2/32")))
    assert [entries.name_of(between(local, "10.0.0.2")) for local in ("10.1.0.1", "10.1.0.9")] == ["own", "any"]


def test_a_slow_receiver_of_a_host_with_several_interfaces_is_seen():
    entry = replace(ENTRY, sources=(IPv4Network("10.0.0.1/32"), IPv6Network("fd00::1/128")))
    watch = Hindrances(lambda: (connection(1, 900_000, 800_000),))
    seen = watch.seen((entry,), {"image/a": replace(NOTHING, connections=1)}, S_NS)
    assert seen == {"image/a": KeptBack(900_000, 800_000)}


def test_connections_that_the_application_has_marked_are_of_the_entry_for_them():
    entries = Entries((by_interface("rest", "10.0.0.2/32"), by_interface("marked", "10.0.0.2/32", own_dscp=8)))
    assert [entries.name_of(between("10.0.0.1", "10.0.0.2", dscp)) for dscp in (0, 8)] == ["rest", "marked"]


def test_nobody_looks_at_the_connections_while_every_entry_has_its_rate():
    def looked() -> tuple[SendingConnection, ...]:
        raise AssertionError("nobody was to look")

    watch = Hindrances(looked)
    moved = {"image/a": replace(NOTHING, connections=1, delivered_bytes=9_800_000)}
    assert watch.seen((ENTRY,), moved, S_NS) == {}
    assert watch.seen((ENTRY,), {"image/a": NOTHING}, 2 * S_NS) == {}, "no connection"


def test_connections_that_cannot_be_seen_hinder_nobody():
    def refused() -> tuple[SendingConnection, ...]:
        raise OSError(1, "sock_diag")

    assert Hindrances(refused).seen((ENTRY,), {"image/a": replace(NOTHING, connections=1)}, S_NS) == {}


def test_the_last_count_of_an_entry_is_told_for_a_minute_with_its_age():
    counting = Counting()
    counting.begins(["image/a"], 5)
    counting.not_counted(["image/a", "another"])
    counting.ends("image/a", replace(NOTHING, delivered_bytes=7, delivered_ns=1 * S_NS), 3 * S_NS)
    (last,) = counting.ended(4 * S_NS)
    assert (last.delivered_bytes, last.delivered_ago_ms, last.counted_since_ns, last.is_least) == (7, 3000, 5, True)
    assert counting.ended(3 * S_NS + TOLD_FOR_NS) == ()


def test_an_entry_that_comes_back_counts_anew():
    counting = Counting()
    counting.begins(["image/a"], 5)
    counting.not_counted(["image/a"])
    counting.ends("image/a", NOTHING, 6)
    counting.begins(["image/a"], 7)
    assert counting.ended(8) == ()
    told = counting.told("image/a", NOTHING, 8, None, NOT_KEPT_BACK)
    assert (told.counted_since_ns, told.is_least, told.delivered_ago_ms) == (7, False, None)
