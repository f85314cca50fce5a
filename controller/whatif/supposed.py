"""What is supposed: who sends what and when, and what befalls the circuits. Pure values."""

from dataclasses import dataclass, field
from enum import StrEnum

from controller.checks import AnnouncementRequest
from controller.plan.policy import Policy
from controller.site import Site
from controller.whatif.awaited import Delays
from controller.whatif.begun import NOTHING_BEGUN, Begun
from controller.whatif.movers import Mover
from topology.protocol import FlowClass

DAY_US = 86_400_000_000


class Opening(StrEnum):
    """What its connection has behind it when bytes are there to be sent."""

    WARM = "warm"  # it is open, its window too
    RECEIVER = "receiver"  # the receiver connects: a round trip
    SENDER = "sender"  # the sender connects: its window opens a round trip later (RFC 7323 section 2.2)

    @property
    def round_trips(self) -> int:
        """How many pass before it can send at its rate."""
        return {Opening.WARM: 0, Opening.RECEIVER: 1, Opening.SENDER: 2}[self]


@dataclass(frozen=True, slots=True)
class WorkItem:
    """Something that is sent, once or again and again.

    Attributes:
        name: unique.
        flow_class: of its announcements, or its reservations.
        senders: hosts; each sends an equal part.
        target: the receiving host.
        size_bytes: payload of an announcement, all files together; 0 for a reservation.
        file_bytes: the size of each of its files; 0 for one file.
        mover: how it is sent.
        opening: what its connections have behind them.
        deadline_us: by when after its beginning; None for as soon as possible.
        rate_bps: what is reserved, on the wire; 0 for an announcement.
        for_us: how long, of a reservation.
        first_us: when it comes first, Unix time.
        every_us: after which time it comes again; 0 for once.
        between_us: of the day, UTC, when it comes: from, until; the latter may be of the next day. None for always.
        lanes: over how many circuits at once, at most.
        session_us: how long its program's session takes before its first byte.
        is_called: whether the receiver makes the connections, and deals them to the lanes.
        is_stored_by: whether the deadline is for all to be stored, and not only across.
    """

    name: str
    flow_class: FlowClass
    senders: tuple[str, ...]
    target: str
    size_bytes: int
    first_us: int
    file_bytes: int = 0
    mover: Mover = field(default_factory=Mover)
    opening: Opening = Opening.WARM
    deadline_us: int | None = None
    rate_bps: int = 0
    for_us: int = 0
    every_us: int = 0
    between_us: tuple[int, int] | None = None
    lanes: int = 1
    session_us: int = 0
    is_called: bool = False
    is_stored_by: bool = False

    def announced(self, name: str) -> AnnouncementRequest:
        """Return what its client announces, by a name."""
        return AnnouncementRequest(
            name,
            self.flow_class,
            self.size_bytes,
            self.senders,
            self.target,
            self.deadline_us,
            is_stored_by=self.is_stored_by,
            lanes=self.lanes,
            is_called=self.is_called,
            session_us=self.session_us,
        )

    def next_us(self, after_us: int) -> int | None:
        """Return when it comes next, not before a time; None if never again.

        It comes at whole multiples of its period from its first time, or, with times of the day, from their beginning.
        """
        if not self.every_us:
            return self.first_us if after_us <= self.first_us else None
        if self.between_us is None:
            return _multiple(self.first_us, self.every_us, after_us)
        begin_us, end_us = self.between_us
        length_us = (end_us - begin_us) % DAY_US or DAY_US
        after_us = max(after_us, self.first_us)
        day_us = (after_us - begin_us) // DAY_US * DAY_US + begin_us
        found_us = _multiple(day_us, self.every_us, after_us)
        return found_us if found_us < day_us + length_us else day_us + DAY_US


def _multiple(first_us: int, every_us: int, after_us: int) -> int:
    """Return the first of ``first + n * every`` that is not before a time."""
    return first_us + max(0, -((first_us - after_us) // every_us)) * every_us


@dataclass(frozen=True, slots=True)
class CircuitDeath:
    """A circuit carries nothing from ``at_us`` on, for so long."""

    circuit: str
    at_us: int
    down_for_us: int


@dataclass(frozen=True, slots=True)
class RandomDeaths:
    """A circuit that dies by chance: times between failures and of repair are exponential, with these means."""

    circuit: str
    mtbf_us: int
    mttr_us: int


@dataclass(frozen=True, slots=True)
class StoreBucket:
    """What a receiver can take: a buffer that is drained; a full one lets in what is drained.

    Source: ``arrived <= m + d t``.
    """

    drains_bps: int
    holds_bytes: int


@dataclass(frozen=True, slots=True)
class Stranger:
    """A transfer that nobody holds, with a congestion control of its own, beside the plan.

    Attributes:
        name: unique.
        sender: the sending host.
        target: the receiving one.
        size_bytes: payload.
        algorithm: its congestion control.
        streams: how many connections.
        loss: the chance of a segment on its path.
    """

    name: str
    sender: str
    target: str
    size_bytes: int
    algorithm: str
    streams: int
    loss: float


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A scenario.

    Attributes:
        site: network, policy, standing flows and maintenance.
        from_us: when it begins, Unix time.
        until_us: when it ends.
        items: who sends what.
        deaths: circuits that die at a given time.
        random_deaths: those that die by chance.
        stores: by host, what it can take.
        strangers: who sends beside the plan.
        delays: how long what is decided takes.
        begun: what there is already.
    """

    site: Site
    from_us: int
    until_us: int
    items: tuple[WorkItem, ...]
    deaths: tuple[CircuitDeath, ...] = ()
    random_deaths: tuple[RandomDeaths, ...] = ()
    stores: dict[str, StoreBucket] = field(default_factory=dict)
    strangers: tuple[Stranger, ...] = ()
    delays: Delays = field(default_factory=Delays)
    begun: Begun = NOTHING_BEGUN

    @property
    def policy(self) -> Policy:
        """What each class may have."""
        return self.site.policy
