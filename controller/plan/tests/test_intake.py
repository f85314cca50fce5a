"""What is known of a receiver, second by second: how soon it is held, and how seldom a plan changes for it."""

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from controller.plan.intake import FIRST_WAIT_US, NEAR, REMEMBERED, SURPLUS, Brake, Intake, IntakeSight

S = 1_000_000
MBIT = 10**6
PLANNED_BPS = 369 * MBIT
MOST_CHANGES = 20  # in ten minutes, whatever a receiver does


def waits(mbit, brake=Brake.READER):
    return IntakeSight(mbit * MBIT, is_waiting=True, brake=brake)


def free(mbit):
    return IntakeSight(mbit * MBIT, is_waiting=False)


def follow(sights, known=None, from_us=0, planned_bps=PLANNED_BPS):
    """Return what is known after each of the sights, a second apart."""
    found, known = [], known or Intake()
    for number, sight in enumerate(sights):
        known = known.seen(sight, planned_bps, from_us + number * S)
        found.append(known)
    return found


def changes(found):
    rates = [one.drain_bps for one in found]
    return sum(a != b for a, b in zip([None, *rates], rates, strict=False))


def held(mbit, sights=30):
    """Return what is known of a receiver that has long been held to a rate."""
    return follow([waits(mbit)] * sights)[-1]


def test_a_receiver_is_held_from_the_second_sight_in_which_something_waits():
    first, second, *_ = follow([waits(250), waits(100)])
    assert first.drain_bps is None  # the first has what came before the buffer was full
    assert (second.drain_bps, second.brake, second.since_us) == (100 * MBIT, Brake.READER, S)


def test_it_is_held_to_a_little_more_than_it_drains():
    assert held(160).ceiling_bps == 160 * MBIT * (SURPLUS + 1) // SURPLUS


def test_what_came_while_nothing_waited_is_never_taken_for_its_rate():
    assert follow([free(3)] * 60)[-1] == follow([free(300)] * 60)[-1]
    assert follow([waits(250), waits(100), free(3), waits(100)])[-1].drain_bps == 100 * MBIT


def test_what_may_be_a_first_round_trip_alone_is_not_believed_until_it_lasts():
    unsure = IntakeSight(250 * MBIT, is_waiting=True, is_sure=False)
    sure_then = follow([unsure, waits(225), waits(100)])
    assert [one.drain_bps for one in sure_then] == [None, None, 100 * MBIT], "the first sure one is partly free, too"
    lasts = follow([unsure] * 8)
    assert [one.drain_bps for one in lasts].index(250 * MBIT) == 4


def test_one_second_of_waiting_changes_nothing():
    assert changes(follow([free(300), waits(100), free(300)] * 20)) == 0


def test_a_receiver_that_takes_what_is_planned_is_not_held():
    assert changes(follow([waits(350)] * 60)) == 0


@pytest.mark.parametrize("seconds", [1, 2, 3])
def test_a_receiver_that_stands_still_for_a_moment_is_not_slow(seconds):
    cycle = [waits(0)] * seconds + [waits(200)] * (10 - seconds)
    after = follow(cycle * 30, held(200))
    assert changes(after) == 1  # the comparison is with not being held
    assert {one.drain_bps for one in after} == {200 * MBIT}


@pytest.mark.parametrize("seconds", [1, 2, 3])
def test_one_of_which_nothing_is_known_yet_is_not_held_for_standing_still_a_moment(seconds):
    after = follow([waits(0)] * seconds + [waits(200)] * 30)
    assert [one.drain_bps for one in after] == [None] * (seconds + 1) + [200 * MBIT] * 29
    assert follow([waits(0)] * 10)[-1].drain_bps == 1, "for good it is"


def test_one_that_stands_still_for_good_is():
    assert follow([waits(0)] * 10, held(200))[-1].drain_bps < 20 * MBIT


def test_a_disk_that_becomes_slow_is_seen_within_two_seconds_and_again_when_it_is_back():
    known = held(280)
    slow = follow([waits(70)] * 2, known, 100 * S)[-1]
    assert slow.drain_bps == 70 * MBIT
    back = follow([free(74)] * 2, slow, 200 * S)[-1]
    assert back.drain_bps is None
    faster = follow([waits(280)] * 2, slow, 200 * S)[-1]
    assert faster.drain_bps == 280 * MBIT, "also while something still waits"


def test_a_disk_that_becomes_faster_bit_by_bit_is_followed():
    rates = [n for mbit in range(100, 301, 20) for n in [mbit] * 70]
    assert abs(follow([waits(mbit) for mbit in rates])[-1].drain_bps - 300 * MBIT) <= 300 * MBIT // 6


@pytest.mark.parametrize("seed", range(20))
def test_a_noisy_disk_changes_the_plan_a_few_times_in_ten_minutes_at_most(seed):
    noise = random.Random(seed)  # noqa: S311 (noise, no secret)
    found = follow([waits(round(200 * noise.uniform(0.7, 1.3))) for _ in range(600)])
    assert changes(found) <= 3
    assert abs(found[-1].drain_bps - 200 * MBIT) < 200 * MBIT // 4


sights = st.builds(IntakeSight, st.integers(0, 400 * MBIT), st.booleans())
any_history = st.lists(st.tuples(sights, st.integers(1, 30)), min_size=1, max_size=200)


@given(any_history)
def test_nothing_flaps_whatever_a_receiver_does(runs):
    found = follow([sight for sight, times in runs for _ in range(times)][:600])
    assert changes(found) <= MOST_CHANGES


@given(st.lists(sights, max_size=100), st.integers(1 * MBIT, 300 * MBIT))
@example([IntakeSight(0, is_waiting=True), IntakeSight(1_166_667, is_waiting=True)], 1 * MBIT)
def test_after_any_history_a_steady_receiver_is_found_in_the_end(history, drain_bps):
    known = Intake()
    for number, sight in enumerate(history):
        known = known.seen(sight, PLANNED_BPS, number * S)
    for number in range(200):  # it waits while it is sent more than it drains
        ceiling_bps = known.ceiling_bps or PLANNED_BPS
        sight = IntakeSight(min(ceiling_bps, drain_bps), is_waiting=ceiling_bps > drain_bps)
        known = known.seen(sight, PLANNED_BPS, (len(history) + number) * S)
    assert known.drain_bps is not None
    assert abs(known.drain_bps - drain_bps) * NEAR <= known.drain_bps, "a sixth of what it is held to"


@given(any_history)
def test_no_more_is_remembered_than_is_needed(runs):
    for known in follow([sight for sight, _ in runs]):
        assert len(known.drains_bps) <= REMEMBERED
        assert known.wait_us >= FIRST_WAIT_US
