"""Asking a database that may hang: nobody waits for its answer longer than they have to."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from controller.database.errors import DatabaseFailed

T = TypeVar("T")

READ_WITHIN_S = 1.5  # so long somebody waits who asks for what has ended


class DatabaseReader:
    """Asks in a thread for each question, which may hang as long as the database does.

    Args:
        url: the database's, without password.
        using: held while it is asked; nobody else uses the connection then.
    """

    def __init__(self, url: str, using: threading.Lock) -> None:
        self._url = url
        self._using = using
        self._late: Future[Any] | None = None  # the answer that is waited for no more, and has not come yet

    @property
    def late(self) -> str:
        """Why nothing is read at the moment; empty if something can be."""
        return "" if self._late is None else _not_answered()

    def answer(self, ask: Callable[[], T]) -> T:
        """Return what ``ask`` returns, or raise what it raises.

        Raises:
            DatabaseFailed: it has not answered in time; then it is not asked again until it has.
        """
        if late := self.late:
            raise DatabaseFailed(self._url, late)
        answer: Future[T] = Future()

        def asks() -> None:
            try:
                with self._using:
                    answer.set_result(ask())
            except Exception as error:  # noqa: BLE001 - the top of a thread: who waits for it is told
                answer.set_exception(error)
            if self._late is answer:
                self._late = None

        threading.Thread(target=asks, name="database reader", daemon=True).start()
        try:
            return answer.result(READ_WITHIN_S)
        except TimeoutError:
            self._late = answer
            if answer.done():
                self._late = None
            raise DatabaseFailed(self._url, _not_answered()) from None


def _not_answered() -> str:
    return f"it has not answered for {READ_WITHIN_S:g} s"
