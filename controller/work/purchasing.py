"""The thread that buys circuits: what the ledger has promised, bought in time, watched until it carries.

Written down before the provider is called, so that a controller that dies in between finds out at its next start
whether it was bought. Hosts may use a circuit only while its provider says that it is up.
"""

import random
from collections.abc import Iterable, Mapping

from controller.plan.lifecycle import ENDED, LifecycleEvent, ReservationState
from controller.plan.paths import circuits
from controller.plan.purchase_lifecycle import SHOWN, PurchaseEvent, moved
from controller.plan.purchases import (
    Action,
    Buy,
    Period,
    Purchase,
    PurchaseChange,
    PurchaseState,
    Release,
    actions,
    periods,
)
from controller.plan.reservations import Reservation
from controller.plan.resources import circuit_rate_bps
from controller.plan.steps import Steps
from controller.providers.errors import NotInForce, ProviderError, ProviderRefused
from controller.providers.oscars import new_name
from controller.providers.provider import Provider
from controller.state.guard import GuardedState
from controller.store import StoreError
from controller.use_cases import UseCases

POLL_S = 2.0  # OSCARS changes its states every 3 s


class Purchasing:
    """Keeps what is bought of each provider at what the ledger needs."""

    def __init__(self, state: GuardedState, use_cases: UseCases, providers: Mapping[str, Provider]) -> None:
        """Buy for the circuits whose provider has terms; a leased line needs nothing."""
        self._state = state
        self._use_cases = use_cases
        self._providers = {c: p for c, p in providers.items() if p.terms is not None}
        self._random = random.SystemRandom()
        self._said: dict[str, str] = {}  # by circuit, the trouble that was logged last

    def run(self) -> None:
        """Work until the state says stop."""
        state = self._state
        while self._providers:
            self.step()
            with state.changed:
                if state.changed.wait_for(lambda: state.stopping, timeout=POLL_S):
                    return

    def step(self) -> None:
        """Do what is to do now at every provider; what fails is tried again at the next step."""
        for circuit, provider in self._providers.items():
            try:
                self._bring_to_plan(circuit, provider)
                self._watch(circuit, provider)
                self._recovered(circuit)
            except (ProviderError, StoreError) as trouble:
                self._report(circuit, trouble)

    def _report(self, circuit: str, trouble: Exception) -> None:
        """Say once what is wrong, in the log and in the reservations that wait for it."""
        if self._said.get(circuit) != str(trouble):
            self._said[circuit] = str(trouble)
            self._state.events.publish(
                "provider.failed", level="error", circuit=circuit, error=str(trouble), kind=type(trouble).__name__
            )
        with self._state.changed:
            for known in self._on(circuit):
                if known.state is ReservationState.COMMITTED:
                    self._state.wished.ledger.note(known.reservation_id, f"{circuit}: {trouble}", self._state.now_us())

    def _recovered(self, circuit: str) -> None:
        """Take back what was said of a provider that was away."""
        said = self._said.pop(circuit, None)
        if said is not None:
            with self._state.changed:
                for known in self._on(circuit):
                    if known.state is ReservationState.COMMITTED and known.reason == f"{circuit}: {said}":
                        self._state.wished.ledger.note(known.reservation_id, "", self._state.now_us())

    def _on(self, circuit: str) -> tuple[Reservation, ...]:
        """Return the reservations that need a circuit, oldest first; under the lock."""
        network = self._state.site.network
        return tuple(
            r
            for r in self._state.wished.ledger.reservations.values()
            if r.state not in ENDED
            and r.state is not ReservationState.HELD
            and any(circuit in circuits(network, path) for path in r.paths)
        )

    def _uses(self, reservations: Iterable[Reservation]) -> tuple[Period, ...]:
        policy = self._state.site.policy
        return tuple(
            Period(r.start_us, r.end_us, circuit_rate_bps(r.rate_bps, r.flow_class, policy)) for r in reservations
        )

    def _bring_to_plan(self, circuit: str, provider: Provider) -> None:
        """Buy, change and give back until what is bought is what is needed."""
        terms = provider.terms
        if terms is None:
            return
        with self._state.changed:
            wanted = periods(self._uses(self._on(circuit)), terms)
            bought = tuple(self._state.wished.purchases[circuit].values())
            steps = actions(wanted, bought, terms, self._state.now_us(), lambda: new_name(self._random))
        for step in steps:
            if not self._tried(circuit, provider, step):
                return

    def _tried(self, circuit: str, provider: Provider, step: Action) -> bool:
        """Carry out a step; return False if it is refused, which fails the reservations that needed it.

        Raises:
            ProviderError: it is to be tried again, or the provider has something else than it says.
        """
        try:
            self._carry_out(circuit, provider, step)
        except ProviderRefused as refusal:
            if isinstance(step, Release):  # nothing is lost by it; it is tried again
                raise
            self._state.events.publish(
                "provider.refused", level="warning", circuit=circuit, purchase=step.name, why=refusal.reason
            )
            if isinstance(step, Buy):
                self._happened(circuit, step.name, PurchaseEvent.REFUSE, reason=refusal.reason)
            self._fail_uncovered(circuit, step.period, refusal.reason)
            return False
        except NotInForce as untrue:
            if untrue.found is not None:
                self._happened(circuit, step.name, PurchaseEvent.DIFFER, untrue.found, str(untrue))
            raise
        return True

    def _carry_out(self, circuit: str, provider: Provider, step: Action) -> None:
        self._state.events.publish(
            "provider.asked", circuit=circuit, purchase=step.name, step=type(step).__name__.lower()
        )
        if isinstance(step, Buy):
            self._write(circuit, Purchase(step.name, step.period, PurchaseState.ASKED))
            provider.reserve(step.name, step.period)
            self._happened(circuit, step.name, PurchaseEvent.SELL)
        elif isinstance(step, PurchaseChange):
            with self._state.changed:  # until it is rebuilt, no more than both rates have is counted on
                known = self._state.wished.purchases[circuit][step.name]
                if known.state is PurchaseState.UP:
                    least_bps = min(known.period.rate_bps, step.period.rate_bps)
                    self._state.put(wished=self._state.wished.with_rebuilding(known.name, least_bps))
                self._state.changed.notify_all()
            self._happened(circuit, step.name, PurchaseEvent.CHANGE, provider.change(step.name, step.period))
        elif isinstance(step, Release):
            provider.release(step.name)
            self._happened(circuit, step.name, PurchaseEvent.RELEASE)

    def _watch(self, circuit: str, provider: Provider) -> None:
        """Ask how each purchase does, finish what an earlier process has only asked for, forget what is over."""
        with self._state.changed:
            purchases = tuple(self._state.wished.purchases[circuit].values())
        now_us = self._state.now_us()
        for known in purchases:
            if known.state is PurchaseState.ENDED or known.period.end_us <= now_us:
                self._forget(circuit, known.name)
            elif known.state is PurchaseState.ASKED:
                self._tried(circuit, provider, Buy(known.name, known.period))
            elif known.state is not PurchaseState.FAILED:
                self._take_in(circuit, provider, known)

    def _take_in(self, circuit: str, provider: Provider, known: Purchase) -> None:
        status = provider.status(known.name)
        period = status.period or known.period
        if (status.state, status.reason, period) != (known.state, known.reason, known.period):
            self._state.events.publish(
                "provider.state", circuit=circuit, purchase=known.name, state=status.state, why=status.reason
            )
            self._happened(circuit, known.name, SHOWN[status.state], period, status.reason)
        if status.state is PurchaseState.UP:
            with self._state.changed:
                if known.name in self._state.wished.rebuilding:
                    self._state.put(wished=self._state.wished.rebuilt(known.name))
                    self._state.changed.notify_all()
        # One that is gone before its begin is bought again at the next step; what could not be built is not.
        if status.state is PurchaseState.FAILED and period.start_us <= self._state.now_us():
            self._fail_uncovered(circuit, period, status.reason)

    def _fail_uncovered(self, circuit: str, period: Period, reason: str) -> None:
        """Fail reservations in a period that what is bought does not carry: the newest first, until the rest is."""
        why = f"{circuit}: {reason}"
        with self._state.changed:
            bought = [p.period for p in self._state.wished.purchases[circuit].values() if p.state not in _NO_USE]
            kept: list[Reservation] = []
            for known in sorted(self._on(circuit), key=lambda r: r.sequence):
                elsewhere = known.end_us <= period.start_us or period.end_us <= known.start_us
                if elsewhere:
                    continue
                if _covered(self._uses([*kept, known]), bought):
                    kept.append(known)
                    continue
                self._state.wished.ledger.happened(known.reservation_id, LifecycleEvent.FAIL, self._state.now_us(), why)
                self._state.events.publish(
                    "reservation.failed", level="error", reservation=known.reservation_id, why=why
                )
        self._use_cases.tick()

    def _happened(
        self, circuit: str, name: str, event: PurchaseEvent, period: Period | None = None, reason: str | None = None
    ) -> None:
        """Take a purchase to its next state, on disk before this returns."""
        with self._state.changed:
            known = self._state.wished.purchases[circuit][name]
        self._write(circuit, moved(known, event, period, reason))

    def _write(self, circuit: str, purchase: Purchase) -> None:
        """Keep a purchase, on disk before this returns."""
        with self._state.changed:
            saved = self._use_cases.saves.save_purchase(circuit, purchase)
        saved.result()

    def _forget(self, circuit: str, name: str) -> None:
        with self._state.changed:
            saved = self._use_cases.saves.forget_purchase(circuit, name)
        saved.result()


_NO_USE = frozenset({PurchaseState.FAILED, PurchaseState.ENDED, PurchaseState.ASKED})


def _covered(uses: Iterable[Period], bought: Iterable[Period]) -> bool:
    """Return whether at each instant of each use what is bought carries them all."""
    balance = Steps()
    for period in bought:
        balance.add(period.start_us, period.end_us, period.rate_bps)
    held = tuple(uses)
    for use in held:
        balance.add(use.start_us, use.end_us, -use.rate_bps)
    return all(balance.least(use.start_us, use.end_us) >= 0 for use in held)
