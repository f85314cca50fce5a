"""Quotas against brute force, and each limit at its edge."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from controller.plan.lifecycle import ReservationState
from controller.plan.quotas import Beyond, Limit, Live, More, Quota, Quotas, beyond, grows, live_of
from controller.plan.reservations import NO_CONSTRAINTS, Reservation
from topology.protocol import FlowClass

S = 1_000_000
NOW_US = 1_000 * S


def reserved(start_us, end_us, rate_bps=1, owner="ana", state=ReservationState.COMMITTED):
    """A reservation of somebody's."""
    ends = ("la-serena", "champaign", rate_bps, start_us, end_us, (), (), NO_CONSTRAINTS, None, 0, 0)
    return Reservation("r", 1, 1, state, FlowClass.URGENT, *ends, owner=owner)


spans = st.tuples(st.integers(0, 20), st.integers(1, 20), st.integers(1, 9))


@given(st.lists(spans, max_size=12), st.tuples(st.integers(0, 20), st.integers(1, 20)))
def test_the_peak_is_the_most_at_any_instant(found, asked):
    live = Live(tuple(reserved(start, start + lasts, bps) for start, lasts, bps in found), ())
    begin, over = asked[0], sum(asked)
    at = [sum(bps for start, lasts, bps in found if start <= t < start + lasts) for t in range(begin, over)]
    assert live.peak_bps(begin, over) == max(at)


def test_what_others_have_and_what_has_ended_does_not_count():
    found = [reserved(0, 9), reserved(0, 9, owner="bob"), reserved(0, 9, state=ReservationState.RELEASED)]
    live = live_of("ana", found, [("ana", 5), ("bob", 7)])
    assert (live.entries, live.size_bytes, live.reservations) == (2, 5, (found[0],))


def test_each_limit_holds_to_the_last_unit_and_says_what_is_left():
    live = Live((reserved(NOW_US, NOW_US + 10 * S, 60),), (700,))
    asked = More("ana", 40, NOW_US, NOW_US + 10 * S)
    for quota, more, limit, most, left in (
        (Quota(rate_bps=99), asked, Limit.RATE, 99, 39),
        (Quota(size_bytes=1_000), replace(asked, rate_bps=0, size_bytes=301), Limit.BYTES, 1_000, 300),
        (Quota(ahead_us=9 * S), asked, Limit.AHEAD, 9, 9),
        (Quota(entries=2), asked, Limit.ENTRIES, 2, 0),
    ):
        amount = {Limit.RATE: 40, Limit.BYTES: 301, Limit.AHEAD: 10, Limit.ENTRIES: 1}[limit]
        assert beyond(quota, live, more, NOW_US) == Beyond("ana", limit, most, amount, left)
    enough = Quota(rate_bps=100, size_bytes=1_000, ahead_us=10 * S, entries=3)
    assert beyond(enough, live, asked, NOW_US) is None
    assert beyond(enough, live, replace(asked, rate_bps=0, size_bytes=300), NOW_US) is None
    assert beyond(Quota(), live, asked, NOW_US) is None


def test_a_rate_beside_another_time_is_all_there_is():
    live = Live((reserved(NOW_US, NOW_US + 10 * S, 60),), ())
    later = More("ana", 60, NOW_US + 10 * S, NOW_US + 20 * S)
    assert beyond(Quota(rate_bps=60), live, later, NOW_US) is None


def test_only_a_change_to_more_of_anything_or_to_another_owner_grows():
    known = reserved(10, 20, 5)
    same = More("ana", 5, 10, 20)
    less = [replace(same, rate_bps=4), replace(same, start_us=11), replace(same, end_us=19)]
    more = [
        replace(same, rate_bps=6),
        replace(same, start_us=9),
        replace(same, end_us=21),
        replace(same, owner="group:lsst"),
    ]
    assert [grows(known, asked) for asked in (same, *less, *more)] == [False] * 4 + [True] * 4


def test_who_is_not_named_has_the_default():
    quotas = Quotas({"ana": Quota(entries=1)}, Quota(entries=9))
    assert (quotas.of("ana").entries, quotas.of("bob").entries, Quotas().of("ana")) == (1, 9, Quota())


def test_what_is_beyond_is_said_in_its_unit():
    assert str(Beyond("group:lsst", Limit.RATE, 60 * 10**9, 20 * 10**9, 10 * 10**9)) == (
        "group:lsst may have 60 Gbit/s at a time, and 10 Gbit/s of it is left: 20 Gbit/s asked"
    )
    assert str(Beyond("token:ana", Limit.BYTES, 10**12, 10**9, -5)) == (
        "token:ana may have 1 TB announced, and 0 B of it is left: 1 GB asked"
    )
    assert str(Beyond("a", Limit.AHEAD, 86_400, 129_600, 86_400)) == "a may reserve 1 days ahead, 1.5 days asked"
    assert str(Beyond("a", Limit.ENTRIES, 2, 1, 0)) == "a may have 2 promises, and 0 of it is left: 1 asked"
