"""What there is to read of reservations: those that have not ended, and those that have, which are in the database."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby, islice, takewhile
from operator import attrgetter

from controller.database import WINDOW_ROWS, Database, DatabaseFailed, HistoryItem, PastPage, PastQuery
from controller.errors import NotKnown
from controller.plan.lifecycle import ENDED, LifecycleEvent, ReservationState, after
from controller.plan.reservations import Reservation, ReservationFilter
from controller.use_cases import UseCases

_SEQUENCE, _VERSION = attrgetter("sequence"), attrgetter("version")


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
    """Reads memory, and then the database, which is never asked under the lock.

    What ends between the two is in both, as it was and as it is; the later version counts.
    """

    def __init__(self, use_cases: UseCases, database: Database) -> None:
        self._use_cases = use_cases
        self._database = database

    def one(self, reservation_id: str) -> Reservation:
        """Return one.

        Raises:
            NotKnown: there is none of this name.
            DatabaseFailed: it is not in memory, and the database cannot be read.
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
            DatabaseFailed: it cannot be read.
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
        query, past, lacks = _of_the_past(wanted, after_sequence, limit + 1), PastPage((), None), ""
        if query is not None:
            try:
                past = self._database.past(query)
            except DatabaseFailed as failure:
                lacks = failure.why
        beyond = [known for known in live if after_sequence < known.sequence]
        each = _each_as_it_is(past.found, beyond)
        known_so_far = takewhile(lambda known: past.up_to is None or known.sequence <= past.up_to, each)
        found = [*islice(filter(wanted.matches, known_so_far), limit + 1)]
        page = tuple(found[:limit])
        return ReservationsFound(page, page[-1].sequence if len(found) > limit else past.up_to, lacks)

    def between(self, start_us: int, end_us: int, most: int) -> tuple[Reservation, ...]:
        """Return whose time meets this one, Unix time: at most so many that have not ended, and so many that have.

        Of those that have not ended the first to begin; the others are among the last that have ended since its start,
        and none while the database cannot be read.
        """
        wanted = ReservationFilter(ends_after_us=start_us, starts_before_us=end_us)
        live = sorted(filter(wanted.matches, self._use_cases.reservations()), key=attrgetter("start_us"))[:most]
        try:
            past = self._database.lately_ended(start_us, most)
        except DatabaseFailed:
            past = ()
        return tuple(_each_as_it_is(filter(wanted.matches, past), live))

    def history(self, after: int, limit: int) -> tuple[HistoryItem, ...]:
        """Return what has ended, reservations and announcements, in the order in which that was saved.

        Raises:
            DatabaseFailed: it cannot be read.
        """
        return self._database.history(after, limit)

    def _ended(self, reservation_id: str) -> Reservation:
        known = self._database.past_one(reservation_id)
        if known is None:
            raise NotKnown("reservation", reservation_id, ())
        return known


def _each_as_it_is(past: Iterable[Reservation], live: Iterable[Reservation]) -> Iterator[Reservation]:
    """Yield each once, in the order of their sequence: what is in both is as its later version says."""
    for _, same in groupby(sorted((*past, *live), key=_SEQUENCE), _SEQUENCE):
        yield max(same, key=_VERSION)


def _of_the_past(wanted: ReservationFilter, after_sequence: int, limit: int) -> PastQuery | None:
    """Return what to ask the database for, which does not look for words; None if what has ended is not meant."""
    ended = tuple(sorted(ENDED.intersection(wanted.states)))
    if wanted.states and not ended:
        return None
    states = () if len(ended) == len(ENDED) else ended
    return PastQuery(after_sequence, limit if wanted.words is None else WINDOW_ROWS, replace(wanted, states=states))
