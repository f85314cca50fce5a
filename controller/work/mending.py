"""The thread that tries places with a fault again, so that nobody waits for them: each second, and when one has called.

A place is brought to what is in force there, which nothing else changes meanwhile. That done, it is open again: the
convergence makes sure of it before anything else, and goes on.
"""

import threading
from collections.abc import Callable
from functools import partial
from typing import Protocol

from controller.plan.faults import PlaceFault
from controller.plan.plan import Plan
from controller.state.faults import note_back, note_failed, note_why, tell_begun
from controller.state.guard import GuardedState

AGAIN_S = 1.0


class FaultySwitches(Protocol):
    """What is needed of the switches; blocking."""

    def mended(self, fault: PlaceFault, meters: Plan, queues: Plan) -> tuple[PlaceFault, ...]:
        """Try to bring a place to what is in force there; return what is still wrong, or found so."""


class Mending:
    """Tries each place by itself: one that hangs keeps no other waiting."""

    def __init__(
        self, state: GuardedState, switches: FaultySwitches, spawn: Callable[[Callable[[], None]], None] | None = None
    ) -> None:
        """Begin with nothing to mend; ``spawn`` runs a try, in a thread of its own if nothing else is said."""
        self._state = state
        self._switches = switches
        self._spawn = spawn or _in_a_thread
        self._under_way: set[str] = set()  # places; under the state's lock

    def run(self) -> None:
        """Try until the state says stop."""
        state = self._state
        while True:
            self.look()
            with state.changed:
                seen = state.reported.doubts
                state.changed.wait_for(partial(self._is_woken, seen), timeout=AGAIN_S)
                if state.stopping:
                    return

    def _is_woken(self, seen: int) -> bool:
        """Return whether a place has come or gone since a doubt, or the end has come; under the lock."""
        return self._state.stopping or self._state.reported.doubts != seen

    def look(self) -> None:
        """Begin a try of each place with a fault that none is under way for."""
        with self._state.changed:
            tell_begun(self._state)
            faults = self._state.installed.faults.values()
            due = [fault for fault in faults if not fault.is_back and fault.place not in self._under_way]
            self._under_way.update(fault.place for fault in due)
        for fault in due:
            self._spawn(partial(self._try, fault))

    def _try(self, fault: PlaceFault) -> None:
        """Try one place."""
        state = self._state
        with state.changed:
            meters, queues = state.installed.in_force or (state.desired.plan, state.desired.plan)
        still: tuple[PlaceFault, ...] = (fault,)
        try:
            still = self._switches.mended(fault, meters, queues)
        finally:
            with state.changed:  # once: nobody begins another try of a place that is about to be back
                self._under_way.discard(fault.place)
                own = [one for one in still if one.place == fault.place]
                if not own:
                    note_back(state, [fault.place])
                elif own[0].why != fault.why:
                    note_why(state, own[0])
                note_failed(state, (one for one in still if one.place != fault.place))


def _in_a_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="mending", daemon=True).start()
