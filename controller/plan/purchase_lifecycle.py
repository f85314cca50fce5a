"""The life of a purchase, as a table: what our steps make of it, and what its provider shows of it. Pure."""

from dataclasses import replace
from enum import StrEnum

from controller.plan.purchases import Period, Purchase, PurchaseState


class PurchaseEvent(StrEnum):
    """What happens to it."""

    SELL = "sell"  # the provider has done what it was asked for
    REFUSE = "refuse"  # it will not sell
    DIFFER = "differ"  # it has something else in force than it was asked for, and says what
    CHANGE = "change"  # it has moved the purchase as it was asked to
    RELEASE = "release"  # it was given back
    GIVE_UP = "give up"  # nobody has answered, and it is not there: a new one is asked for instead
    SHOW_ASKED = "show asked"  # a look at the provider shows it so
    SHOW_RESERVED = "show reserved"
    SHOW_DEPLOYING = "show deploying"
    SHOW_UP = "show up"
    SHOW_FAILED = "show failed"
    SHOW_ENDED = "show ended"


SHOWN: dict[PurchaseState, PurchaseEvent] = {
    state: PurchaseEvent(f"show {state}") for state in PurchaseState if state is not PurchaseState.DROPPED
}
_LOOKED_AT = {event: state for state, event in SHOWN.items()}  # the provider knows best


def _held(state: PurchaseState) -> dict[PurchaseEvent, PurchaseState]:
    """Return the steps of one that the provider holds."""
    return {
        PurchaseEvent.DIFFER: PurchaseState.RESERVED,
        PurchaseEvent.CHANGE: state,
        PurchaseEvent.RELEASE: PurchaseState.DROPPED,
        **_LOOKED_AT,
    }


PURCHASE_NEXT: dict[PurchaseState, dict[PurchaseEvent, PurchaseState]] = {
    PurchaseState.ASKED: {
        PurchaseEvent.SELL: PurchaseState.RESERVED,
        PurchaseEvent.REFUSE: PurchaseState.FAILED,
        PurchaseEvent.DIFFER: PurchaseState.RESERVED,
        PurchaseEvent.GIVE_UP: PurchaseState.DROPPED,
        PurchaseEvent.RELEASE: PurchaseState.DROPPED,
    },
    PurchaseState.RESERVED: _held(PurchaseState.RESERVED),
    PurchaseState.DEPLOYING: _held(PurchaseState.DEPLOYING),
    PurchaseState.UP: _held(PurchaseState.UP),
    PurchaseState.FAILED: {
        PurchaseEvent.DIFFER: PurchaseState.RESERVED,
        PurchaseEvent.RELEASE: PurchaseState.DROPPED,
    },
    PurchaseState.DROPPED: {},
    PurchaseState.ENDED: {},
}


def moved(
    purchase: Purchase, event: PurchaseEvent, period: Period | None = None, reason: str | None = None
) -> Purchase:
    """Return a purchase after an event.

    Args:
        purchase: as it stands.
        event: what happens to it.
        period: what it now is; None: as before.
        reason: why it is where it then is; None: as before.

    Raises:
        ValueError: the table does not allow the event now.
    """
    state = PURCHASE_NEXT[purchase.state].get(event)
    if state is None:
        raise ValueError(f'purchase "{purchase.name}" is {purchase.state}: it cannot {event}')
    return replace(
        purchase,
        state=state,
        period=purchase.period if period is None else period,
        reason=purchase.reason if reason is None else reason,
    )
