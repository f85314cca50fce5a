"""What one of a pair that stands by reads of the database, over a connection of its own, beside the one that leads."""

import threading
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from controller.database.clock import SavedTime
from controller.database.errors import DatabaseFailed
from controller.database.live import prepare_changes
from controller.database.reasons import why_of
from controller.database.rows import SavedRows
from controller.database.session import DatabaseSession

T = TypeVar("T")


class DatabaseFollower:
    """Reads only, so it may go on while another session of ours becomes the one that writes. Any thread may call.

    Args:
        url: the database's.
        reconnected: called when our session was lost, and there is a new one.

    Attributes:
        is_newest: whether the schema is the one that we know, so that questions can be prepared.
    """

    def __init__(self, url: str, reconnected: Callable[[], None]) -> None:
        self._session = DatabaseSession(url)
        self._reconnected = reconnected
        self._using = threading.Lock()
        self.is_newest = False

    def open(self) -> None:
        """Connect.

        Raises:
            Exception: as :class:`DatabaseSession` does.
        """
        with self._using:
            self._connect()

    def _connect(self) -> None:
        """Connect, or connect again, and prepare questions anew."""
        self.is_newest = self._session.open_to_read()
        if self.is_newest:
            self._session.ask(prepare_changes)

    @property
    def is_made(self) -> bool:
        """Whether there is a schema of ours."""
        return self._session.is_made

    def time(self) -> SavedTime | None:
        """See :meth:`controller.database.Database.time`; None if nothing is made yet."""
        with self._using:
            return self._session.time() if self._session.is_made else None

    def ask(self, question: Callable[[Connection], T]) -> T:
        """Return the answer to a question."""
        return self._answered(lambda: self._session.ask(question))

    def load(self) -> SavedRows:
        """Return what the leader has written; nothing, while it is of an older Headway.

        Raises:
            DatabaseFailed: it cannot be read.
        """
        try:
            return self._answered(self._load)
        except Exception as error:
            raise DatabaseFailed(self._session.shown, why_of(error)) from error

    def _load(self) -> SavedRows:
        if not self._is_ours:
            self._connect()  # somebody may have made it, or brought it up to date
        return self._session.read() if self._is_ours else SavedRows((), {}, ())

    @property
    def _is_ours(self) -> bool:
        """Whether there is something that we can read; what an older Headway has written is brought up to date first.

        That is for who leads next: a pair is upgraded in turn.
        """
        return self._session.is_made and not self._session.is_older

    def _answered(self, ask: Callable[[], T]) -> T:
        """Return an answer, by a new connection if the old one is broken."""
        with self._using:
            try:
                return ask()
            except Exception:  # noqa: BLE001 - whatever it is: the second time it is raised
                self._connect()
                answer = ask()
        self._reconnected()
        return answer

    def close(self, within_s: float = -1) -> bool:
        """Let the connection go, once what is being read has been; return False if that takes longer. -1: no limit."""
        if not self._using.acquire(timeout=within_s):
            return False
        try:
            self._session.close()
        finally:
            self._using.release()
        return True
