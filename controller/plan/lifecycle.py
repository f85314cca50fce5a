"""The life of a reservation, as a table.

held -> committed -> provisioning -> active -> released | expired | failed. ``provisioning`` is the time in which the
start has come and something still lacks: the provider's circuit, a switch or a host; ``active`` is said only while
all of them carry it.
"""

from enum import StrEnum


class ReservationState(StrEnum):
    """Where a reservation stands."""

    HELD = "held"
    COMMITTED = "committed"
    PROVISIONING = "provisioning"
    ACTIVE = "active"
    RELEASED = "released"
    EXPIRED = "expired"
    FAILED = "failed"


class LifecycleEvent(StrEnum):
    """What happens to it. The names follow NSI CS 2.1 (GFD.237) where it has one."""

    RENEW = "renew"  # the hold is wanted for longer
    CHANGE = "change"  # rate, start, end or class
    COMMIT = "commit"
    START = "start"  # the clock has reached its start
    UP = "up"  # provider, switches and hosts carry it
    LOSE = "lose"  # one of them does not any more
    RELEASE = "release"  # by its owner
    EXPIRE = "expire"  # the clock has reached the end of the hold, or of the reservation
    FAIL = "fail"  # it cannot be carried


NEXT: dict[ReservationState, dict[LifecycleEvent, ReservationState]] = {
    ReservationState.HELD: {
        LifecycleEvent.RENEW: ReservationState.HELD,
        LifecycleEvent.CHANGE: ReservationState.HELD,
        LifecycleEvent.COMMIT: ReservationState.COMMITTED,
        LifecycleEvent.RELEASE: ReservationState.RELEASED,
        LifecycleEvent.EXPIRE: ReservationState.EXPIRED,
        LifecycleEvent.FAIL: ReservationState.FAILED,
    },
    ReservationState.COMMITTED: {
        LifecycleEvent.CHANGE: ReservationState.COMMITTED,
        LifecycleEvent.START: ReservationState.PROVISIONING,
        LifecycleEvent.RELEASE: ReservationState.RELEASED,
        LifecycleEvent.EXPIRE: ReservationState.EXPIRED,
        LifecycleEvent.FAIL: ReservationState.FAILED,
    },
    ReservationState.PROVISIONING: {
        LifecycleEvent.CHANGE: ReservationState.PROVISIONING,
        LifecycleEvent.UP: ReservationState.ACTIVE,
        LifecycleEvent.RELEASE: ReservationState.RELEASED,
        LifecycleEvent.EXPIRE: ReservationState.EXPIRED,
        LifecycleEvent.FAIL: ReservationState.FAILED,
    },
    ReservationState.ACTIVE: {
        LifecycleEvent.CHANGE: ReservationState.ACTIVE,
        LifecycleEvent.LOSE: ReservationState.PROVISIONING,
        LifecycleEvent.RELEASE: ReservationState.RELEASED,
        LifecycleEvent.EXPIRE: ReservationState.EXPIRED,
        LifecycleEvent.FAIL: ReservationState.FAILED,
    },
    ReservationState.RELEASED: {},
    ReservationState.EXPIRED: {},
    ReservationState.FAILED: {},
}

ENDED = frozenset(state for state, events in NEXT.items() if not events)
IN_PLAN = frozenset({ReservationState.PROVISIONING, ReservationState.ACTIVE})


class Illegal(Exception):
    """An event that the table does not allow in a state."""

    def __init__(self, reservation_id: str, state: ReservationState, event: LifecycleEvent) -> None:
        self.reservation_id = reservation_id
        self.state = state
        self.event = event
        allowed = f", only {', '.join(NEXT[state])}" if NEXT[state] else " any more"
        super().__init__(f'reservation "{reservation_id}" is {state}: it cannot {event}{allowed}')


def after(reservation_id: str, state: ReservationState, event: LifecycleEvent) -> ReservationState:
    """Return the state that follows.

    Raises:
        Illegal: the table has no such step.
    """
    try:
        return NEXT[state][event]
    except KeyError:
        raise Illegal(reservation_id, state, event) from None
