"""How an announcement stands. Pure, and quick to import: the command line has it too."""

from enum import StrEnum


class AnnouncementState(StrEnum):
    """How an announcement stands; those of :data:`ENDED` alone may have ended."""

    PROMISED = "promised"  # nothing was delivered yet
    UNDER_WAY = "under-way"
    LATE = "late"  # the promise is over, and not all has arrived
    ARRIVED = "arrived"
    RELEASED = "released"  # by its owner, before all had arrived
    LAPSED = "lapsed"  # before all had arrived, and nobody released it


ENDED = frozenset({AnnouncementState.ARRIVED, AnnouncementState.RELEASED, AnnouncementState.LAPSED})


class Ending(StrEnum):
    """Why an announcement is not in the plan any more."""

    RELEASED = "released"
    LAPSED = "lapsed"


class PromiseOutcome(StrEnum):
    """How the promise of an announcement that has ended was kept."""

    IN_TIME = "in-time"  # all of it had arrived by the moment that was promised
    LATE = "late"  # it arrived after that, or its owner released it after that and before all had arrived
    RELEASED = "released"  # by its owner, before that moment and before all had arrived: neither kept nor broken
    LAPSED = "lapsed"  # before all had arrived, and nobody released it
    UNCOUNTED = "uncounted"  # nobody knows: not all that was sent was counted


def state_of(size_bytes: int, delivered_bytes: int, *, is_over: bool, ending: Ending | None) -> AnnouncementState:
    """Return how an announcement stands.

    Args:
        size_bytes: what was announced.
        delivered_bytes: what has arrived.
        is_over: whether the moment that was promised has passed.
        ending: how it has ended; None if it has not.
    """
    if delivered_bytes >= size_bytes:
        return AnnouncementState.ARRIVED
    if ending is not None:
        return AnnouncementState(ending.value)
    if is_over:
        return AnnouncementState.LATE
    return AnnouncementState.UNDER_WAY if delivered_bytes else AnnouncementState.PROMISED
