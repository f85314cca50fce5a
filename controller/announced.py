"""What there is to read of announcements: those in the plan, and what became of those that have ended."""

from collections import Counter
from collections.abc import Iterable, Sequence

from controller.asker import present_asker
from controller.database import Database, DatabaseFailed, EndedQuery
from controller.errors import NotKnown
from controller.ownership import check_repeated
from controller.plan.announcement_states import ENDED, AnnouncementState, PromiseOutcome, state_of
from controller.plan.announcements import Announcement
from controller.plan.deliveries import total_bytes
from controller.plan.ended import EndedAnnouncement, UsedKey, check_same
from controller.plan.keys import FlowId
from controller.state.guard import GuardedState
from controller.state.progress import EntryProgress

Known = Announcement | EndedAnnouncement


class Announced:
    """Reads the plan's announcements from memory, older ones from the database, never asked under the lock."""

    def __init__(self, state: GuardedState, database: Database) -> None:
        self._state = state
        self._database = database
        self._began_us = state.now_us()

    def one(self, announcement_id: str) -> Known:
        """Return the announcement of a name: the one in the plan, or else the last that has ended.

        Raises:
            NotKnown: there was none in the last thirty days.
            DatabaseFailed: it cannot be read.
        """
        live, lately = self._in_memory()
        in_plan = next((known for known in live if known.announcement_id == announcement_id), None)
        if in_plan is not None:
            return in_plan
        ended = [known for known in lately if known.announcement.announcement_id == announcement_id]
        ended += self._database.ended(EndedQuery(announcement_id=announcement_id)) if not ended else []
        if not ended:
            raise NotKnown("announcement", announcement_id, tuple(known.announcement_id for known in live))
        return max(ended, key=sequence_of)

    def page(
        self, after: int, limit: int, states: Sequence[AnnouncementState], owners: Sequence[str] = ()
    ) -> tuple[tuple[Known, ...], str]:
        """Return announcements with a higher number, in order; at most so many.

        In one of the states, of one of the owners; none of these: any. And why those that have ended are not all among
        them; "" if they are, or none is asked for.
        """
        live, lately = self._in_memory()
        ended: tuple[EndedAnnouncement, ...] = ()
        lacks = ""
        if not states or not ENDED.isdisjoint(states):
            query = EndedQuery(after, limit + len(lately), tuple(states), owners=tuple(owners))
            try:
                ended = self._database.ended(query)
            except DatabaseFailed as failure:
                lacks = failure.why
        every: tuple[Known, ...] = (*live, *ended, *lately)
        by_number = {sequence_of(known): known for known in every}
        now_us = self._state.now_us()
        found = (by_number[n] for n in sorted(by_number) if n > after and _is_of(by_number[n], owners))
        return tuple(known for known in found if not states or state_at(known, now_us) in states)[:limit], lacks

    def latest(self, count: int) -> tuple[Known, ...]:
        """Return the announcements among the latest so many promises, in order."""
        with self._state.changed:
            newest = self._state.wished.ledger.last_sequence
        return self.page(max(0, newest - count), count, ())[0]

    def in_force(self) -> tuple[Announcement, ...]:
        """Return those that have not ended."""
        return self._in_memory()[0]

    def outcomes(self) -> Counter[PromiseOutcome]:
        """Return how many have ended since the controller's start, by how their promises were kept.

        Each is counted when its last count must have come, two minutes after its end.
        """
        with self._state.changed:
            return Counter(self._state.wished.ledger.ended.outcomes)

    def repeated(self, used: UsedKey, fingerprint: str) -> EndedAnnouncement:
        """Return the announcement that was made with a key.

        Raises:
            Taken: it was of something or somebody else's.
            DatabaseFailed: it cannot be read.
        """
        (ended,) = self._database.ended(EndedQuery(after=used.sequence - 1))
        check_same(ended.announcement, fingerprint, "Idempotency-Key", used.key)
        check_repeated(ended, used.key, present_asker())
        return ended

    def progress(self, found: Iterable[Known]) -> dict[FlowId, EntryProgress]:
        """Return what the flows of announcements deliver now, and what is in the way of more."""
        with self._state.changed:
            reported, plan = self._state.reported, self._state.desired.plan
        entries = {name: entry.flow.name for entry in plan.entries for name in entry.flow.names}
        flows = (flow for known in found if isinstance(known, Announcement) for flow in known.flows)
        return {
            flow.name: reported.agent_of(flow).delivers(entries.get(flow.name, flow.name), self._began_us)
            for flow in flows
        }

    def _in_memory(self) -> tuple[tuple[Announcement, ...], tuple[EndedAnnouncement, ...]]:
        with self._state.changed:
            ledger = self._state.wished.ledger
            return tuple(ledger.shown_announcements().values()), tuple(ledger.shown_ended().values())


def _is_of(known: Known, owners: Sequence[str]) -> bool:
    return not owners or (known.announcement if isinstance(known, EndedAnnouncement) else known).owner in owners


def sequence_of(known: Known) -> int:
    """Return the number of an announcement; it grows with each that is made."""
    return (known.announcement if isinstance(known, EndedAnnouncement) else known).sequence


def state_at(known: Known, now_us: int) -> AnnouncementState:
    """Return how an announcement stands at a moment, Unix time."""
    if isinstance(known, EndedAnnouncement):
        return known.state
    delivered_bytes = total_bytes(known.delivered)
    return state_of(known.size_bytes, delivered_bytes, is_over=now_us > known.promised_us, ending=None)
