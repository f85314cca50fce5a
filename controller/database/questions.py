"""What a database is asked for: what has ended, and what is remembered of changes."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection

from controller.database.chain import ChainEnd, ChainRow
from controller.database.changes import ChangeQuery, changes, written_end
from controller.database.ended import EndedQuery, ended_found
from controller.database.history import HistoryItem, items_after
from controller.database.past import PastPage, PastQuery, lately_ended, past_one, past_page, past_with_key
from controller.plan.ended import EndedAnnouncement
from controller.plan.reservations import Reservation

T = TypeVar("T")


class Questions(ABC):
    """A database as who only reads it knows it. Each question reads a bounded number of rows."""

    @abstractmethod
    def asked(self, question: Callable[[Connection], T]) -> T:
        """Return the answer to a question, which changes nothing.

        Raises:
            DatabaseFailed: there is none in time (``READ_WITHIN_S``).
        """

    def ended(self, query: EndedQuery) -> tuple[EndedAnnouncement, ...]:
        """Return announcements that have ended, as they were saved.

        Raises:
            DatabaseFailed: they cannot be read.
        """
        return self.asked(partial(ended_found, query=query))

    def past(self, query: PastQuery) -> PastPage:
        """Return reservations that have ended.

        Raises:
            DatabaseFailed: they cannot be read.
        """
        return self.asked(partial(past_page, query=query))

    def lately_ended(self, since_us: int, limit: int) -> tuple[Reservation, ...]:
        """Return reservations that have ended since a time, Unix time: the latest so many, the last one first.

        Raises:
            DatabaseFailed: they cannot be read.
        """
        return self.asked(partial(lately_ended, since_us=since_us, limit=limit))

    def past_one(self, reservation_id: str) -> Reservation | None:
        """Return a reservation that has ended; None if there is none of this name.

        Raises:
            DatabaseFailed: it cannot be read.
        """
        return self.asked(partial(past_one, reservation_id=reservation_id))

    def past_with_key(self, key: str) -> Reservation | None:
        """Return the reservation that was made with an idempotency key and has ended; None if there is none.

        Raises:
            DatabaseFailed: it cannot be read.
        """
        return self.asked(partial(past_with_key, key=key))

    def history(self, after: int, limit: int) -> tuple[HistoryItem, ...]:
        """Return what has ended and has a higher number than ``after``, the lowest first.

        Raises:
            DatabaseFailed: it cannot be read.
        """
        return self.asked(partial(items_after, after=after, limit=limit))

    def changes(self, query: ChangeQuery) -> tuple[ChainRow, ...]:
        """Return what is remembered of changes, as it was stored.

        Raises:
            DatabaseFailed: it cannot be read.
        """
        return self.asked(partial(changes, query=query))

    def last_change(self) -> ChainEnd:
        """Return number and hash of the last change that was written.

        Raises:
            DatabaseFailed: they cannot be read.
        """
        return self.asked(written_end)
