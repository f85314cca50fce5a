"""Announcements that have ended: what became of them, and who asks for one of them again. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from controller.errors import Taken
from controller.plan.announcement_states import AnnouncementState, Ending, PromiseOutcome, state_of
from controller.plan.announcements import Announcement
from controller.plan.deliveries import (
    KEEP_US,
    LAST_COUNT_US,
    Delivered,
    first_counts,
    grown_bytes,
    total_bytes,
    with_count,
    with_further_counts,
    without_last_counts,
)
from controller.plan.keys import FlowId
from controller.plan.unsaved import Unsaved
from controller.plan.unwritten import Unwritten
from topology.telemetry import EntryTelemetry


@dataclass(frozen=True, slots=True)
class EndedAnnouncement:
    """An announcement that is not in the plan any more.

    Attributes:
        announcement: as it was, with what was delivered.
        ending: how it has ended.
        ended_us: when, Unix time.
    """

    announcement: Announcement
    ending: Ending
    ended_us: int

    @property
    def state(self) -> AnnouncementState:
        """What became of it."""
        size_bytes, delivered_bytes = self.announcement.size_bytes, total_bytes(self.announcement.delivered)
        return state_of(size_bytes, delivered_bytes, is_over=True, ending=self.ending)

    @property
    def outcome(self) -> PromiseOutcome:
        """How its promise was kept, as far as its senders have counted."""
        known = self.announcement
        if known.finished_us is not None:
            return PromiseOutcome.IN_TIME if known.finished_us <= known.promised_us else PromiseOutcome.LATE
        if any(one.is_least or not one.is_last for one in known.delivered):
            return PromiseOutcome.UNCOUNTED
        if self.ending is Ending.LAPSED:
            return PromiseOutcome.LAPSED
        return PromiseOutcome.RELEASED if self.ended_us <= known.promised_us else PromiseOutcome.LATE


@dataclass(frozen=True, slots=True)
class UsedKey:
    """An idempotency key that an announcement was made with, which has ended.

    Attributes:
        key: it.
        sequence: the announcement's.
        ended_us: when that has ended, Unix time.
    """

    key: str
    sequence: int
    ended_us: int


def check_same(known: Announcement, fingerprint: str, field: str, name: str) -> None:
    """Refuse another announcement by a name that was used.

    Raises:
        Taken: it is another one.
    """
    if known.fingerprint != fingerprint:
        raise Taken(field, name)


def _is_of(known: Announcement, flow: FlowId, host: str) -> bool:
    """Return whether a flow of an announcement is sent by a host."""
    return any(one.name == flow and one.machine == host for one in known.flows)


class Ended:
    """What was delivered of announcements; those that have ended lately, by sequence; the keys of older ones.

    ``unwritten`` has what their disks have yet to write, longer than ``lately`` has them; ``outcomes`` how many have
    left ``lately`` while this controller led, by how their promises were kept.
    """

    def __init__(
        self, announcements: dict[str, Announcement], unsaved: Unsaved[str, Announcement], unwritten: Unwritten
    ) -> None:
        self._announcements = announcements  # those in the plan
        self.unwritten = unwritten
        self._unsaved_counts = unsaved  # what has changed of them
        self._owners: dict[FlowId, str] = {}  # by flow, the name of its announcement
        self.last_sequence = 0
        self.lately: dict[int, EndedAnnouncement] = {}
        self.outcomes: Counter[PromiseOutcome] = Counter()
        self.unsaved: Unsaved[int, EndedAnnouncement] = Unsaved()
        self._succeeded: dict[int, Announcement] = {}  # as counted until another one of its name was announced
        self._used: dict[str, UsedKey] = {}  # the oldest first: of a month's tens of thousands only those are looked at

    def begun(self, announcement: Announcement, sequence: int) -> Announcement:
        """Return an announcement that begins, with its number and where its counts start."""
        before = self.last_counts(announcement.announcement_id)
        counts = first_counts((flow.name for flow in announcement.flows), before)
        return replace(announcement, sequence=sequence, delivered=counts)

    def entered(self, announcement: Announcement) -> None:
        """Note whose flows these are."""
        self._owners |= {flow.name: announcement.announcement_id for flow in announcement.flows}

    def left(self, announcement: Announcement) -> None:
        """Note that its flows are nobody's for now."""
        for flow in announcement.flows:
            self._owners.pop(flow.name, None)

    def add(self, announcement: Announcement, ending: Ending, now_us: int) -> EndedAnnouncement:
        """Keep what became of an announcement."""
        ended = EndedAnnouncement(announcement, ending, now_us)
        self._put(ended)
        self._uses(ended)
        return ended

    def counted(self, host: str, seen: EntryTelemetry, now_us: int, *, host_us: int = 0, is_last: bool) -> bool:
        """Take in a host's count of an entry, told at ``host_us`` by its clock; the last one if the entry has ended.

        Return whether a flow has now delivered all that was announced of it. What is said of another host's is nothing.
        """
        flow = FlowId(seen.name)
        known = self._announcements.get(self._owners.get(flow, ""))
        if (known is None or is_last) and self._was_lately(host, seen, now_us, host_us, is_last=is_last):
            return False
        if known is None or not _is_of(known, flow, host):
            return False
        delivered = with_count(known.delivered, flow, seen, now_us, host_us=host_us, is_last=is_last)
        return self._goes_on(known, delivered)

    def counted_together(
        self, flows: Sequence[FlowId], seen: EntryTelemetry, moved_bytes: int | None, now_us: int
    ) -> bool:
        """Take in a count of an entry that carries several flows: what was promised first is taken to have come first.

        The host does not tell them apart, so what each of them has delivered is not exact. Return whether one of them
        has now delivered all that was announced of it.

        Args:
            flows: they.
            seen: the count.
            moved_bytes: by how much it is more than before; None if nothing was told since the controller's start.
            now_us: Unix time.
        """
        left_bytes, is_done = self._since_saved_bytes(seen) if moved_bytes is None else moved_bytes, False
        owners = (self._announcements.get(self._owners.get(flow, "")) for flow in flows)
        known_by_number = {known.sequence: known for known in owners if known is not None}
        for _, known in sorted(known_by_number.items()):
            lacks_bytes = max(0, known.size_bytes - total_bytes(known.delivered))
            part_bytes = left_bytes if known.sequence == max(known_by_number) else min(left_bytes, lacks_bytes)
            left_bytes -= part_bytes
            (flow,) = (one.name for one in known.flows if one.name in flows)
            counted = (
                one.counted_with_others(seen, part_bytes, now_us) if one.flow == flow else one
                for one in known.delivered
            )
            is_done |= self._goes_on(known, tuple(counted))
        return is_done

    def _since_saved_bytes(self, seen: EntryTelemetry) -> int:
        """Return by how much an entry's count is more than what is saved of it; 0 if nothing is, as of a reservation's.

        What it stood at is saved with the announcement that it is named by.
        """
        known = self._announcements.get(self._owners.get(FlowId(seen.name), ""))
        saved = next((one for one in known.delivered if one.flow == seen.name), None) if known is not None else None
        return 0 if saved is None else grown_bytes((saved.counted_since_ns, saved.counter_bytes), seen)

    def _goes_on(self, known: Announcement, delivered: tuple[Delivered, ...]) -> bool:
        """Take in what an announcement in the plan has delivered; return whether one of its flows now has it all.

        It is saved when a count has begun, which after a crash could not be told from another, or when all has arrived.
        """
        now = known.with_delivered(delivered)
        self._announcements[known.announcement_id] = now
        anew = any(a.is_of_another_count(b) for a, b in zip(delivered, known.delivered, strict=True))
        if anew or now.finished_us != known.finished_us:
            self._unsaved_counts.put(known.announcement_id, known, now)
        return now.left_bytes().keys() != known.left_bytes().keys()

    def _was_lately(self, host: str, seen: EntryTelemetry, now_us: int, host_us: int, *, is_last: bool) -> bool:
        """Take in a host's count of a flow whose announcement has ended; return whether it was of one."""
        flow = FlowId(seen.name)
        for ended in reversed(self.lately.values()):
            for one in ended.announcement.delivered:
                goes_on = one.flow == flow and not one.is_last and one.counted_since_ns in {0, seen.counted_since_ns}
                if goes_on and _is_of(ended.announcement, flow, host):
                    before = ended.announcement
                    now = with_count(before.delivered, flow, seen, now_us, host_us=host_us, is_last=is_last)
                    self._put(replace(ended, announcement=before.with_delivered(now)))
                    return True
        return False

    def last_counts(self, announcement_id: str) -> dict[FlowId, Delivered]:
        """Return the counts of the announcements of a name that have ended lately, which now have theirs for good."""
        found: dict[FlowId, Delivered] = {}
        for ended in tuple(self.lately.values()):
            known = ended.announcement
            if known.announcement_id == announcement_id:
                found |= {one.flow: one for one in known.delivered}
                for_good = replace(known, delivered=without_last_counts(known.delivered))
                if for_good != known:
                    self._succeeded[known.sequence] = known
                    self._put(replace(ended, announcement=for_good))
        return found

    def released(self, announcement_id: str) -> EndedAnnouncement | None:
        """Return the last of a name that has ended lately, if it was released; else None."""
        of_name = [one for one in self.lately.values() if one.announcement.announcement_id == announcement_id]
        last = max(of_name, key=lambda one: one.announcement.sequence, default=None)
        return last if last is not None and last.ending is Ending.RELEASED else None

    def repeated(
        self, announcement_id: str, key: str, fingerprint: str
    ) -> Announcement | EndedAnnouncement | UsedKey | None:
        """Return the announcement that is asked for again, by its key or, of those in the plan, by its name.

        Raises:
            Taken: that one is of something else.
        """
        for known in self._announcements.values():
            is_key = bool(key) and known.key == key
            if is_key or known.announcement_id == announcement_id:
                check_same(
                    known, fingerprint, "Idempotency-Key" if is_key else "id", key if is_key else announcement_id
                )
                return known
        for ended in self.lately.values():
            if key and ended.announcement.key == key:
                check_same(ended.announcement, fingerprint, "Idempotency-Key", key)
                return ended
        return self._used.get(key)

    def forget_old(self, now_us: int) -> None:
        """Forget what is to be read from the database from now on, and keys that nobody asks for any more.

        What is forgotten here has its last count, or will have none: how its promise was kept is counted now.
        """
        self.outcomes.update(ended.outcome for ended in self._dropped(now_us))

    def _dropped(self, now_us: int) -> list[EndedAnnouncement]:
        """Forget what is old, and return the announcements of it."""
        old = [
            number
            for number, ended in self.lately.items()
            if now_us - ended.ended_us >= LAST_COUNT_US and number not in self.unsaved
        ]
        self.unwritten.drop_old(now_us)
        while self._used and now_us - next(iter(self._used.values())).ended_us >= KEEP_US:
            del self._used[next(iter(self._used))]
        for number in old:
            self._succeeded.pop(number, None)
        return [self.lately.pop(number) for number in old]

    def restore(
        self, used: Iterable[UsedKey], last_sequence: int, lately: Iterable[EndedAnnouncement], now_us: int
    ) -> None:
        """Take in what was saved.

        Args:
            used: the keys.
            last_sequence: the highest number of an announcement that has ended.
            lately: those of which disks may have something to write yet; last counts come of the latest of them.
            now_us: Unix time.
        """
        for ended in sorted(lately, key=lambda one: one.announcement.sequence):
            if now_us - ended.ended_us < LAST_COUNT_US:
                self._keep(ended)
            else:
                self.unwritten.put(ended.announcement, ended.ended_us)
        self.unwritten.drop_old(now_us)
        self._used = {one.key: one for one in sorted(used, key=lambda one: one.ended_us)}
        self.last_sequence = last_sequence

    def follow(self, saved: Iterable[EndedAnnouncement], counted: Mapping[int, Announcement], now_us: int) -> None:
        """Take in those that have ended by another controller; what hosts have counted here goes on if it is more.

        Args:
            saved: they, as that one has saved them.
            counted: by number, those in the plan here until now.
            now_us: Unix time.
        """
        for one in saved:
            known, number = one.announcement, one.announcement.sequence
            ours = counted.get(number, self.lately[number].announcement if number in self.lately else known)
            self.unsaved.drop(number)
            self._keep(one)
            self._uses(one)
            self.last_sequence = max(self.last_sequence, number)
            delivered = with_further_counts(known.delivered, ours.delivered)
            if delivered != known.delivered:
                self._put(replace(one, announcement=known.with_delivered(delivered)))
        self._dropped(now_us)  # uncounted, for another controller has counted them

    def withdraw(self) -> dict[int, Announcement]:
        """Take back what was decided and is not saved; return those that have not ended then, as they are counted.

        One whose name another one had meanwhile has its counts of before that: its last ones may still come.
        """
        gone: dict[int, Announcement] = {}
        for number, before in self.unsaved.withdrawn().items():
            known = self._succeeded.pop(number, self.lately[number].announcement)
            if before is None:
                self.unwritten.drop(number)
                del self.lately[number]
                self._used.pop(known.key, None)
                gone[number] = known
            else:
                self._keep(before)
                if known != before.announcement:
                    self._put(replace(before, announcement=known))
        return gone

    def go_on_from(self, earlier: "Ended", in_plan: Mapping[str, Announcement]) -> None:
        """Take over those that have ended lately in an earlier ledger, with what of them was not saved there.

        Args:
            earlier: where they have ended.
            in_plan: what has not ended here, by name.
        """
        self.outcomes = earlier.outcomes
        running = {known.sequence for known in in_plan.values()}
        unsaved = earlier.unsaved.of_clock()
        for number, ended in earlier.lately.items():
            if number not in running:
                self._keep(ended)
                self._uses(ended)
                if number in unsaved:
                    self.unsaved.put(number, unsaved[number], ended)

    def _uses(self, ended: EndedAnnouncement) -> None:
        known = ended.announcement
        if known.key:
            self._used.pop(known.key, None)  # it goes to the end
            self._used[known.key] = UsedKey(known.key, known.sequence, ended.ended_us)

    def _put(self, ended: EndedAnnouncement) -> None:
        number = ended.announcement.sequence
        self.unsaved.put(number, self.lately.get(number), ended)
        self._keep(ended)

    def _keep(self, ended: EndedAnnouncement) -> None:
        self.lately[ended.announcement.sequence] = ended
        self.unwritten.put(ended.announcement, ended.ended_us)
