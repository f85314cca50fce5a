"""What there is to read of reservations: those that have not ended, and those that have, which are in the database."""

from dataclasses import dataclass

from controller.errors import NotKnown
from controller.plan.lifecycle import ENDED, LifecycleEvent, ReservationState, after
from controller.plan.reservations import Reservation
from controller.store import WINDOW_ROWS, HistoryItem, PastPage, PastQuery, Store, StoreFailed
from controller.use_cases import UseCases
from topology.protocol import FlowClass


@dataclass(frozen=True, slots=True)
class ReservationFilter:
    """Which reservations are meant; what is empty or None means any.

    Attributes:
        states: in one of these.
        flow_classes: of one of these.
        a_end: from it.
        z_end: to it.
        ends_after_us: its time goes on after this, Unix time.
        starts_before_us: its time begins before this, Unix time.
        words: what its description has in it, in any case.
    """

    states: tuple[ReservationState, ...] = ()
    flow_classes: tuple[FlowClass, ...] = ()
    a_end: str | None = None
    z_end: str | None = None
    ends_after_us: int | None = None
    starts_before_us: int | None = None
    words: str | None = None

    def matches(self, known: Reservation) -> bool:
        """Return whether a reservation is meant."""
        return (
            (not self.states or known.state in self.states)
            and (not self.flow_classes or known.flow_class in self.flow_classes)
            and (self.a_end is None or known.a_end == self.a_end)
            and (self.z_end is None or known.z_end == self.z_end)
            and (self.ends_after_us is None or known.end_us > self.ends_after_us)
            and (self.starts_before_us is None or known.start_us < self.starts_before_us)
            and (self.words is None or self.words.casefold() in known.description.casefold())
        )

    def past(self, after_sequence: int, limit: int) -> PastQuery | None:
        """Return what to ask the store for, which does not know words; None if what has ended is not meant."""
        ended = tuple(sorted(ENDED.intersection(self.states)))
        if self.states and not ended:
            return None
        return PastQuery(
            after_sequence,
            limit if self.words is None else WINDOW_ROWS,
            () if len(ended) == len(ENDED) else ended,
            self.flow_classes,
            self.a_end,
            self.z_end,
            self.ends_after_us,
            self.starts_before_us,
        )


@dataclass(frozen=True, slots=True)
class ReservationsFound:
    """A page of a list.

    Attributes:
        page: in the order of their sequence.
        go_on_after: the sequence after which the next page begins; None if there are no more.
        lacks: why those that have ended are not among them; empty if they are.
    """

    page: tuple[Reservation, ...]
    go_on_after: int | None
    lacks: str


class Reserved:
    """Reads memory, and then the store, which is never asked under the lock.

    What ends between the two is in both, as it was and as it is; the later version counts.
    """

    def __init__(self, use_cases: UseCases, store: Store) -> None:
        self._use_cases = use_cases
        self._store = store

    def one(self, reservation_id: str) -> Reservation:
        """Return one.

        Raises:
            NotKnown: there is none of this name.
            StoreFailed: it is not in memory, and the store cannot be read.
        """
        try:
            return self._use_cases.reservation(reservation_id)
        except NotKnown:
            return self._ended(reservation_id)

    def ended_and(self, reservation_id: str, event: LifecycleEvent) -> Reservation:
        """Return one that has ended, to which something is to happen: only what has happened already may.

        Raises:
            NotKnown: there is none of this name.
            Illegal: it has ended otherwise.
            StoreFailed: it cannot be read.
        """
        known = self._ended(reservation_id)
        if event is not LifecycleEvent.RELEASE or known.state is not ReservationState.RELEASED:
            after(reservation_id, known.state, event)
        return known

    def page(self, wanted: ReservationFilter, after_sequence: int, limit: int) -> ReservationsFound:
        """Return at most so many reservations with a higher sequence, in order.

        There may be fewer than there are, even none: a page looks at no more than a bounded number of those that have
        ended.
        """
        live = self._use_cases.reservations()
        query, past, lacks = wanted.past(after_sequence, limit + 1), PastPage((), None), ""
        if query is not None:
            try:
                past = self._store.past(query)
            except StoreFailed as failure:
                lacks = failure.why
        by_name: dict[str, Reservation] = {}
        for known in (*past.found, *live):
            other = by_name.get(known.reservation_id)
            if other is None or other.version < known.version:
                by_name[known.reservation_id] = known
        found = sorted(
            (
                known
                for known in by_name.values()
                if after_sequence < known.sequence and (past.up_to is None or known.sequence <= past.up_to)
                if wanted.matches(known)
            ),
            key=lambda known: known.sequence,
        )
        page = tuple(found[:limit])
        return ReservationsFound(page, page[-1].sequence if len(found) > limit else past.up_to, lacks)

    def history(self, after: int, limit: int) -> tuple[HistoryItem, ...]:
        """Return what has ended, reservations and announcements, in the order in which that was saved.

        Raises:
            StoreFailed: it cannot be read.
        """
        return self._store.history(after, limit)

    def _ended(self, reservation_id: str) -> Reservation:
        known = self._store.past_one(reservation_id)
        if known is None:
            raise NotKnown("reservation", reservation_id, ())
        return known
