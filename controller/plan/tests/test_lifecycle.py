"""The table, state by event."""

import itertools

import pytest

from controller.plan.lifecycle import ENDED, NEXT, Event, Illegal, State, after


@pytest.mark.parametrize(("state", "event"), list(itertools.product(State, Event)))
def test_each_event_either_moves_by_the_table_or_is_refused(state, event):
    if event in NEXT[state]:
        assert after("r", state, event) is NEXT[state][event]
        return
    with pytest.raises(Illegal) as illegal:
        after("r", state, event)
    assert (illegal.value.state, illegal.value.event) == (state, event)
    assert all(allowed in str(illegal.value) for allowed in NEXT[state])


def test_what_has_ended_has_ended():
    assert {State.RELEASED, State.EXPIRED, State.FAILED} == ENDED


def test_every_state_can_be_reached_and_can_end():
    reached = {State.HELD}
    for _ in State:
        reached |= {following for state in reached for following in NEXT[state].values()}
    assert reached == set(State)
    for state in set(State) - ENDED:
        assert {Event.RELEASE, Event.EXPIRE, Event.FAIL} <= NEXT[state].keys()
