"""Courses that come again: what begins where all is quiet, as it did before, goes as it went before. Pure.

Nothing that decides knows what time it is: rates, plans and transitions follow from what there is. So an image that
comes to a quiet site, and is done before anything else happens, need not be worked out each time; what it did is done
again, to the microsecond. A year of nights costs as much as its disturbances.
"""

from dataclasses import dataclass, field, replace

from controller.plan.plan import Plan
from controller.whatif.outcomes import CircuitUse, TransferOutcome
from controller.whatif.sendings import Sending
from controller.whatif.supposed import WorkItem

Piece = tuple[int, int, dict[str, int]]  # from, until, rates on the wire by direction


@dataclass(frozen=True, slots=True)
class Course:
    """What happened from a beginning in quiet until it was quiet again; all times from the beginning.

    Attributes:
        lasts_us: how long that was.
        outcomes: of the transfers in it.
        pieces: what circuits carried.
        bit_us: by direction, what that comes to, wire bits x 1,000,000.
        standing: by standing flow, the bits x 1,000,000 it sent, and since when its last rate holds; None for before.
        events: how many were worked off.
    """

    lasts_us: int
    outcomes: tuple[TransferOutcome, ...]
    pieces: tuple[Piece, ...]
    bit_us: dict[str, int]
    standing: tuple[tuple[int, int | None], ...]
    events: int

    def shifted(self, begun_us: int, number: int) -> list[TransferOutcome]:
        """Return its outcomes as they are when it begins at another time."""
        return [
            replace(
                one,
                number=number,
                begun_us=begun_us + one.begun_us,
                promised_us=None if one.promised_us is None else begun_us + one.promised_us,
                done_us=None if one.done_us is None else begun_us + one.done_us,
            )
            for one in self.outcomes
        ]

    def add_to(self, use: CircuitUse, standing: list[Sending], begun_us: int) -> None:
        """Add what circuits carried in it, and what the standing flows sent, at another time."""
        if not use.add_sums(self.bit_us, begun_us, begun_us + self.lasts_us):
            for start_us, end_us, rates_bps in self.pieces:
                use.add(rates_bps, begun_us + start_us, begun_us + end_us)
        for one, (sent, since_us) in zip(standing, self.standing, strict=True):
            one.sent += sent
            if since_us is not None:
                one.since_us = begun_us + since_us


@dataclass(frozen=True, slots=True)
class QuietStart:
    """All that the course of an item follows from where it begins in quiet.

    Attributes:
        item: what begins.
        dead: the circuits that are dead.
        plan: the plan in force.
    """

    item: WorkItem
    dead: frozenset[str]
    plan: Plan

    def is_as(self, other: "QuietStart") -> bool:
        """Return whether all is as in another.

        A plan that is made anew keeps the parts that are as before; comparing parts of thousands would cost more than
        to work a course out.
        """
        mine, others = self.plan, other.plan
        is_same_plan = mine.links is others.links and mine.entries is others.entries
        return is_same_plan and (self.item, self.dead) == (other.item, other.dead)


@dataclass
class Recording:
    """A course while it is under way.

    Attributes:
        start: where it began.
        begun_us: when, Unix time.
        foreseen: the number of the last event that was foreseen before it: none of these belongs to it.
        worked: how many events had been worked off.
        outcomes: how many there were already.
        sent: what each standing flow had sent.
        pieces: what circuits have carried since.
    """

    start: QuietStart
    begun_us: int
    foreseen: int
    worked: int
    outcomes: int
    sent: tuple[int, ...]
    pieces: list[Piece] = field(default_factory=list)

    def ended(
        self, now_us: int, worked: int, outcomes: list[TransferOutcome], standing: list[Sending]
    ) -> Course | None:
        """Return the course that was recorded; None if it was not as it would be at any other time.

        A reason names moments and circuits of its own time.
        """
        if any(one.why or one.is_refused for one in outcomes):
            return None
        begun_us = self.begun_us
        relative = tuple(
            replace(
                one,
                begun_us=one.begun_us - begun_us,
                promised_us=None if one.promised_us is None else one.promised_us - begun_us,
                done_us=None if one.done_us is None else one.done_us - begun_us,
            )
            for one in outcomes
        )
        pieces = tuple((start_us - begun_us, end_us - begun_us, bps) for start_us, end_us, bps in self.pieces)
        sums: dict[str, int] = {}
        for start_us, end_us, rates_bps in pieces:
            for name, rate_bps in rates_bps.items():
                sums[name] = sums.get(name, 0) + rate_bps * (end_us - start_us)
        sent = tuple(
            (one.sent - before, one.since_us - begun_us if one.since_us >= begun_us else None)
            for one, before in zip(standing, self.sent, strict=True)
        )
        return Course(now_us - begun_us, relative, pieces, sums, sent, worked - self.worked)


class Courses:
    """The courses that are known, the newest of each item and of each set of dead circuits; and the one under way."""

    def __init__(self) -> None:
        self._known: dict[tuple[WorkItem, frozenset[str]], tuple[QuietStart, Course]] = {}
        self._under_way: Recording | None = None

    def known(self, start: QuietStart) -> Course | None:
        """Return what follows from such a beginning; None if it is not known."""
        kept = self._known.get((start.item, start.dead))
        return kept[1] if kept is not None and kept[0].is_as(start) else None

    def begin(self, recording: Recording | None) -> None:
        """Record a course instead of the one under way; None records nothing."""
        self._under_way = recording

    def worked_off(self, number: int) -> None:
        """Record no more if an event was foreseen before the course began: something else has come in between."""
        if self._under_way is not None and number <= self._under_way.foreseen:
            self._under_way = None

    def went_on(self, piece: Piece) -> None:
        """Record what circuits have carried."""
        if self._under_way is not None:
            self._under_way.pieces.append(piece)

    @property
    def under_way(self) -> Recording | None:
        """The course that is recorded."""
        return self._under_way

    def end(self, start: QuietStart | None, course: Course | None) -> None:
        """Record no more, and keep a course if all is as it was when it began."""
        recorded, self._under_way = self._under_way, None
        if recorded is not None and start is not None and course is not None and recorded.start.is_as(start):
            self._known[start.item, start.dead] = start, course
