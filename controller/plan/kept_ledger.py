"""The ledger, and what of it is saved: parts to be saved, decisions that were not, and what the clock did meanwhile."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from controller.plan.announcement_states import Ending
from controller.plan.announcements import Announcement, led_by, led_over
from controller.plan.ended import EndedAnnouncement
from controller.plan.ledger import Ledger
from controller.plan.lifecycle import ENDED, IN_PLAN, ReservationState
from controller.plan.paths import Path, satisfies
from controller.plan.policy import Policy
from controller.plan.reservations import Reservation, due_event
from controller.plan.routes import joins
from controller.plan.unsaved import with_saved
from topology.addresses import reached_from
from topology.network import Network
from topology.present_paths import present_paths

GONE = "its path is not in the network any more"
UNREACHED = "its two hosts have no family of addresses in common any more"
UNBACKED = "one of its two paths is not in the network any more: it has no backup"


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
        gone: those reservations, and announcements that have ended, that this network cannot carry any more.
    """

    number: int
    reservations: Mapping[str, Reservation]
    announcements: Mapping[str, Announcement | None]
    ended: Mapping[int, EndedAnnouncement]
    before: Mapping[str, Reservation | None]
    announcements_before: Mapping[str, Announcement | None]
    ended_before: Mapping[int, EndedAnnouncement | None]
    gone: tuple[Reservation | EndedAnnouncement, ...] = ()

    def numbered(self, numbers: Collection[int]) -> Iterator[Reservation | EndedAnnouncement]:
        """Yield those reservations, and announcements that have ended, which have one of some numbers."""
        yield from (known for known in self.reservations.values() if known.sequence in numbers)
        yield from (one for number, one in self.ended.items() if number in numbers)


class KeptLedger(Ledger):
    """A ledger that is saved part by part, in their order or not at all. Reservations that have ended leave it then."""

    def __init__(self, network: Network, policy: Policy, lead_us: Mapping[str, int] | None = None) -> None:
        super().__init__(network, policy, lead_us)
        self._parts = 0  # how many were handed over
        self.left: Counter[ReservationState] = Counter()  # how many have ended while this controller led, by how
        self.left_with_key = 0  # how many reservations have left that had an idempotency key
        self.gone: dict[int, str] = {}  # by the number of what this network cannot carry, why; until it is handed over

    def restore(self, reservations: Iterable[Reservation], announcements: Iterable[Announcement], now_us: int) -> None:
        """Take in what was saved; the calendar is then as it was.

        A promise over a circuit that is gone has ended then, and one between two hosts without a common family; a
        reservation with a backup goes on by the path that is left. One over a circuit that is there in another form,
        since another has come beside it or has gone, goes on by that, and one of a site that has another name by this
        name. All are changes to be saved.
        """
        for known in sorted(reservations, key=lambda r: r.sequence):
            self._restore_one(known, now_us)
        self._sequence = max(self._sequence, self.ended.last_sequence)
        for announcement in sorted(announcements, key=lambda a: a.sequence):
            self._restore_announcement(announcement, now_us)

    def _restore_one(self, known: Reservation, now_us: int) -> None:
        self._sequence = max(self._sequence, known.sequence)
        has_ended = known.state in ENDED
        meet = has_ended or self._meet(known.path)
        is_there = has_ended or (meet and self._has(*known.paths))
        here = known if has_ended else self._at_present_sites(known)
        if is_there and here is known:
            self._place(known)
            return
        ways = (known.paths,) if is_there else self._ways_of(known.paths) if meet else ()
        moved = (self._on(here, *way) for way in ways)
        failed = replace(known, state=ReservationState.FAILED, reason=GONE if meet else UNREACHED)
        now = min(moved, key=self._is_hindered, default=failed)
        written = replace(now, version=known.version + 1, changed_us=now_us)
        self._place(written)
        self._unsaved.put(known.reservation_id, known, written)
        if not ways:
            self.gone[known.sequence] = failed.reason

    def _meet(self, *paths: Path) -> bool:
        """Return whether all hosts at the two ends of paths have a family of addresses in common."""
        ends = ((path[0], path[-1]) for path in paths)
        pairs = ([self.network.host(end) for end in pair] for pair in ends if self.network.host_names.issuperset(pair))
        return all(reached_from(source.prefixes, target.prefixes) for source, target in pairs)

    def _ways_of(self, paths: tuple[Path, ...]) -> tuple[tuple[Path, ...], ...]:
        """Return by which paths, or by which of them alone, a promise could go on, the first choice first."""
        both = present_paths(self.network, paths)
        return both or tuple(way for path in paths for way in present_paths(self.network, (path,)))

    @staticmethod
    def _on(known: Reservation, path: Path, backup: Path = ()) -> Reservation:
        """Return a reservation on other paths; one that had a backup and has none now says so."""
        reason = UNBACKED if known.backup and not backup else known.reason
        return replace(known, path=path, backup=backup, reason=reason)

    def _at_present_sites(self, known: Reservation) -> Reservation:
        """Return a reservation between sites by what these are called now: its path says by its switches which."""
        sites = self.network.edge_sites
        a_end, z_end = sites.get(known.path[0], known.a_end), sites.get(known.path[-1], known.z_end)
        is_same = (a_end, z_end) == (known.a_end, known.z_end)
        return known if is_same else replace(known, a_end=a_end, z_end=z_end)

    def _is_hindered(self, known: Reservation) -> tuple[bool, bool]:
        """Return whether a reservation would not be as it was asked for, and whether it is in the way of others."""
        no_room = self.calendar.shortage(self._booking(known)) is not None
        return not satisfies(self.network, known.path, known.constraints), no_room or self._admission.clashes(known)

    def _restore_announcement(self, announcement: Announcement, now_us: int) -> None:
        self._sequence = max(self._sequence, announcement.sequence)
        paths = tuple(flow.path for flow in announcement.flows)
        meet = self._meet(*paths)
        if meet and self._has(*paths):
            self._enter(announcement)
            return
        now = self._as_led_now(announcement) if meet else None
        if now is None:
            self._unsaved_announcements.put(announcement.announcement_id, announcement, None)
            self.ended.add(announcement, Ending.LAPSED, now_us)
            self.gone[announcement.sequence] = GONE if meet else UNREACHED
            return
        self._unsaved_announcements.put(announcement.announcement_id, announcement, now)
        self._enter(now)

    def _as_led_now(self, known: Announcement) -> Announcement | None:
        """Return an announcement by the path of the reservation that it draws on, else by its own; None without any."""
        drawn_on = self.reservations.get(known.pool)
        if drawn_on is not None and drawn_on.state not in ENDED:
            path = drawn_on.path
            if all(joins(self.network, flow.host, path, flow.target) for flow in known.flows):
                return led_by(self.network, known, drawn_on)
        ways = present_paths(self.network, tuple(flow.path for flow in known.flows))
        return min((led_over(self.network, known, way) for way in ways), key=self._is_in_the_way, default=None)

    def follow(
        self,
        reservations: Iterable[Reservation],
        announcements: Mapping[str, Announcement | None],
        ended: Sequence[EndedAnnouncement],
        now_us: int,
    ) -> bool:
        """Take in what another controller has saved since; return whether that can be done, or all is to be read anew.

        The ledger is then as :meth:`restore` and :meth:`go_on_from` would make one of all that is saved.

        Args:
            reservations: those that have changed, also those that have ended.
            announcements: by name, those that have changed; None for one that is not in the plan any more.
            ended: those that have ended, or whose last counts have come.
            now_us: Unix time.
        """
        by_name = {known.reservation_id: known for known in reservations}
        if any(name in self._unsaved for name in by_name):
            return False
        drawing = {name for name, known in self.announcements.items() if known.pool in by_name}
        touched = sorted(drawing | announcements.keys())
        earlier = {name: self.announcements.pop(name) for name in touched if name in self.announcements}
        for known in earlier.values():
            self._cancel(known)
        self.ended.follow(ended, {known.sequence: known for known in earlier.values()}, now_us)
        self._sequence = max(self._sequence, self.ended.last_sequence)
        for reservation in sorted(by_name.values(), key=lambda r: r.sequence):
            self._restore_one(reservation, now_us)
            if reservation.state in ENDED:
                self._leaves(reservation)
        for name in touched:
            if name in announcements:
                self._follow_announcement(name, announcements[name], earlier.get(name), now_us)
            else:
                self._restore_announcement(earlier[name], now_us)
        self._put_in_order()
        self._due.skip(now_us, self._needs_nothing)
        self.moves += 1
        return True

    def _follow_announcement(
        self, name: str, known: Announcement | None, earlier: Announcement | None, now_us: int
    ) -> None:
        was_unsaved = name in self._unsaved_announcements
        self._unsaved_announcements.drop(name)
        if known is not None:
            self._restore_announcement(known, now_us)
            if earlier is not None and earlier.sequence == known.sequence and name in self.announcements:
                self._count_on(name, known, earlier, unsaved=was_unsaved)

    def _put_in_order(self) -> None:
        """Have the announcements as they were made: of promises that are one flow in the plan, the first names it."""
        in_order = sorted(self.announcements.items(), key=lambda item: item[1].sequence)
        self.announcements.clear()
        self.announcements.update(in_order)

    def _count_on(self, name: str, saved: Announcement, counted: Announcement, *, unsaved: bool) -> None:
        """Go on with what hosts have counted of an announcement that was entered as it is saved."""
        self.announcements[name] = _as_counted(self.announcements[name], counted)
        if unsaved:
            self._unsaved_announcements.put(name, saved, self.announcements[name])

    def _needs_nothing(self, name: str, now_us: int) -> bool:
        """Return whether nothing need be done by the time of its name: who leads has done it, or will not."""
        announced, reserved = self.announcements.get(name), self.reservations.get(name)
        lapses = announced is not None and announced.lapses_us <= now_us
        return not lapses and (reserved is None or due_event(reserved, now_us) is None)

    def _has(self, *paths: tuple[str, ...]) -> bool:
        return all(self.network.graph.has_edge(*edge) for path in paths for edge in pairwise(path))

    def changes(self, *, decided: bool) -> LedgerPart:
        """Return, once, what has changed since the last call; ``decided``: by somebody's wish, not by the clock."""
        self._parts += 1
        number = self._parts
        before = (self._unsaved.before(), self._unsaved_announcements.before(), self.ended.unsaved.before())
        reservations = self._unsaved.handed_over(number, decided=decided).values()
        announcements = self._unsaved_announcements.handed_over(number, decided=decided)
        ended = self.ended.unsaved.handed_over(number, decided=decided)
        part = LedgerPart(
            number,
            {known.reservation_id: known for known in reservations if known is not None},
            announcements,
            {n: one for n, one in ended.items() if one is not None},
            *before,
        )
        gone, self.gone = self.gone, {}
        return replace(part, gone=tuple(part.numbered(gone))) if gone else part

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
                self.left[known.state] += 1

    def _leaves(self, ended: Reservation) -> None:
        """Let go of a reservation that has ended and is saved so; it is read from the database from now on."""
        del self.reservations[ended.reservation_id]
        self._due.drop(ended.reservation_id)
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

    def go_on_from(self, earlier: "KeptLedger", now_us: int, *, leads: bool = True) -> None:
        """Take over what the clock alone has done in an earlier ledger and what was not saved there.

        Only to what is here as it was saved there: the rest was decided otherwise, and the clock acts on it anew.

        Args:
            earlier: it.
            now_us: Unix time.
            leads: whether this controller does; what ends while another one does is counted by that.
        """
        self.down = earlier.down
        self.left = earlier.left
        restored = self._unsaved.of_clock()
        for name, before in earlier._unsaved.of_clock().items():
            known, theirs = self.reservations.get(name), earlier.reservations[name]
            if known is None:
                continue
            saved = restored.get(name, known)
            if saved == before:
                self._place(theirs)
                self._unsaved.put(name, saved, theirs)
            elif known.version <= theirs.version:  # nobody may take it for what was shown under that number
                self._write(replace(known, version=theirs.version), now_us)
        for known in tuple(self.reservations.values()):
            if known.state in ENDED and known.reservation_id not in self._unsaved:
                self._leaves(known)
                self.left[known.state] += leads
        self._go_on_with_announcements(earlier, now_us)

    def _go_on_with_announcements(self, earlier: "KeptLedger", now_us: int) -> None:
        """Take over what was counted meanwhile, and what has ended; one that is gone here was released unheard."""
        unsaved, lapsed = earlier._unsaved_announcements.of_clock(), earlier.ended.lately
        for name, known in tuple(self.announcements.items()):
            theirs = earlier.announcements.get(name)
            if theirs is not None and theirs.sequence == known.sequence:
                self._count_on(name, known, theirs, unsaved=name in unsaved)
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
