"""The thread that brings memory and database together again after the database has failed; nobody waits for it."""

from collections.abc import Callable

from controller.database import DatabaseError, DatabaseTaken
from controller.saves import Saves
from controller.state.guard import GuardedState

AGAIN_S = 1.0


class Recovery:
    """Reads the ledger anew as soon as the database can be read and written.

    Args:
        state: that says whether the database has failed.
        saves: what reads it.
        followed: ends one of a pair, which another one has followed: it begins anew, and stands by. None if alone.
    """

    def __init__(self, state: GuardedState, saves: Saves, followed: Callable[[], None] | None = None) -> None:
        self._state = state
        self._saves = saves
        self._followed = followed
        self._said = ""

    def run(self) -> None:
        """Work until the state says stop.

        Raises:
            DatabaseTaken: another controller has led meanwhile, and we are no pair: what we remember may be old.
        """
        state = self._state
        while True:
            with state.changed:
                state.halted.wait_for(lambda: state.stopping or state.reported.database_error)
                if state.stopping:
                    return
            if not self.step():
                with state.changed:
                    state.halted.wait_for(lambda: state.stopping, timeout=AGAIN_S)

    def step(self) -> bool:
        """Try once; return whether the database works.

        Raises:
            DatabaseTaken: another controller has led meanwhile, and we are no pair.
        """
        try:
            self._saves.recover()
        except DatabaseTaken as taken:
            self._state.events.publish("store.taken", level="error", error=str(taken))
            if self._followed is None:
                raise
            self._followed()
            return False
        except DatabaseError as failure:
            if str(failure) != self._said:
                self._said = str(failure)
                self._state.events.publish("store.failed", level="error", error=self._said)
            return False
        self._said = ""
        return True
