"""The thread that forgets what ended long ago, a little at a time, so that nobody who saves waits for it."""

from controller.plan.deliveries import KEEP_US
from controller.state.guard import GuardedState
from controller.store import EndedKind, Store, StoreError

AT_ONCE = 500  # rows; a few milliseconds of the database
PAUSE_S = 0.1
AGAIN_S = 3_600.0


class Retention:
    """Deletes from the store; memory has had none of it for long.

    ``retention_us``: how long reservations are kept after their end; None for ever. Announcements have a time of their
    own.
    """

    def __init__(self, state: GuardedState, store: Store, retention_us: int | None) -> None:
        self._state = state
        self._store = store
        kept = {EndedKind.RESERVATION: retention_us, EndedKind.ANNOUNCEMENT: KEEP_US}
        self._kept_us = {kind: us for kind, us in kept.items() if us is not None}

    def run(self) -> None:
        """Work until the state says stop."""
        state = self._state
        while True:
            wait_s = PAUSE_S if self.step() else AGAIN_S
            with state.changed:
                if state.changed.wait_for(lambda: state.stopping, timeout=wait_s):
                    return

    def step(self) -> bool:
        """Forget some; return whether there may be more. What the store does not do now it does an hour later."""
        now_us = self._state.now_us()
        try:
            counts = [self._store.forget(kind, now_us - us, AT_ONCE) for kind, us in self._kept_us.items()]
        except StoreError:  # whoever saves says so
            return False
        return AT_ONCE in counts
