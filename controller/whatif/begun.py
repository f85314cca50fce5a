"""What there is already when a scenario begins: promises made, and circuits that are down. Pure values."""

from dataclasses import dataclass

from controller.plan.announcements import Announcement
from controller.plan.reservations import Reservation


@dataclass(frozen=True, slots=True)
class Begun:
    """What a scenario goes on from.

    Attributes:
        reservations: those that have not ended.
        announcements: likewise, with what was delivered of each.
        down: the circuits whose lines are down; they are taken to stay so.
    """

    reservations: tuple[Reservation, ...] = ()
    announcements: tuple[Announcement, ...] = ()
    down: frozenset[str] = frozenset()


NOTHING_BEGUN = Begun()
