"""When a circuit's line is down, and when it may be used again."""

import itertools

import pytest

from controller.plan.lines import LINE_NEXT, LineEvent, Lines, LineState

NEAR, FAR = (1, 8), (2, 8)


def lines(*said):
    """Lines that have been told (port, live, time) of the north, one after the other."""
    known = Lines(return_after_us=100)
    for port, is_live, now_us in said:
        known = known.said("north", port, now_us, is_live=is_live)
    return known


def test_a_line_nobody_has_spoken_of_is_up():
    assert Lines().state("north", 0) is LineState.UP
    assert lines((NEAR, True, 0), (FAR, True, 0)).down(0) == frozenset()


def test_a_line_is_down_when_either_end_says_so_and_until_both_have_taken_it_back():
    assert lines((FAR, False, 1)).down(1) == {"north"}
    assert lines((NEAR, False, 1), (FAR, False, 1), (NEAR, True, 2)).state("north", 999) is LineState.DOWN


def test_a_line_that_is_back_is_used_when_it_has_been_up_for_long_enough():
    known = lines((NEAR, False, 10), (NEAR, True, 20))
    assert [known.state("north", now_us) for now_us in (20, 119, 120)] == ["returning", "returning", "up"]
    assert (known.due_us(20), known.due_us(120)) == (120, None)


def test_a_line_that_flaps_begins_to_prove_itself_anew_each_time():
    known = lines((NEAR, False, 10), (NEAR, True, 20), (NEAR, False, 100), (NEAR, True, 110))
    assert known.down(209) == {"north"}
    assert known.down(210) == frozenset()


def test_news_are_told_once():
    known, news = lines((NEAR, False, 10)).noted(10)
    assert news == (("north", LineState.DOWN),)
    assert known.noted(11) == (known, ())
    known, told = known.said("north", NEAR, 20, is_live=True), []
    for now_us in (20, 120, 121):
        known, news = known.noted(now_us)
        told.append(news)
    assert told == [(), (("north", LineState.UP),), ()]


def brought_to(state):
    """Lines of which the north is in a state at 50."""
    said = {"up": [], "down": [(NEAR, False, 10)], "returning": [(NEAR, False, 10), (NEAR, True, 20)]}
    known = lines(*said[state])
    assert known.state("north", 50) is state
    return known


@pytest.mark.parametrize(("state", "event"), list(itertools.product(LineState, LineEvent)))
def test_each_event_moves_a_line_by_the_table(state, event):
    known, at_us = brought_to(state), 50
    if event is LineEvent.PROVE:
        at_us = 120  # a hundred after the return; the others do not wait for anything
    else:
        known = known.said("north", NEAR, at_us, is_live=event is LineEvent.JOIN)
    assert known.state("north", at_us) is LINE_NEXT[state].get(event, state)
    assert (event in LINE_NEXT[state]) is (event is not LineEvent.PROVE or state is LineState.RETURNING)


def test_a_returning_line_that_is_said_to_be_live_once_more_does_not_begin_anew():
    known = brought_to(LineState.RETURNING)
    known = known.said("north", FAR, 100, is_live=True)
    assert known.state("north", 120) is LineState.UP
