"""A hedged request: of several controllers another one is asked too while one is silent, and the first answer counts.

Source: Dean and Barroso, The Tail at Scale, Communications of the ACM 56(2), 2013, "Hedged requests".
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

from headway.errors import NoAnswer


class NotYet(NoAnswer):
    """Nobody has answered yet; who was asked still may."""


class Said(NamedTuple):
    """What became of asking one controller, by its number: its answer, or why there is none.

    ``is_old``: it stands by, so one that leads may know more.
    """

    at: int
    answer: Any = None
    error: Exception | None = None
    is_old: bool = False


class Hedged:
    """One request at several controllers: each is asked in a thread of its own, and none again that may still answer.

    Args:
        ask: asks one of them, by its number; returns its answer, or fails.
        patience_s: for how long one that is asked is waited for before another one may be.
        is_elsewhere: whether a failure means that another one is to be asked.
    """

    def __init__(
        self, ask: Callable[[int], Said], patience_s: float, is_elsewhere: Callable[[Exception], bool]
    ) -> None:
        self._ask, self._patience_s, self._is_elsewhere = ask, patience_s, is_elsewhere
        self._said = SimpleQueue[Said]()
        self._waited_for = set[int]()
        self._heard = deque[Said]()  # during a pause

    def ask(self, at: int) -> Said:
        """Ask one, unless it may still answer; return the first answer that anybody gives.

        Raises:
            NotYet: none came in time; one that was asked before is not waited for once more.
            Exception: what it failed with, or why another one does not do it.
        """
        patience_s = 0.0
        if at not in self._waited_for:
            self._waited_for.add(at)
            Thread(target=self._asks, args=(at,), name="headway call", daemon=True).start()
            patience_s = self._patience_s
        while True:
            said = self._next(patience_s)
            if said.error is None:
                return said
            if said.at == at or not self._is_elsewhere(said.error):
                raise said.error

    def pause(self, pause_s: float) -> None:
        """Wait so long, or until one that was asked says something."""
        if not self._waited_for:
            time.sleep(pause_s)
            return
        with suppress(Empty):
            self._heard.append(self._said.get(timeout=pause_s))

    def late_answer(self, failed: Exception) -> Said:
        """Return the first answer of those that may still give one; wait for that.

        Raises:
            Exception: none does, so what has failed has; or why one does not do it.
        """
        while self._is_elsewhere(failed) and self._waited_for:
            said = self._next(None)
            if said.error is None:
                return said
            if not self._is_elsewhere(said.error):
                raise said.error
        raise failed

    def _next(self, patience_s: float | None) -> Said:
        try:
            said = self._heard.popleft() if self._heard else self._said.get(patience_s != 0, patience_s)
        except Empty:
            raise NotYet("no answer yet") from None
        self._waited_for.discard(said.at)
        return said

    def _asks(self, at: int) -> None:
        try:
            self._said.put(self._ask(at))
        except Exception as error:  # noqa: BLE001 (whoever waits is to see it)
            self._said.put(Said(at, error=error))
