"""What is wrong between us and a circuit's provider: said once, and taken back when it is over."""

import re
from collections.abc import Callable, Collection
from dataclasses import replace

from controller.plan.lifecycle import ReservationState
from controller.plan.reservations import Reservation
from controller.providers.errors import ProviderDenied
from controller.state.guard import GuardedState
from controller.state.reported import ProviderTrouble

NO_REASON = "its provider gives no reason"


class ProviderTroubles:
    """Tells of the trouble with one circuit's provider: in the log, in what is not well, in what waits for it.

    Args:
        state: where it is told.
        circuit: whose provider.
        needing: returns the reservations that need the circuit; called under the lock.
    """

    def __init__(self, state: GuardedState, circuit: str, needing: Callable[[], tuple[Reservation, ...]]) -> None:
        self._state = state
        self._circuit = circuit
        self._needing = needing
        self._said = ""
        self._told: dict[tuple[type[Exception], str], str] = {}  # by kind and text without names and numbers, as told
        self._is_first = True  # of this process: what the one before has said may still stand there

    def report(self, trouble: Exception, names: Collection[str]) -> None:
        """Say what is wrong, in the log once until it is over; a moment and one of ``names`` in it do not count."""
        text = str(trouble) or NO_REASON
        kind = type(trouble), _without(names, text)
        if kind not in self._told:
            self._told[kind] = text
            self._publish(trouble)
        self._said = self._told[kind]
        note = f"{self._who}{self._said}"
        with self._state.changed:
            self._put(ProviderTrouble(self._said, isinstance(trouble, ProviderDenied)))
            for known in self._needing():
                has_another = bool(known.reason) and not known.reason.startswith(self._who)
                if known.state is ReservationState.COMMITTED and not has_another:
                    self._state.wished.ledger.note(known.reservation_id, note, self._state.now_us())

    def recovered(self) -> None:
        """Take back what was said, by whoever bought before this process too."""
        if not self._said and not self._is_first:
            return
        self._is_first = False
        with self._state.changed:
            self._put(None)
            for known in self._needing():
                if known.state is ReservationState.COMMITTED and known.reason.startswith(self._who):
                    self._state.wished.ledger.note(known.reservation_id, "", self._state.now_us())
        if self._said:
            self._said = ""
            self._told.clear()
            self._state.events.publish("provider.recovered", circuit=self._circuit)

    @property
    def _who(self) -> str:
        return f"{self._circuit}: "

    def _publish(self, trouble: Exception) -> None:
        publish, circuit = self._state.events.publish, self._circuit
        if isinstance(trouble, ProviderDenied):
            publish("provider.denied", level="error", circuit=circuit, error=str(trouble), cure=trouble.cure)
        else:
            publish("provider.failed", level="error", circuit=circuit, error=str(trouble), kind=type(trouble).__name__)

    def _put(self, trouble: ProviderTrouble | None) -> None:
        """Keep what is wrong where others look for what is not well; under the lock."""
        reported = self._state.reported
        if reported.providers.get(self._circuit) != trouble:
            others = {circuit: one for circuit, one in reported.providers.items() if circuit != self._circuit}
            mine = {} if trouble is None else {self._circuit: trouble}
            self._state.put(reported=replace(reported, providers={**others, **mine}))


def _without(names: Collection[str], text: str) -> str:
    """Return a text without what differs each time: purchases' names, and numbers, such as a moment."""
    return re.sub("|".join((*map(re.escape, names), "[0-9]+")), "#", text)
