"""Onto a disk: both times against the formulas, and a disk that is never asked for more than it has."""

from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from controller.plan.calendar import Booking, Calendar
from controller.plan.keys import StorePlace
from controller.plan.receivers import ReceiverBucket
from controller.plan.storing import (
    BEGINS_US,
    SLACK_US,
    TURN_US,
    DiskTime,
    StoreCapacity,
    disk_time,
    make_known,
    soonest_stored,
    thriftiest_stored,
)
from controller.plan.volume import US, Volume, earliest_finish

ANY = 2**62
END_US = 10_000 * US


def pieces(rates, each_us=7 * US):
    """Free rates one after another, the last of them for good."""
    ends = [(n + 1) * each_us for n in range(len(rates) - 1)] + [END_US * 1000]
    return [(n * each_us, end_us, bps) for n, (end_us, bps) in enumerate(zip(ends, rates, strict=True))]


def disk(rates, room_bits, turn_us=0):
    return DiskTime(tuple(pieces(rates)), room_bits, turn_us)


@given(st.integers(1, 10**6), st.integers(1, 10**5), st.integers(1, 10**5), st.integers(0, 10**6))
def test_with_nobody_else_both_times_are_those_of_the_bucket(size_bits, line_bps, drain_bps, room_bits):
    found = soonest_stored(pieces([line_bps]), disk([drain_bps], room_bits), Volume(size_bits, 1, ANY), 1)
    bucket = ReceiverBucket(room_bits, drain_bps * 8)  # bits for bytes: eight times the rate
    across_us = bucket.across_us(size_bits, line_bps * 8)
    stored_us = bucket.stored_us(size_bits, line_bps * 8)
    rounding_us = 3 + line_bps // drain_bps  # what less than a microsecond of the line's surplus takes the disk
    assert abs(found.across_us - across_us) <= rounding_us
    assert abs(found.stored_us - stored_us) <= rounding_us


rates = st.lists(st.integers(0, 1_000), min_size=1, max_size=6).map(lambda found: [*found, 500])


@given(rates, rates, st.integers(1, 10**5), st.integers(1, 3), st.integers(0, 10**5), st.integers(0, 40 * US))
def test_no_more_has_arrived_than_the_room_and_what_was_drained_and_nothing_is_used_twice(
    free, drained, size_bits, senders, room_bits, turn_us
):
    network, drains = pieces(free), pieces(drained)
    found = soonest_stored(network, disk(drained, room_bits, turn_us), Volume(size_bits, 1, ANY), senders)
    total = size_bits * senders

    def moved(profile, until_us, times):
        return sum(
            Fraction(max(0, min(one.end_us, until_us) - one.start_us) * one.rate_bps * times, US) for one in profile
        )

    moments = {one.end_us for one in (*found.rates, *found.drains)} | {one.start_us for one in found.drains}
    for at_us in moments:
        arrived, drained = moved(found.rates, at_us, senders), moved(found.drains, at_us, 1)
        room = room_bits if at_us > turn_us else 0
        assert min(arrived, total) <= room + drained + Fraction(1_000 * senders, US)
        assert drained <= arrived + Fraction(2_000, US), "a disk writes nothing that has not arrived"
    for profile, known in ((found.rates, network), (found.drains, drains)):
        for one in profile:
            free_bps = [bps for start_us, end_us, bps in known if start_us < one.end_us and one.start_us < end_us]
            assert one.rate_bps <= min(free_bps)
    assert moved(found.rates, found.across_us, senders) >= total
    assert moved(found.drains, found.stored_us, 1) >= total
    assert found.across_us <= found.stored_us


@given(rates, st.integers(1, 10**5), st.integers(1, 3))
def test_a_disk_that_takes_all_at_once_changes_nothing(free, size_bits, senders):
    part = Volume(size_bits, 1, ANY)
    found = soonest_stored(pieces(free), disk([10**9], 0), part, senders)
    assert found.across_us == earliest_finish(pieces(free), part)[-1].end_us


PLACE = StorePlace("arch", "data")


def promised_in_turn(drain_bps, room_bits, asked, least_bps=1):
    """Promises to one disk, one after the other as they are asked for: (the rates of the line, bits, due), and a line.

    Returns:
        What each is promised, and the calendar.
    """
    calendar, found = Calendar({}), []
    store = StoreCapacity(PLACE, drain_bps, room_bits)
    make_known(calendar, store)
    for number, (line, size_bits, waits_us) in enumerate(asked):
        part, time = Volume(size_bits, least_bps, ANY), disk_time(calendar, store, 0, END_US, least_bps)
        soonest = soonest_stored(pieces(line), time, part, 1)
        by_us = soonest.across_us + waits_us if waits_us else None
        promise = thriftiest_stored(pieces(line), time, part, 1, by_us)
        for k, one in enumerate(promise.drains):
            booking = Booking(store.need, one.rate_bps, one.start_us, one.end_us)
            assert calendar.shortage(booking) is None, "a disk is not promised twice"
            calendar.book(f"{number}/{k}", booking)
        found.append(promise)
    return found, calendar


def written_in_turns(drain_bps, promises, sizes_bits):
    """Return when each is stored by a kernel that writes what waits in turns, a little of each file; us."""
    ends_us = [*sorted({at for one in promises for r in one.rates for at in (r.start_us, r.end_us)}), END_US * 2000]
    came, waiting, stored_us = [Fraction(0)] * len(promises), [Fraction(0)] * len(promises), [None] * len(promises)
    went, now_us = [Fraction(0)] * len(promises), Fraction(0)
    for end_us in ends_us:
        while now_us < end_us:
            comes = [
                next((r.rate_bps for r in one.rates if r.start_us <= now_us < r.end_us), 0) if a < size else 0
                for one, a, size in zip(promises, came, sizes_bits, strict=True)
            ]
            wants = [drain_bps if w else c for w, c in zip(waiting, comes, strict=True)]
            goes, left = [Fraction(0)] * len(promises), Fraction(drain_bps)
            for share, n in enumerate(sorted(range(len(wants)), key=wants.__getitem__)):
                goes[n] = min(Fraction(wants[n]), left / (len(wants) - share))
                left -= goes[n]
            steps = [end_us - now_us]
            for n, size in enumerate(sizes_bits):
                steps += [(size - came[n]) * US / comes[n]] if comes[n] else []
                steps += [waiting[n] * US / (goes[n] - comes[n])] if waiting[n] and goes[n] > comes[n] else []
            took_us = min(steps)
            for n, size in enumerate(sizes_bits):
                came[n] += comes[n] * took_us / US
                went[n] += goes[n] * took_us / US
                waiting[n] = came[n] - went[n]
                if stored_us[n] is None and went[n] >= size:
                    stored_us[n] = now_us + took_us
            now_us += took_us
            if None not in stored_us:
                return stored_us
    raise AssertionError(f"never stored: {stored_us}")


asked_for = st.lists(st.tuples(rates, st.integers(1, 10**4), st.integers(0, 60 * US)), min_size=1, max_size=5)


@given(st.integers(10, 1_000), st.integers(0, 10**4), asked_for)
@example(280, 750, [([1_000], 2_000, 0), ([1_000], 2_000, 0)])
def test_what_is_promised_to_be_stored_is_so_by_a_kernel_that_writes_what_waits_in_turns(drain_bps, room_bits, asked):
    promises, calendar = promised_in_turn(drain_bps, room_bits, asked)
    sizes_bits = [size_bits for _, size_bits, _ in asked]
    for stored_us, promise in zip(written_in_turns(drain_bps, promises, sizes_bits), promises, strict=True):
        assert stored_us <= promise.stored_us + SLACK_US
    until_us = max(one.stored_us for one in promises)
    assert calendar.peak_bps(PLACE, 0, until_us) <= drain_bps
    for at_us in {one.stored_us for one in promises}:
        by_then = sum(s for s, one in zip(sizes_bits, promises, strict=True) if one.stored_us <= at_us)
        assert by_then <= Fraction(drain_bps * (at_us + SLACK_US), US), "no disk could have stored that by then"


@given(st.integers(10, 1_000), st.integers(0, 10**4), asked_for)
def test_each_that_waits_costs_those_behind_it_a_moment_and_no_more(drain_bps, room_bits, asked):
    """On a line that is no bottleneck: all is stored as soon as a disk can that never idles but between two turns."""
    whole_line = [([10_000], size_bits, 0) for _, size_bits, _ in asked]
    promises, _ = promised_in_turn(drain_bps, room_bits, whole_line)
    bits = 0
    for number, (one, (_, size_bits, _)) in enumerate(zip(promises, whole_line, strict=True)):
        bits += size_bits
        least_us = Fraction(bits * US, drain_bps)
        assert one.stored_us <= least_us + number * TURN_US + (number + 1) * (BEGINS_US + SLACK_US)
        assert number == 0 or one.rates[0].start_us >= promises[number - 1].stored_us


MBIT = 10**6
LINE = [1_000 * MBIT]


def test_who_comes_next_begins_when_the_one_before_is_stored_and_fills_the_room_by_its_end():
    (first, second), _ = promised_in_turn(280 * MBIT, 750 * MBIT, [(LINE, 2_000 * MBIT, 0)] * 2)
    assert [round(one.stored_us / US, 2) for one in (first, second)] == [7.34, 14.74]
    assert [one.rate_bps // MBIT for one in (*first.rates, *second.rates)] == [428, 428], (
        "eq. (4), each in its turn, but for the moment in which the disk does not write yet"
    )
    assert second.rates[0].start_us == first.stored_us + TURN_US


def test_what_leaves_some_of_the_disk_lets_the_next_use_that_and_no_more():
    asked = [(LINE, 2_000 * MBIT, 20 * US), (LINE, 1_000 * MBIT, 0)]
    (slow, other), _ = promised_in_turn(280 * MBIT, 750 * MBIT, asked)
    assert [one.rate_bps // MBIT for one in slow.rates] == [81], "the lowest that has it across in time"
    assert [one.rate_bps // MBIT for one in other.rates] == [198]
    assert other.rates[0].start_us < BEGINS_US + US // 10, "as soon as what came before the disk began is written"
    assert other.stored_us < slow.stored_us


def test_between_the_turns_of_two_nobody_is_promised_a_moment():
    *_, third = promised_in_turn(280 * MBIT, 0, [(LINE, 2_000 * MBIT, 0)] * 3)[0]
    assert len(third.rates) == 1


def test_whose_turn_comes_later_finds_the_room_that_is_there_then_and_not_what_is_left_of_it_now():
    calendar, full = Calendar({}), StoreCapacity(PLACE, 280 * MBIT, 5 * MBIT, most_bits=750 * MBIT)
    make_known(calendar, full)
    assert disk_time(calendar, full, 0, END_US, 1).room_bits == 5 * MBIT, "nothing is promised: others wait there"
    calendar.book("first", Booking(full.need, 280 * MBIT, 0, 5 * US))
    assert disk_time(calendar, full, 0, END_US, 1).room_bits == 750 * MBIT
    assert disk_time(calendar, full, 6 * US, END_US, 1).room_bits == 5 * MBIT
