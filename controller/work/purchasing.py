"""The thread that buys circuits: what the ledger has promised, bought in time, watched until it carries.

Written down before the provider is called, so that a controller that dies in between finds out at its next start
whether it was bought. Hosts may use a circuit only while its provider says that it is up.
"""

import random
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial

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
from controller.providers.errors import AnswerLost, NotInForce, ProviderError, ProviderRefused
from controller.providers.oscars import new_name
from controller.providers.provider import Provider
from controller.state.guard import GuardedState
from controller.store import StoreError
from controller.use_cases import UseCases

POLL_S = 2.0  # OSCARS changes its states every 3 s
_LONGEST_WAIT_US = 60_000_000  # between two tries of what fails
_DROPPED_EACH_US = 30_000_000  # how often it is looked whether what was given back is there after all
_DROPPED_FOR = 4  # times the provider's longest delay


class Purchasing:
    """Keeps what is bought of each provider at what the ledger needs."""

    def __init__(self, state: GuardedState, use_cases: UseCases, providers: Mapping[str, Provider]) -> None:
        """Buy for the circuits whose provider has terms; a leased line needs nothing."""
        self._state = state
        self._use_cases = use_cases
        self._providers = {c: p for c, p in providers.items() if p.terms is not None}
        self._random = random.SystemRandom()
        self._said: dict[str, str] = {}  # by circuit, the trouble that was logged last
        # By purchase; a process that starts knows nothing of these, and so waits the longest.
        self._unsent: set[str] = set()  # asked for, and surely not sent: may be asked for again by its name
        self._since_us: dict[str, int] = {}  # when it was first not known, or first not to be there
        self._again_us: dict[str, tuple[int, int]] = {}  # when it is tried again, and how long it waited before

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
                troubles = (*self._bring_to_plan(circuit, provider), *self._watch(circuit, provider))
            except StoreError as trouble:
                self._report(circuit, trouble)
                continue
            if troubles:
                self._report(circuit, troubles[0])
            elif not any(self._again_us.get(name, (0, 0))[1] for name in self._known(circuit)):
                self._recovered(circuit)

    def _known(self, circuit: str) -> tuple[str, ...]:
        with self._state.changed:
            return tuple(self._state.wished.purchases[circuit])

    def _attempted(self, name: str, attempt: Callable[[], object]) -> ProviderError | None:
        """Carry out something about a purchase, and return what went wrong; what fails is left for longer and longer.

        So that what cannot be had of one does not keep the others from being bought, watched and given back.
        """
        now_us = self._state.now_us()
        try:
            attempt()
        except ProviderError as trouble:
            waited_us = self._again_us.get(name, (0, 0))[1]
            wait_us = min(_LONGEST_WAIT_US, 2 * waited_us or int(POLL_S * 1e6))
            self._again_us[name] = now_us + wait_us, wait_us
            return trouble
        if self._again_us.get(name, (0, 0))[1]:
            self._again_us.pop(name, None)
        return None

    def _waits(self, name: str) -> bool:
        return self._state.now_us() < self._again_us.get(name, (0, 0))[0]

    def _report(self, circuit: str, trouble: Exception) -> None:
        """Say once what is wrong, in the log and in the reservations that wait for it."""
        said = self._said.get(circuit)
        if said is None or _without_numbers(said) != _without_numbers(str(trouble)):
            self._said[circuit] = str(trouble)
            self._state.events.publish(
                "provider.failed", level="error", circuit=circuit, error=str(trouble), kind=type(trouble).__name__
            )
        with self._state.changed:
            for known in self._on(circuit):
                if known.state is ReservationState.COMMITTED:
                    self._state.wished.ledger.note(
                        known.reservation_id, f"{circuit}: {self._said[circuit]}", self._state.now_us()
                    )

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

    def _bring_to_plan(self, circuit: str, provider: Provider) -> list[ProviderError]:
        """Buy, change and give back until what is bought is what is needed; return what went wrong.

        What fails stays where it was: only steps that come too near to it wait for it.
        """
        terms, troubles = provider.terms, list[ProviderError]()
        if terms is None:
            return troubles
        with self._state.changed:
            wanted = periods(self._uses(self._on(circuit)), terms)
            bought = tuple(self._state.wished.purchases[circuit].values())
            steps = actions(wanted, bought, terms, self._state.now_us(), lambda: new_name(self._random))
        left = {p.name: p.period for p in bought}
        asked = {p.name for p in bought if p.state is PurchaseState.ASKED}
        stuck: list[Period] = []
        for step in steps:
            # What was not answered is not changed before it is known what became of it.
            near = isinstance(step, PurchaseChange) and step.name in asked
            near |= not isinstance(step, Release) and any(step.period.overlap_us(p) > -terms.gap_us for p in stuck)
            trouble = None
            if not near and not self._waits(step.name):
                tried = partial(self._tried, circuit, provider, step)
                trouble = self._attempted(step.name, tried)
            if trouble is not None:
                troubles.append(trouble)
            if (near or trouble is not None or self._waits(step.name)) and step.name in left:
                stuck.append(left[step.name])
        return troubles

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
                if self._may_turn_up(circuit, step):  # it may be refused for what of ours is there after all
                    raise
            self._fail_uncovered(circuit, step.period, refusal.reason)
            return False
        except NotInForce as untrue:
            if untrue.found is not None:
                self._happened(circuit, step.name, PurchaseEvent.DIFFER, untrue.found, str(untrue))
            raise
        return True

    def _may_turn_up(self, circuit: str, step: Buy) -> bool:
        with self._state.changed:
            known = self._state.wished.purchases[circuit].values()
            return any(p.state is PurchaseState.DROPPED and p.period.overlap_us(step.period) >= 0 for p in known)

    def _carry_out(self, circuit: str, provider: Provider, step: Action) -> None:
        self._state.events.publish(
            "provider.asked", circuit=circuit, purchase=step.name, step=type(step).__name__.lower()
        )
        if isinstance(step, Buy):
            self._write(circuit, Purchase(step.name, step.period, PurchaseState.ASKED))
            self._since_us[step.name] = self._state.now_us()
            try:
                provider.reserve(step.name, step.period)
            except (AnswerLost, NotInForce):
                self._unsent.discard(step.name)
                raise
            except ProviderError:
                self._unsent.add(step.name)
                raise
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

    def _watch(self, circuit: str, provider: Provider) -> list[ProviderError]:
        """Ask how each purchase does, and forget what is over; return what went wrong."""
        with self._state.changed:
            purchases = tuple(self._state.wished.purchases[circuit].values())
        now_us, troubles = self._state.now_us(), list[ProviderError]()
        for known in purchases:
            look: Callable[[], object] = partial(self._take_in, circuit, provider, known)
            if known.state is PurchaseState.ENDED or known.period.end_us <= now_us:
                self._forget(circuit, known.name)
                continue
            if known.state is PurchaseState.DROPPED:
                look = partial(self._keep_away, circuit, provider, known)
            elif known.state is PurchaseState.ASKED and known.name in self._unsent:
                look = partial(self._tried, circuit, provider, Buy(known.name, known.period))
            elif known.state is PurchaseState.ASKED:
                look = partial(self._find_out, circuit, provider, known)
            if known.state is not PurchaseState.FAILED and not self._waits(known.name):
                trouble = self._attempted(known.name, look)
                troubles += [trouble] if trouble is not None else []
        return troubles

    def _find_out(self, circuit: str, provider: Provider, known: Purchase) -> None:
        """Look what became of a purchase that nobody has answered for; give it up once nothing can come of it."""
        status = provider.status(known.name)
        if status.state in {PurchaseState.RESERVED, PurchaseState.DEPLOYING, PurchaseState.UP}:
            self._happened(circuit, known.name, PurchaseEvent.SELL, status.period)
            return
        since_us = self._since_us.setdefault(known.name, self._state.now_us())
        if provider.terms is not None and self._state.now_us() >= since_us + provider.terms.settle_us:
            why = "nobody has answered, and it is not there"
            self._happened(circuit, known.name, PurchaseEvent.GIVE_UP, reason=why)
            self._state.events.publish(
                "provider.given_up", level="warning", circuit=circuit, purchase=known.name, why=why
            )

    def _keep_away(self, circuit: str, provider: Provider, known: Purchase) -> None:
        """Give back what was given back or up, should it turn up; forget it once that cannot be any more."""
        now_us, terms = self._state.now_us(), provider.terms
        since_us = self._since_us.setdefault(f"dropped {known.name}", now_us)
        provider.release(known.name)
        if terms is None or now_us >= since_us + _DROPPED_FOR * terms.settle_us:
            self._forget(circuit, known.name)
        else:
            self._again_us[known.name] = now_us + _DROPPED_EACH_US, 0

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
        self._unsent.discard(name)
        self._again_us.pop(name, None)
        for key in (name, f"dropped {name}"):
            self._since_us.pop(key, None)


_NO_USE = frozenset({PurchaseState.FAILED, PurchaseState.DROPPED, PurchaseState.ENDED, PurchaseState.ASKED})


def _without_numbers(text: str) -> str:
    """Return a text without what differs each time, such as a moment."""
    return re.sub(r"[0-9]+", "#", text)


def _covered(uses: Iterable[Period], bought: Iterable[Period]) -> bool:
    """Return whether at each instant of each use what is bought carries them all."""
    balance = Steps()
    for period in bought:
        balance.add(period.start_us, period.end_us, period.rate_bps)
    held = tuple(uses)
    for use in held:
        balance.add(use.start_us, use.end_us, -use.rate_bps)
    return all(balance.least(use.start_us, use.end_us) >= 0 for use in held)
