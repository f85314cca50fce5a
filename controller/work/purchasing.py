"""The thread that buys one circuit: what the ledger has promised, bought in time, watched until it carries.

Each circuit has its own, so that a provider that answers late, or never, keeps nobody else from being bought.

Hosts may use a circuit only while its provider says that it is up.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from controller.database import DatabaseError
from controller.plan.booking_lead import OTHERS_FIRST_US, POLL_US, seen_in_time
from controller.plan.purchase_lifecycle import PurchaseEvent
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
    sure_of,
)
from controller.providers.errors import NameTaken, NotInForce, ProviderError, ProviderRefused
from controller.providers.provider import Provider
from controller.state.guard import GuardedState
from controller.use_cases import UseCases
from controller.work.backoff import LONGEST_WAIT_US, Backoff
from controller.work.buying import CircuitBuyer, asked_about
from controller.work.carried import CarriedReservations
from controller.work.provider_trouble import NO_REASON, ProviderTroubles
from controller.work.standing_in import backup_circuits, sold_routes, undecided
from topology.units import shown_rate

_DROPPED_EACH_US = 30_000_000  # how often it is looked whether what was given back is there after all
_DROPPED_FOR = 4  # times the provider's longest delay
_HELD = frozenset({PurchaseState.RESERVED, PurchaseState.DEPLOYING, PurchaseState.UP})


Trouble = ProviderError | DatabaseError


class _Refusal(NamedTuple):
    """What a provider would not have, who needed the circuit after that, and until when the same is not asked again."""

    period: Period
    uses: tuple[Period, ...]
    until_us: int


class Purchasing:
    """Keeps what is bought for one circuit at what the ledger needs; a leased line needs nothing."""

    def __init__(
        self,
        state: GuardedState,
        use_cases: UseCases,
        circuit: str,
        provider: Provider,
        may_decide: Callable[[], bool] = lambda: True,
    ) -> None:
        """Begin; ``may_decide`` is looked at before anything is asked for: of a pair, whether we lead."""
        self._may_decide = may_decide
        self._state = state
        self._use_cases = use_cases
        self._circuit = circuit
        self._provider = provider
        self._random = random.SystemRandom()
        self._carried = CarriedReservations(state, use_cases, circuit)
        self._troubles = ProviderTroubles(state, circuit, self._carried.needing)
        self._buyer = CircuitBuyer(state, use_cases.saves, circuit, provider, may_decide)
        # By purchase; a process that starts knows nothing of these, and so waits the longest.
        self._since_us: dict[str, int] = {}  # when what was given back or up was first not to be there
        self._again = Backoff(state.now_us)
        self._changes = Backoff(state.now_us)  # apart, so that what is bought is looked at while its change fails
        self._anew = Backoff(state.now_us)  # by reservation: what was refused, and is asked for by another name
        self._refusals: dict[str, _Refusal] = {}  # what was refused last
        self._apart_since_us: dict[str, int] = {}  # by reservation: since when another circuit is to choose first

    def run(self) -> None:
        """Work until the state says stop."""
        state = self._state
        while self._provider.terms is not None:
            self.step()
            with state.changed:
                if state.halted.wait_for(lambda: state.stopping, timeout=POLL_US / 1e6):
                    return

    def step(self) -> None:
        """Do what is to do now at the provider; what fails is tried again at the next step."""
        if not self._may_decide():
            return
        self._buyer.save_shown()
        troubles = (*self._bring_to_plan(), *self._watch())
        of_provider = [trouble for trouble in troubles if isinstance(trouble, ProviderError)]
        if of_provider:
            self._troubles.report(of_provider[0], self._known())
        elif not (troubles or self._changes.failing or self._anew.failing or self._again.failing & self._known()):
            self._troubles.recovered()

    def _known(self) -> frozenset[str]:
        with self._state.changed:
            return frozenset(self._state.wished.purchases[self._circuit])

    def _attempted(self, waiting: Backoff, name: str, attempt: Callable[[], object]) -> Trouble | None:
        """Carry out something about a purchase, and return what went wrong.

        What a provider does not do is left for longer and longer, so that what cannot be had of one does not keep the
        others from being bought, watched and given back.
        """
        try:
            attempt()
        except DatabaseError as failure:  # others tell of it
            return failure
        except ProviderError as trouble:
            waiting.failed(name)
            return trouble
        waiting.worked(name)
        return None

    def _waits(self, waiting: Backoff, name: str) -> bool:
        return not self._may_decide() or waiting.waits(name)

    def _bring_to_plan(self) -> list[Trouble]:
        """Buy, change and give back until what is bought is what is needed; return what went wrong.

        What fails stays where it was: only steps that come too near to it wait for it. Nothing more is asked for once
        it cannot be written down.
        """
        terms, troubles = self._provider.terms, list[Trouble]()
        if terms is None:
            return troubles
        with self._state.changed:
            needing = self._carried.needing()
            there = {r.reservation_id for r in needing}
            self._apart_since_us = {name: us for name, us in self._apart_since_us.items() if name in there}
            wanted = periods(map(self._carried.use, needing), seen_in_time(terms))
            bought = tuple(self._state.wished.purchases[self._circuit].values())
            steps = actions(wanted, bought, terms, self._state.now_us(), self._new_name)
            self._carried.note(bought, steps)
        self._changes.keep({p.name for p in bought if p.state in _HELD})
        self._anew.keep({self._first_use(step) for step in steps if isinstance(step, Buy)})
        known = {p.name: p for p in bought}
        asked = {p.name for p in bought if p.state is PurchaseState.ASKED}
        stuck = [p.period for p in bought if p.state is PurchaseState.DROPPED and p.name not in self._buyer.gone]
        for step in steps:
            # What was not answered is not changed before it is known what became of it.
            near = isinstance(step, PurchaseChange) and step.name in asked
            near |= isinstance(step, Buy) and (self._anew_waits(step) or self._waits_for_others(step.period))
            near |= not isinstance(step, Release) and any(step.period.overlap_us(p) > -terms.gap_us for p in stuck)
            waiting = self._changes if isinstance(step, PurchaseChange) else self._again
            if not near and not self._waits(waiting, step.name) and not self._was_refused(step):
                trouble = self._attempted(waiting, step.name, partial(self._tried, step, known.get(step.name)))
                troubles += [trouble] if trouble is not None else []
                if isinstance(trouble, DatabaseError):
                    break
            if step.name in known and (near or not self._is_made(step)):
                stuck.append(known[step.name].period)
        return troubles

    def _was_refused(self, step: Action) -> bool:
        """Return whether the same has just been refused, and those who need the circuit are who they were then."""
        known = self._refusals.get(step.name)
        if known is None or isinstance(step, Release) or known.period != step.period:
            return False
        return self._state.now_us() < known.until_us and known.uses == self._uses()

    def _uses(self) -> tuple[Period, ...]:
        with self._state.changed:
            return tuple(map(self._carried.use, self._carried.needing()))

    def _new_name(self) -> str:
        """Return a name that no purchase of any circuit has; under the lock."""
        known = {name for of_circuit in self._state.wished.purchases.values() for name in of_circuit}
        while (name := self._provider.new_name(self._random)) in known:
            pass
        return name

    def _is_made(self, step: Action) -> bool:
        """Return whether what is bought is as a step would have it."""
        with self._state.changed:
            known = self._state.wished.purchases[self._circuit].get(step.name)
        if isinstance(step, Release):
            return known is None or step.name in self._buyer.gone
        return known is not None and not self._waits(self._changes, step.name)

    def _tried(self, step: Action, known: Purchase | None) -> bool:
        """Carry out a step that was decided for ``known``; return False if it is refused, which undoes what needed it.

        Raises:
            ProviderError: it is to be tried again, or the provider has something else than it says.
        """
        try:
            self._buyer.carry_out(step, known, self._apart(step.period) if isinstance(step, Buy) else frozenset())
        except ProviderRefused as refusal:
            if isinstance(step, Release):  # nothing is lost by it; it is tried again
                raise
            # Refused for its name, or for what of ours is there after all? The next step asks by another name.
            if isinstance(step, Buy) and (isinstance(refusal, NameTaken) or self._may_turn_up(step)):
                self._buyer.happened(asked_about(step, known), PurchaseEvent.REFUSE, reason=refusal.reason)
                self._anew.failed(self._first_use(step))
                raise
            self._refused(step, refusal.reason)
            return False
        except NotInForce as untrue:
            if untrue.found is not None and not isinstance(step, Release):
                self._buyer.happened(asked_about(step, known), PurchaseEvent.DIFFER, untrue.found, str(untrue))
            raise
        return True

    def _refused(self, step: Buy | PurchaseChange, reason: str, asked: Purchase | None = None) -> None:
        """Take in that the provider will not have it: what needed it is undone, and says what it has instead.

        ``asked`` is what was to be bought, if that is not as the step has it.
        """
        if isinstance(step, Buy):
            asked = asked or asked_about(step, None)
            if not self._buyer.happened(asked, PurchaseEvent.REFUSE, reason=reason):
                return
        publish = self._state.events.publish
        publish("provider.refused", level="warning", circuit=self._circuit, purchase=step.name, why=reason)
        self._carried.give_way(step.period, f"{reason or NO_REASON}{self._advice(step.period)}")
        until_us = self._state.now_us() + LONGEST_WAIT_US
        self._refusals[step.name] = _Refusal(step.period, self._uses(), until_us)

    def _advice(self, period: Period) -> str:
        """Return what the provider believes that it has free in a period, in words; empty if it does not say."""
        try:
            free_bps = self._provider.free_bps(period.start_us, period.end_us)
        except ProviderError:
            return ""
        if free_bps is None:
            return ""
        return f" (its provider believes {shown_rate(free_bps)} to be free at that time; it holds nothing of it)"

    def _apart(self, period: Period) -> frozenset[str]:
        """Return what a purchase should not cross: it stands in for what does."""
        with self._state.changed:
            others = backup_circuits(self._state.site.network, self._carried.needing(), self._circuit, period)
            return sold_routes(self._state.wished.purchases, others, period)

    def _waits_for_others(self, period: Period) -> bool:
        """Return whether another circuit is to choose its way first: of two that stand in for each other one has to."""
        with self._state.changed:
            backed = [r for r in self._carried.needing() if r.backup and self._carried.use(r).overlap_us(period) > 0]
            others = backup_circuits(self._state.site.network, backed, self._circuit, period)
            first = [name for name in others if name < self._circuit]
            if not undecided(self._state.wished.purchases, first, period):
                return False
            now_us = self._state.now_us()
            # Not by the period's times, for one that is late moves on while it waits.
            since_us = self._apart_since_us.setdefault(backed[0].reservation_id, now_us)
            return now_us + POLL_US < since_us + OTHERS_FIRST_US

    def _first_use(self, step: Buy) -> str:
        """Return who needs what is new: each try of it has another name, and another period if it is late."""
        with self._state.changed:
            needing = self._carried.needing()
            uses = (r.reservation_id for r in needing if self._carried.use(r).overlap_us(step.period) > 0)
            return next(uses, step.name)

    def _anew_waits(self, step: Buy) -> bool:
        return self._anew.waits(self._first_use(step))

    def _may_turn_up(self, step: Buy) -> bool:
        """Return whether something of ours, of which nobody knows what became, may be in the way of what is new."""
        with self._state.changed:
            known = self._state.wished.purchases[self._circuit].values()
            lost = (p for p in known if p.state is PurchaseState.DROPPED and p.name not in self._buyer.settled)
            return any(p.period.overlap_us(step.period) >= 0 for p in lost)

    def _watch(self) -> list[Trouble]:
        """Ask how each purchase does, and forget what is over; return what went wrong."""
        with self._state.changed:
            purchases = tuple(self._state.wished.purchases[self._circuit].values())
        now_us, troubles = self._state.now_us(), list[Trouble]()
        for known in purchases:
            look: Callable[[], object] = partial(self._take_in, known)
            is_over = known.period.end_us <= now_us
            if known.state is PurchaseState.ENDED or (is_over and self._ends_itself):
                trouble = self._attempted(self._again, known.name, partial(self._forget, known.name))
                troubles += [trouble] if trouble is not None else []
                continue
            if is_over and known.state is not PurchaseState.DROPPED:
                look = partial(self._tried, Release(known.name), known)
            elif known.state is PurchaseState.DROPPED:
                look = partial(self._keep_away, known)
            elif known.state is PurchaseState.ASKED and known.name in self._buyer.unsent:
                look = partial(self._tried, Buy(known.name, known.period), known)
            elif known.state is PurchaseState.ASKED:
                look = partial(self._find_out, known)
            is_watched = is_over or known.state is not PurchaseState.FAILED
            if is_watched and not self._waits(self._again, known.name):
                trouble = self._attempted(self._again, known.name, look)
                troubles += [trouble] if trouble is not None else []
        return troubles

    def _find_out(self, known: Purchase) -> None:
        """Look what became of a purchase that nobody has answered for; give it up once nothing can come of it."""
        status = self._provider.status(known.name)
        if status.state in _HELD:
            self._buyer.happened(known, PurchaseEvent.SELL, status.period)
            return
        if status.refused:
            self._refused(Buy(known.name, known.period), status.reason, known)
            return
        since_us = self._buyer.since_us.setdefault(known.name, self._state.now_us())
        if self._provider.terms is not None and self._state.now_us() >= since_us + self._provider.terms.settle_us:
            is_there = status.state is PurchaseState.ASKED
            why = (
                "it is there, and nobody has decided on it" if is_there else "nobody has answered, and it is not there"
            )
            if not self._buyer.happened(known, PurchaseEvent.GIVE_UP, reason=why):
                return
            if not is_there:
                self._buyer.gone.add(known.name)
            self._state.events.publish(
                "provider.given_up", level="warning", circuit=self._circuit, purchase=known.name, why=why
            )

    def _keep_away(self, known: Purchase) -> None:
        """Give back what was given back or up, should it turn up; forget it once that cannot be any more."""
        if not self._buyer.is_given_back(known.name):
            return
        now_us, terms = self._state.now_us(), self._provider.terms
        since_us = self._since_us.setdefault(known.name, now_us)
        if terms is None or now_us >= since_us + _DROPPED_FOR * terms.settle_us:
            self._forget(known.name)
        else:
            self._again.rest(known.name, _DROPPED_EACH_US)

    def _take_in(self, known: Purchase) -> None:
        self._provider.tend(known.name, known.period)
        status = self._provider.status(known.name)
        period = status.period or known.period
        if self._changes.waits(known.name):  # it may still be carried out: no more than both rates is counted on
            period = sure_of(period, known.period)
        seen = (status.state, status.reason, period, status.lacks, status.route)
        if seen != (known.state, known.reason, known.period, known.lacks, known.route):
            if not self._buyer.show(known.name, replace(status, period=period)):
                return
            self._state.events.publish(
                "provider.state", circuit=self._circuit, purchase=known.name, state=status.state, why=status.reason
            )
            if status.lacks and status.lacks != known.lacks:
                self._state.events.publish(
                    "provider.lacks", level="error", circuit=self._circuit, purchase=known.name, why=status.lacks
                )
        elif not self._changes.waits(known.name):  # nothing is tried, so there is nothing to change any more
            self._changes.forget(known.name)
        if status.state is PurchaseState.UP and known.name not in self._changes.failing:
            with self._state.changed:
                if known.name in self._state.wished.rebuilding:
                    self._state.put(wished=self._state.wished.rebuilt(known.name))
                    self._state.changed.notify_all()
        # One that is gone before its begin is bought again at the next step; what could not be built is not.
        if status.state is PurchaseState.FAILED and period.start_us <= self._state.now_us():
            self._carried.give_way(period, status.reason or NO_REASON)

    @property
    def _ends_itself(self) -> bool:
        return self._provider.terms is None or self._provider.terms.ends_itself

    def _forget(self, name: str) -> None:
        self._buyer.forget(name)
        self._again.forget(name)
        self._since_us.pop(name, None)
        self._refusals.pop(name, None)
