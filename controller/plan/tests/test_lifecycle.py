"""The table, state by event."""

import itertools

import pytest

from controller.plan.lifecycle import ENDED, NEXT, Illegal, LifecycleEvent, ReservationState, after


@pytest.mark.parametrize(("state", "event"), list(itertools.product(ReservationState, LifecycleEvent)))
def test_each_event_either_moves_by_the_table_or_is_refused(state, event):
    if event in NEXT[state]:
        assert after("r", state, event) is NEXT[state][event]
        return
    with pytest.raises(Illegal) as illegal:
        after("r", state, event)
    assert (illegal.value.state, illegal.value.event) == (state, event)
    assert all(allowed in str(illegal.value) for allowed in NEXT[state])


def test_what_has_ended_has_ended():
    assert {ReservationState.RELEASED, ReservationState.EXPIRED, ReservationState.FAILED} == ENDED


def test_every_state_can_be_reached_and_can_end():
    reached = {ReservationState.HELD}
    for _ in ReservationState:
        reached |= {following for state in reached for following in NEXT[state].values()}
    assert reached == set(ReservationState)
    for state in set(ReservationState) - ENDED:
        assert {LifecycleEvent.RELEASE, LifecycleEvent.EXPIRE, LifecycleEvent.FAIL} <= NEXT[state].keys()
