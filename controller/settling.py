"""Reservations whose time it is: which of them every layer carries, which not any more, which cannot be kept."""

from controller.plan.failover import crossed
from controller.plan.keeping import instead_of
from controller.plan.lifecycle import LifecycleEvent, ReservationState
from controller.plan.overbooked import closed_until_us, overbooked
from controller.plan.reservations import MAX_TIME_US, Reservation
from controller.state.carried import is_cut_off, lacks
from controller.state.guard import GuardedState
from controller.state.moment import Circumstances, Moment
from topology.units import shown_time


class Settling:
    """Takes them to the state that they are in, and says so. All under the lock."""

    def __init__(self, state: GuardedState) -> None:
        self._state = state
        self._settled: Circumstances | None = None  # in which nothing was left to be settled
        self._lost = set[str]()  # told of as that

    def fail_overbooked(self, now_us: int) -> None:
        """Fail those that a capacity no longer holds; the newest first."""
        ledger = self._state.wished.ledger
        for known in overbooked(ledger, now_us):
            name = known.reservation_id
            ledger.happened(name, LifecycleEvent.FAIL, now_us, "the circuit has less than it was")
            self._state.events.publish(
                "reservation.failed", level="error", reservation=name, why="the circuit has less"
            )

    def settle(self, moment: Moment) -> None:
        """Settle each reservation in the plan; none in circumstances in which nothing was left to be settled."""
        before = moment.circumstances()
        if before.are(self._settled):
            return
        in_plan = self._state.wished.ledger.in_plan()
        self._lost.intersection_update(known.reservation_id for known in in_plan)
        for known in in_plan:
            self._settle(moment, known)
        self._settled = before if before.are(moment.circumstances()) else None

    def _settle(self, moment: Moment, known: Reservation) -> None:
        """Say active of what every layer carries, and why not of what one does not."""
        name, state, ledger = known.reservation_id, self._state, self._state.wished.ledger
        lacking, now_us = lacks(moment, known), moment.now.calendar_us
        if not lacking and known.state is ReservationState.PROVISIONING:
            ledger.happened(name, LifecycleEvent.UP, now_us)
            self._lost.discard(name)
            state.events.publish("reservation.active", reservation=name)
        elif lacking and known.state is ReservationState.ACTIVE:
            ledger.happened(name, LifecycleEvent.LOSE, now_us, lacking)
            self._tell_lost(moment, known, lacking)
        elif lacking:
            ledger.note(name, lacking, now_us)
            if name not in self._lost and is_cut_off(moment, known):  # its time has come while its circuit is dead
                self._tell_lost(moment, known, lacking)

    def _tell_lost(self, moment: Moment, known: Reservation, lacking: str) -> None:
        ledger, name = self._state.wished.ledger, known.reservation_id
        self._lost.add(name)
        is_down = crossed(ledger.network, known.path, moment.down)
        instead = instead_of(ledger, known, moment.now.calendar_us, moment.down) if is_down else ""
        until_us = closed_until_us(ledger, known, moment.now.calendar_us)
        until = shown_time(until_us) if moment.now.calendar_us < until_us < MAX_TIME_US else ""
        more = {name: said for name, said in (("instead", instead), ("until", until)) if said}
        self._state.events.publish("reservation.lost", level="error", reservation=name, why=lacking, **more)
