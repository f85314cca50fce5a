"""The table of a purchase, state by event."""

import itertools

import pytest

from controller.plan.purchase_lifecycle import PURCHASE_NEXT, SHOWN, PurchaseEvent, moved
from controller.plan.purchases import Period, Purchase, PurchaseState

PERIOD, OTHER = Period(0, 10, 10**6), Period(0, 20, 10**6)


@pytest.mark.parametrize(("state", "event"), list(itertools.product(PurchaseState, PurchaseEvent)))
def test_each_event_either_moves_by_the_table_or_is_refused(state, event):
    known = Purchase("p", PERIOD, state, "why")
    if event in PURCHASE_NEXT[state]:
        assert moved(known, event) == Purchase("p", PERIOD, PURCHASE_NEXT[state][event], "why")
        assert moved(known, event, OTHER, "") == Purchase("p", OTHER, PURCHASE_NEXT[state][event])
    else:
        with pytest.raises(ValueError, match=f'"p" is {state}: it cannot {event}'):
            moved(known, event)


def test_what_a_provider_shows_of_one_that_it_holds_is_where_it_stands():
    for state, shown in itertools.product((PurchaseState.RESERVED, PurchaseState.DEPLOYING, PurchaseState.UP), SHOWN):
        assert PURCHASE_NEXT[state][SHOWN[shown]] is shown


def test_whatever_is_not_over_can_be_given_back():
    over = {PurchaseState.DROPPED, PurchaseState.ENDED}
    for state in set(PurchaseState) - over:
        assert PURCHASE_NEXT[state][PurchaseEvent.RELEASE] is PurchaseState.DROPPED
    assert [PURCHASE_NEXT[state] for state in over] == [{}, {}]


def test_every_state_can_be_reached_from_the_first():
    reached = {PurchaseState.ASKED}
    for _ in PurchaseState:
        reached |= {following for state in reached for following in PURCHASE_NEXT[state].values()}
    assert reached == set(PurchaseState)
