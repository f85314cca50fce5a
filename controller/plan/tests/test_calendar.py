"""The calendar against brute force: every instant of a short span looked at by itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.plan.calendar import Booking, Calendar, Need, Shortage
from topology.wire import PPM

SPAN, CAPACITY = 30, 10
RESOURCES = ("there", "back", "class")
interval = st.tuples(st.integers(0, SPAN - 1), st.integers(1, 9)).map(lambda p: (p[0], min(SPAN, p[0] + p[1])))
needs = st.sampled_from(
    [
        Need((("there", PPM), ("class", PPM), ("back", PPM // 5))),
        Need((("back", PPM), ("there", PPM // 5))),
        Need((("there", PPM),)),
    ]
)
bookings = st.builds(lambda need, rate, at: Booking(need, rate, *at), needs, st.integers(1, 12), interval)
changes = st.lists(st.tuples(st.sampled_from(RESOURCES), interval, st.integers(-6, 6)), max_size=4)


def calendar(held=(), capacity_changes=()):
    """A calendar with these bookings, named 0, 1, ..."""
    made = Calendar(dict.fromkeys(RESOURCES, CAPACITY))
    for resource, (start, end), change in capacity_changes:
        made.change_capacity(resource, start, end, change)
    for name, booking in enumerate(held):
        made.book(str(name), booking)
    return made


def used(held, resource, at):
    """What is booked of a resource at an instant: the definition."""
    return sum(
        -(-b.rate_bps * ppm // PPM)
        for b in held
        for name, ppm in b.need.shares_ppm
        if name == resource and b.start_us <= at < b.end_us
    )


def capacity(capacity_changes, resource, at):
    """What a resource has at an instant."""
    return CAPACITY + sum(c for name, (start, end), c in capacity_changes if name == resource and start <= at < end)


@given(st.lists(bookings, max_size=6), changes, st.lists(bookings, max_size=3), bookings)
def test_a_copy_of_what_is_free_says_the_same_and_keeps_to_it(held, capacity_changes, later, asked):
    whole, same = calendar(held, capacity_changes), calendar(held, capacity_changes)
    resources = {resource for resource, _ in asked.need.shares_ppm}
    copy = whole.free_of(resources)
    for name, booking in enumerate(later):
        whole.book(f"later {name}", booking)
    assert [*copy.rates(asked.need, 0, SPAN)] == [*same.rates(asked.need, 0, SPAN)]
    begins = (asked.need, asked.rate_bps, asked.end_us - asked.start_us, 0, SPAN)
    assert copy.earliest_start(*begins) == same.earliest_start(*begins)
    assert [copy.capacity_bps(r, 0) for r in resources] == [same.capacity_bps(r, 0) for r in resources]


def lacking(held, capacity_changes, booking):
    """The first instant that lacks a booking and what is then free of what lacks it, by looking at each."""
    for at in range(booking.start_us, booking.end_us):
        free = {
            name: (capacity(capacity_changes, name, at) - used(held, name, at), -(-booking.rate_bps * ppm // PPM))
            for name, ppm in booking.need.shares_ppm
        }
        short = {name: (has, asked) for name, (has, asked) in free.items() if has < asked}
        if short:
            return at, short
    return None


@given(st.lists(bookings, max_size=12), changes, bookings)
def test_a_shortage_is_the_first_instant_that_lacks_it_and_there_is_none_if_it_fits(held, capacity_changes, asked):
    answer = calendar(held, capacity_changes).shortage(asked)
    expected = lacking(held, capacity_changes, asked)
    if answer is None or expected is None:
        assert answer is expected
        return
    at, short = expected
    assert (answer.at_us, short[answer.resource]) == (at, (answer.free_bps, answer.asked_bps))
    assert all(answer.free_bps * other <= has * answer.asked_bps for has, other in short.values())


@given(st.lists(bookings, max_size=6), changes, st.lists(bookings, max_size=4))
def test_there_is_room_for_bookings_if_each_fits_beside_those_before_it(held, capacity_changes, asked):
    made = calendar(held, capacity_changes)
    fits = all(lacking(held + asked[:k], capacity_changes, booking) is None for k, booking in enumerate(asked))
    assert made.has_room(asked) == fits
    assert made == calendar(held, capacity_changes)


@given(st.lists(bookings, max_size=6), changes, st.integers(0, SPAN - 1))
def test_scarce_is_what_lacks_something_at_an_instant_that_is_to_come(held, capacity_changes, since):
    lacks = {
        resource
        for resource in RESOURCES
        for at in range(since, SPAN)
        if capacity(capacity_changes, resource, at) < used(held, resource, at)
    }
    assert calendar(held, capacity_changes).scarce(since) == lacks


@given(st.lists(bookings, max_size=12), changes, interval)
def test_the_peak_is_the_largest_total_over_every_instant(held, capacity_changes, window):
    made = calendar(held, capacity_changes)
    for resource in RESOURCES:
        assert made.peak_bps(resource, *window) == max(used(held, resource, at) for at in range(*window))


@given(st.lists(bookings, max_size=25), changes)
def test_what_is_admitted_never_goes_over_capacity_at_any_instant(asked, capacity_changes):
    made, held = calendar(capacity_changes=[c for c in capacity_changes if c[2] > 0]), []
    for name, booking in enumerate(asked):
        if made.shortage(booking) is None:
            made.book(str(name), booking)
            held.append(booking)
    for at in range(SPAN):
        for resource in RESOURCES:
            assert used(held, resource, at) <= made.capacity_bps(resource, at)


@given(st.lists(bookings, max_size=8), changes, st.randoms())
def test_the_order_of_operations_does_not_matter(held, capacity_changes, random):
    made = Calendar(dict.fromkeys(RESOURCES, CAPACITY))
    steps = [("book", str(name), b) for name, b in enumerate(held)] + [("change", c) for c in capacity_changes]
    random.shuffle(steps)
    for kind, *rest in steps:
        if kind == "book":
            made.book(*rest)
        else:
            resource, window, change = rest[0]
            made.change_capacity(resource, *window, change)
    assert made == calendar(held, capacity_changes)


@given(st.lists(bookings, min_size=1, max_size=8), bookings)
def test_to_modify_is_to_remove_and_add(held, changed):
    made = calendar(held)
    made.cancel("0")
    made.book("0", changed)
    assert made == calendar([changed, *held[1:]])


@given(st.lists(bookings, max_size=8), changes, bookings, st.integers(0, SPAN))
def test_the_earliest_start_is_the_first_instant_from_which_it_fits(held, capacity_changes, asked, after):
    duration = asked.end_us - asked.start_us
    answer = calendar(held, capacity_changes).earliest_start(asked.need, asked.rate_bps, duration, after, 2 * SPAN)
    by_hand = (
        at
        for at in range(after, 2 * SPAN)
        if lacking(held, capacity_changes, Booking(asked.need, asked.rate_bps, at, at + duration)) is None
    )
    assert answer == next(by_hand, None)


@given(st.lists(bookings, max_size=8), changes, needs, interval)
def test_the_highest_rate_fits_and_one_bit_more_does_not(held, capacity_changes, need, window):
    made = calendar(held, capacity_changes)
    most = made.most_bps(need, *window)
    assert most == 0 or made.shortage(Booking(need, most, *window)) is None
    assert made.shortage(Booking(need, most + 1, *window)) is not None


@given(st.lists(bookings, max_size=8), changes, needs, interval)
def test_rates_over_time_are_what_each_instant_has_free(held, capacity_changes, need, window):
    made = calendar(held, capacity_changes)
    pieces = list(made.rates(need, *window))
    by_instant = [rate for start, end, rate in pieces for _ in range(start, end)]
    assert by_instant == [made.most_bps(need, at, at + 1) for at in range(*window)]


WAY = Need((("there", PPM),))


def test_the_same_name_is_not_booked_twice():
    made = calendar([Booking(WAY, 1, 0, 1)])
    with pytest.raises(ValueError, match="booked already"):
        made.book("0", Booking(WAY, 1, 5, 6))


# The faults of today's calendars, each by name (docs/reservations.md).


def test_oscars_fault_two_equal_rates_that_begin_in_the_same_second_are_two():
    full = Calendar({"there": 10_000})
    full.book("a", Booking(WAY, 4_000, 0, 10))
    full.book("b", Booking(WAY, 4_000, 0, 10))
    assert full.most_bps(WAY, 0, 10) == 2_000


def test_oscars_fault_a_request_that_begins_when_a_full_one_ends_fits():
    assert calendar([Booking(WAY, CAPACITY, 0, 5)]).shortage(Booking(WAY, CAPACITY, 5, 9)) is None
    assert calendar([Booking(WAY, CAPACITY, 5, 9)]).shortage(Booking(WAY, CAPACITY, 0, 5)) is None


def test_oscars_fault_a_hold_counts_only_in_its_own_time():
    assert calendar([Booking(WAY, CAPACITY, 20, 25)]).most_bps(WAY, 0, 20) == CAPACITY


def test_oscars_fault_a_terabit_is_not_promised():
    assert calendar().shortage(Booking(WAY, 10**12, 0, 1)) == Shortage("there", 10**12, CAPACITY, 0)


def test_supa_and_siterm_fault_bookings_that_do_not_meet_do_not_add_up():
    port = Calendar({"there": 10})
    port.book("a", Booking(WAY, 6, 0, 3))
    port.book("b", Booking(WAY, 6, 5, 8))
    assert port.peak_bps("there", 0, 10) == 6
    assert port.shortage(Booking(WAY, 4, 0, 10)) is None


def test_kytos_fault_what_is_not_free_is_not_admitted():
    assert calendar([Booking(WAY, 7, 0, 5)]).shortage(Booking(WAY, 4, 4, 9)) == Shortage("there", 4, 3, 4)


def test_kilda_fault_free_goes_below_nothing_only_when_capacity_is_taken_and_is_then_no_offer():
    cut = calendar([Booking(WAY, 7, 0, 5)], [("there", (2, 4), -6)])
    assert (cut.free_bps("there", 3), cut.most_bps(WAY, 2, 4)) == (-3, 0)
