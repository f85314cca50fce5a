"""The ledger, and what of it is saved: parts to be saved, decisions that were not, and what the clock did meanwhile."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from controller.plan.announcement_states import Ending
from controller.plan.announcements import Announcement
from controller.plan.ended import EndedAnnouncement
from controller.plan.ledger import Ledger
from controller.plan.lifecycle import ENDED, IN_PLAN, ReservationState
from controller.plan.policy import Policy
from controller.plan.reservations import Reservation
from controller.plan.unsaved import with_saved
from topology.network import Network


@dataclass(frozen=True, slots=True)
class LedgerPart:
    """What has changed of a ledger, to be saved as one.

    Attributes:
        number: its place among all parts.
        reservations: by name, as they are now.
        announcements: by name, as they are now; None for one that is gone.
        ended: announcements that have ended, by number, as they are now.
        before: the reservations as they were in the part before, or in the database; None for a new one.
        announcements_before: likewise.
        ended_before: likewise; None for one that has ended now.
    """

    number: int
    reservations: Mapping[str, Reservation]
    announcements: Mapping[str, Announcement | None]
    ended: Mapping[int, EndedAnnouncement]
    before: Mapping[str, Reservation | None]
    announcements_before: Mapping[str, Announcement | None]
    ended_before: Mapping[int, EndedAnnouncement | None]


class KeptLedger(Ledger):
    """A ledger that is saved part by part, in their order or not at all. Reservations that have ended leave it then."""

    def __init__(self, network: Network, policy: Policy, lead_us: Mapping[str, int] | None = None) -> None:
        super().__init__(network, policy, lead_us)
        self._parts = 0  # how many were handed over
        self.left: Counter[ReservationState] = Counter()  # how many reservations have left, by how they have ended
        self.left_with_key = 0  # and how many of them had an idempotency key

    def restore(self, reservations: Iterable[Reservation], announcements: Iterable[Announcement], now_us: int) -> None:
        """Take in what was saved; the calendar is then as it was.

        A reservation over a link that the network no longer has is failed, which is a change to be saved.
        """
        for known in sorted(reservations, key=lambda r: r.sequence):
            self._sequence = max(self._sequence, known.sequence)
            if known.state in ENDED or self._has(*known.paths):
                self._place(known)
            else:
                gone = "its path is not in the network any more"
                self._write(replace(known, state=ReservationState.FAILED, reason=gone), now_us)
        self._sequence = max(self._sequence, self.ended.last_sequence)
        for announcement in announcements:
            self._sequence = max(self._sequence, announcement.sequence)
            if self._has(*(flow.path for flow in announcement.flows)):
                self._enter(announcement)
            else:
                self._unsaved_announcements.put(announcement.announcement_id, announcement, None)
                self.ended.add(announcement, Ending.LAPSED, now_us)

    def _has(self, *paths: tuple[str, ...]) -> bool:
        return all(self.network.graph.has_edge(*edge) for path in paths for edge in pairwise(path))

    def changes(self, *, decided: bool) -> LedgerPart:
        """Return, once, what has changed since the last call; ``decided``: by somebody's wish, not by the clock."""
        self._parts += 1
        number = self._parts
        before = (self._unsaved.before(), self._unsaved_announcements.before(), self.ended.unsaved.before())
        return LedgerPart(
            number,
            {name: r for name, r in self._unsaved.handed_over(number, decided=decided).items() if r is not None},
            self._unsaved_announcements.handed_over(number, decided=decided),
            {n: e for n, e in self.ended.unsaved.handed_over(number, decided=decided).items() if e is not None},
            *before,
        )

    @property
    def has_changed(self) -> bool:
        """Whether :meth:`changes` would return something."""
        return any((self._unsaved, self._unsaved_announcements, self.ended.unsaved))

    def saved(self, part: LedgerPart) -> None:
        """Note that a part is saved: the plan may follow what was decided in it."""
        decided = self._unsaved.saved(part.number, part.reservations)
        announced = self._unsaved_announcements.saved(part.number, part.announcements)
        self.ended.unsaved.saved(part.number, part.ended)
        self.moves += bool(announced) or any(
            known.state in IN_PLAN or known.reservation_id in self._running for known in decided
        )
        for known in part.reservations.values():
            if known.state in ENDED and self.reservations.get(known.reservation_id) == known:
                self._leaves(known)

    def _leaves(self, ended: Reservation) -> None:
        """Let go of a reservation that has ended and is saved so; it is read from the database from now on."""
        del self.reservations[ended.reservation_id]
        self._due.drop(ended.reservation_id)
        self.left[ended.state] += 1
        self.left_with_key += self._by_key.pop(ended.key, None) is not None

    def is_undecided(self, name: str) -> bool:
        """Return whether a reservation has a decision that is on its way to the database."""
        return name in self._unsaved.undecided()

    def shown(self) -> Mapping[str, Reservation]:
        """Return the reservations as they are saved, and as the clock has made them: what a crash does not undo."""
        return with_saved(self.reservations, self._unsaved)

    def shown_one(self, name: str) -> Reservation | None:
        """Return one of :meth:`shown` without a look at the others; None if it is not among them."""
        undecided = self._unsaved.undecided()
        return undecided[name] if name in undecided else self.reservations.get(name)

    def shown_announcements(self) -> Mapping[str, Announcement]:
        """Return the announcements as they are saved, and as the clock has made them."""
        return with_saved(self.announcements, self._unsaved_announcements)

    def shown_ended(self) -> Mapping[int, EndedAnnouncement]:
        """Return the announcements that have ended lately as they are saved, and as the clock has made them."""
        return with_saved(self.ended.lately, self.ended.unsaved)

    def withdraw(self) -> None:
        """Take back every decision that is not saved; what the clock makes of that becomes due again.

        What hosts have counted since stays.
        """
        counted = self.ended.withdraw()
        announced, known = self._unsaved_announcements.withdrawn(), self._unsaved.withdrawn()
        for name in announced.keys() & self.announcements.keys():
            undone = self.announcements.pop(name)
            self._cancel(undone)
            counted[undone.sequence] = undone
        for name in (name for name, before in known.items() if before is None):
            gone = self.reservations.pop(name)
            self._by_key.pop(gone.key, None)
            self._running.pop(name, None)
            self._admission.reserves(gone, kept=False)
            self._book_anew(name, None)
        for reservation in known.values():
            if reservation is not None:
                self._place(reservation)
        for announcement in announced.values():
            if announcement is not None:
                self._enter(_as_counted(announcement, counted.get(announcement.sequence, announcement)))
        self.moves += 1

    def go_on_from(self, earlier: "KeptLedger", now_us: int) -> None:
        """Take over what the clock alone has done in an earlier ledger and what was not saved there.

        Only to what is here as it was saved there: the rest was decided otherwise, and the clock acts on it anew.
        """
        self.down = earlier.down
        for name, before in earlier._unsaved.of_clock().items():
            known, theirs = self.reservations.get(name), earlier.reservations[name]
            if known is None:
                continue
            if known == before:
                self._place(theirs)
                self._unsaved.put(name, known, theirs)
            elif known.version <= theirs.version:  # nobody may take it for what was shown under that number
                self._write(replace(known, version=theirs.version), now_us)
        for known in tuple(self.reservations.values()):
            if known.state in ENDED and known.reservation_id not in self._unsaved:
                self._leaves(known)
        self._go_on_with_announcements(earlier, now_us)

    def _go_on_with_announcements(self, earlier: "KeptLedger", now_us: int) -> None:
        """Take over what was counted meanwhile, and what has ended; one that is gone here was released unheard."""
        unsaved, lapsed = earlier._unsaved_announcements.of_clock(), earlier.ended.lately
        for name, known in tuple(self.announcements.items()):
            theirs = earlier.announcements.get(name)
            if theirs is not None and theirs.sequence == known.sequence:
                self.announcements[name] = _as_counted(known, theirs)
                if name in unsaved:
                    self._unsaved_announcements.put(name, known, self.announcements[name])
            elif known.sequence in lapsed:
                self.announcements[name] = _as_counted(known, lapsed[known.sequence].announcement)
                self.forget(name, lapsed[known.sequence].ended_us, Ending.LAPSED)
        self.ended.go_on_from(earlier.ended, self.announcements)
        here = {known.sequence for known in self.announcements.values()}
        for theirs in earlier.announcements.values():
            if theirs.sequence not in here:
                self.ended.add(theirs, Ending.RELEASED, now_us)


def _as_counted(known: Announcement, counted: Announcement) -> Announcement:
    """Return an announcement with what hosts have counted of it meanwhile."""
    return replace(known, delivered=counted.delivered, finished_us=counted.finished_us)
