"""The thread that forgets what ended long ago, a little at a time, so that nobody who saves waits for it.

It also says in the log where the chain of changes ends: a log that is kept elsewhere shows whether it was made anew.
"""

import structlog

from controller.database import BEGINNING, ChainEnd, Database, DatabaseError, EndedKind
from controller.plan.deliveries import KEEP_US
from controller.state.guard import GuardedState

AT_ONCE = 500  # rows; a few milliseconds of the database
BEGINS_S = 30.0  # after a start or a take-over, when there is much else to do
PAUSE_S = 0.1
AGAIN_S = 3_600.0

log = structlog.get_logger()


class Retention:
    """Deletes from the database; memory has had none of it for long.

    ``retention_us``: how long reservations are kept after their end, and changes after they were made; None for ever.
    Announcements have a time of their own.
    """

    def __init__(self, state: GuardedState, database: Database, retention_us: int | None) -> None:
        self._state = state
        self._database = database
        kept = {EndedKind.RESERVATION: retention_us, EndedKind.ANNOUNCEMENT: KEEP_US}
        self._changes_us = retention_us
        self._said: ChainEnd | None = None  # in the log
        self._kept_us = {kind: us for kind, us in kept.items() if us is not None}

    def run(self) -> None:
        """Work until the state says stop."""
        state, pause_s = self._state, BEGINS_S
        while True:
            with state.changed:
                stops = state.halted.wait_for(lambda: state.stopping, timeout=pause_s)
            if stops:
                self.say_last()
                return
            more = self.step()
            if not more:
                self.say_last()
            pause_s = PAUSE_S if more else AGAIN_S

    def step(self) -> bool:
        """Forget some; return whether there may be more. What the database does not do now it does an hour later."""
        now_us = self._state.now_us()
        try:
            counts = [self._database.forget(kind, now_us - us, AT_ONCE) for kind, us in self._kept_us.items()]
            if self._changes_us is not None:
                counts.append(self._database.forget_changes(now_us - self._changes_us, AT_ONCE))
        except DatabaseError:  # whoever saves says so
            return False
        return AT_ONCE in counts

    def say_last(self) -> None:
        """Say in the log which change is the last one, and its hash; nothing if that is said."""
        try:
            last = self._database.last_change()
        except DatabaseError:  # whoever saves says so
            return
        if last not in {self._said, BEGINNING}:
            log.info("changes.last", number=last.number, hash=last.hash)
            self._said = last
