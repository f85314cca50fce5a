"""What there is already when a scenario begins: promises made, and circuits that are down. Pure values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.plan.announcements import Announcement
from controller.plan.reservations import Reservation
from controller.state.installed import StepDone
from controller.state.reported import KnownStore


@dataclass(frozen=True, slots=True)
class Begun:
    """What a scenario goes on from.

    Attributes:
        reservations: those that have not ended.
        announcements: likewise, with what was delivered of each.
        down: the circuits whose lines are down; they are taken to stay so.
        steps: the latest steps of switches and hosts, by which a promise counts how long they take; none if not known.
        stores: by host, by name, what its agent has told of where it puts what it receives.
    """

    reservations: tuple[Reservation, ...] = ()
    announcements: tuple[Announcement, ...] = ()
    down: frozenset[str] = frozenset()
    steps: tuple[StepDone, ...] = ()
    stores: Mapping[str, Mapping[str, KnownStore]] = field(default_factory=dict)


NOTHING_BEGUN = Begun()
