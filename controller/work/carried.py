"""What each reservation on a bought circuit is carried with, and who gives way where less is bought than is needed."""

from collections.abc import Iterable
from itertools import takewhile

from controller.plan.admission import Refused, Request
from controller.plan.giving_way import kept
from controller.plan.lifecycle import ENDED, IN_PLAN, LifecycleEvent, ReservationState
from controller.plan.purchases import Action, Period, Purchase, PurchaseState, Release
from controller.plan.reservations import Reservation
from controller.plan.resources import circuit_rate_bps
from controller.state.guard import GuardedState
from controller.use_cases import UseCases

_NO_USE = frozenset({PurchaseState.FAILED, PurchaseState.DROPPED, PurchaseState.ENDED, PurchaseState.ASKED})


class CarriedReservations:
    """The reservations that need one circuit, and what each of them was last carried with."""

    def __init__(self, state: GuardedState, use_cases: UseCases, circuit: str) -> None:
        self._state = state
        self._use_cases = use_cases
        self._circuit = circuit
        self._carried: dict[str, Reservation] = {}  # as each was when what is bought was last as it needs it

    def needing(self) -> tuple[Reservation, ...]:
        """Return the reservations that need the circuit, oldest first; under the lock."""
        network = self._state.site.network
        return tuple(
            r
            for r in self._state.wished.ledger.reservations.values()
            if r.state not in ENDED
            and r.state is not ReservationState.HELD
            and any(self._circuit in network.circuits_along(path) for path in r.paths)
        )

    def use(self, known: Reservation) -> Period:
        """Return what a reservation needs of the circuit, at the rate that is to be bought for it."""
        rate_bps = circuit_rate_bps(known.rate_bps, known.flow_class, self._state.site.policy)
        return Period(known.start_us, known.end_us, rate_bps)

    def note(self, bought: Iterable[Purchase], steps: Iterable[Action]) -> None:
        """Note what each reservation is carried with, where what is bought is as it should be; under the lock."""
        unsettled = [p.period for p in bought if p.state is PurchaseState.ASKED]
        unsettled += [step.period for step in steps if not isinstance(step, Release)]
        self._carried = {
            r.reservation_id: noted
            for r in self.needing()
            for is_settled in (all(self.use(r).overlap_us(period) <= 0 for period in unsettled),)
            if (noted := r if is_settled else self._carried.get(r.reservation_id)) is not None
        }

    def give_way(self, period: Period, reason: str) -> None:
        """Have those give way in a period that what is bought does not carry: changes are put back, newcomers fail."""
        why = f"{self._circuit}: {reason}"
        self._find_out_carried(period)
        with self._state.changed:
            there, found = self._kept(period)
            for name, known in there.items():
                if found.get(name) == self.use(known):
                    continue
                if name not in found or not self._is_put_back(known, self._carried[name], why):
                    self._state.wished.ledger.happened(name, LifecycleEvent.FAIL, self._state.now_us(), why)
                    self._state.events.publish("reservation.failed", level="error", reservation=name, why=why)
        self._use_cases.tick()

    def _kept(self, period: Period) -> tuple[dict[str, Reservation], dict[str, Period]]:
        """Return the reservations in a period, in the order in which they have changed, and what is kept of each.

        Under the lock. The last to change is the last that came to need what it needs; the clock's steps count too.
        """
        bought = [p.period for p in self._state.wished.purchases[self._circuit].values() if p.state not in _NO_USE]
        in_order = sorted(self.needing(), key=lambda r: (r.changed_us, r.sequence))
        there = {r.reservation_id: r for r in in_order if self.use(r).overlap_us(period) > 0}
        wanted = {name: self.use(r) for name, r in there.items()}
        carried = {name: self.use(before) for name, before in self._carried.items() if name in wanted}
        return there, kept(wanted, carried, bought)

    def _find_out_carried(self, period: Period) -> None:
        """Note how each in a period was carried of which this process does not know it, as after a start.

        Up to the first that has no room all were carried as they are; those that follow, as they were before a change.
        """
        with self._state.changed:
            there, found = self._kept(period)
        unknown = [known for name, known in there.items() if name not in self._carried]
        sure = [*takewhile(lambda known: known.reservation_id in found, unknown)]
        self._carried |= {known.reservation_id: known for known in sure}
        for known in unknown[len(sure) :]:
            if before := self._use_cases.before_change(known):
                self._carried[known.reservation_id] = before

    def _is_put_back(self, known: Reservation, before: Reservation, why: str) -> bool:
        """Return whether a reservation has again what it had before it was changed; under the lock."""
        ledger, now_us = self._state.wished.ledger, self._state.now_us()
        # Its old start may be too near to be asked for again; what is bought carries it from the present one on, too.
        starts_us = (known.start_us,) if known.state in IN_PLAN else (before.start_us, known.start_us)
        for start_us in (one for one in starts_us if max(one, now_us) < before.end_us):
            what = (before.flow_class, before.rate_bps, start_us, before.end_us, before.constraints)
            request = Request(known.a_end, known.z_end, *what, known.description, known.selector, known.owner)
            if not isinstance(ledger.change(known.reservation_id, request, now_us), Refused):
                break
        else:
            return False
        ledger.note(known.reservation_id, f"its change was put back: {why}", now_us)
        self._state.events.publish("reservation.put_back", level="warning", reservation=known.reservation_id, why=why)
        return True
