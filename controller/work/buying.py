"""What changes anything at a provider, written down before it is asked for; and what a look there shows, at once.

So a controller that dies in between finds out at its next start what became of it, and one of a pair that has been
followed, whose writes are refused, buys nothing more, and gives back nothing that its successor needs.

A database that had failed may be read anew while a provider is asked: a purchase that is another then than the one that
was asked about is left as it is, and the next step goes by it.
"""

import contextlib
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import TypeVar

from controller.database import DatabaseFailed
from controller.plan.purchase_lifecycle import PURCHASE_NEXT, SHOWN, PurchaseEvent, moved
from controller.plan.purchases import Action, Buy, Period, Purchase, PurchaseChange, PurchaseState, sure_of
from controller.providers.errors import AnswerLost, NotInForce, ProviderError, ProviderRefused, ProviderUnavailable
from controller.providers.provider import CircuitStatus, Provider
from controller.saves import Saves
from controller.state.guard import GuardedState

T = TypeVar("T")


def asked_about(step: Buy | PurchaseChange, known: Purchase | None) -> Purchase:
    """Return what is written down while a provider is asked for a step.

    Until a purchase is rebuilt, no more than both rates have is counted on, by whoever leads.

    Raises:
        ValueError: nothing is known of what is to be changed.
    """
    if isinstance(step, Buy):
        return Purchase(step.name, step.period, PurchaseState.ASKED)
    if known is None:
        raise ValueError(f'no purchase "{step.name}" is known: it cannot change')
    return replace(known, period=sure_of(known.period, step.period))


class CircuitBuyer:
    """Asks the provider of one circuit, and keeps what becomes of it.

    A process that starts knows nothing of the attributes, and so waits the longest.

    Attributes:
        unsent: purchases that were asked for, and surely not sent: they may be asked for again by their names.
        gone: those that were given back or up, and of which the provider has said that they are not there.
        settled: those that were given back after they had been seen or refused, or were never sent.
        since_us: since when those are asked for, Unix time.
    """

    def __init__(
        self, state: GuardedState, saves: Saves, circuit: str, provider: Provider, may_decide: Callable[[], bool]
    ) -> None:
        self._state = state
        self._saves = saves
        self._circuit = circuit
        self._provider = provider
        self._may_decide = may_decide
        self.unsent: set[str] = set()
        self.gone: set[str] = set()
        self.settled: set[str] = set()
        self.since_us: dict[str, int] = {}
        self._saving: dict[str, Future[None]] = {}  # what was shown

    def carry_out(self, step: Action, known: Purchase | None, apart: frozenset[str]) -> None:
        """Carry out a step, unless the purchase is another by now than the one it was decided for.

        Args:
            step: what to do.
            known: the purchase as it was when that was decided; None if there was none.
            apart: what a purchase should not cross.

        Raises:
            ProviderError: it was not done, or not as asked.
            DatabaseFailed: it cannot be written down, so the provider was not asked; or what it has done cannot be.
        """
        if isinstance(step, Buy):
            self._buy(step, known, apart)
        elif known is None:
            return
        elif isinstance(step, PurchaseChange):
            self._change(step, known)
        elif self.happened(known, PurchaseEvent.RELEASE):
            if known.state is not PurchaseState.ASKED or known.name in self.unsent:
                self.settled.add(known.name)
            self._tell(step)
            self.is_given_back(step.name)

    def is_given_back(self, name: str) -> bool:
        """Give back what is written down to be given back or up; return whether it is gone.

        Raises:
            ProviderError: it was not done.
        """
        is_gone = self._asked(lambda: self._provider.release(name))
        if is_gone:
            self.gone.add(name)
        return is_gone

    def happened(
        self, known: Purchase, event: PurchaseEvent, period: Period | None = None, reason: str | None = None
    ) -> bool:
        """Take a purchase to its next state, on disk before this returns; return False if it is not ``known`` any more.

        Raises:
            DatabaseFailed: it cannot be saved.
        """
        return self.write(moved(known, event, period, reason), known)

    def write(self, purchase: Purchase, known: Purchase | None) -> bool:
        """Keep a purchase, on disk before this returns; return False, and keep it not, if it is another than ``known``.

        Raises:
            DatabaseFailed: it cannot be saved, and nobody goes by it.
        """
        with self._state.changed:
            if self._state.wished.purchases[self._circuit].get(purchase.name) != known:
                return False
            saved = self._saves.save_purchase(self._circuit, purchase)
        try:
            saved.result()
        except DatabaseFailed:
            with self._state.changed:
                wished = self._state.wished
                if wished.purchases[self._circuit].get(purchase.name) is purchase:  # and not read anew since
                    back = wished.without_purchase(self._circuit, purchase.name)
                    self._state.put(wished=back if known is None else wished.with_purchase(self._circuit, known))
                    self._state.changed.notify_all()
            raise
        if purchase.state is not PurchaseState.ASKED:
            self.since_us.pop(purchase.name, None)
        return True

    def show(self, name: str, status: CircuitStatus) -> bool:
        """Take in what a look at the provider has shown: at once, saved when that can be; nobody waits for that.

        So hosts stop to use at once what is no longer up, whatever the database does. After a restart the next look
        shows it again. Returns False if the purchase is another by now, of which the look says nothing.
        """
        with self._state.changed:
            known = self._state.wished.purchases[self._circuit].get(name)
            if known is None or SHOWN[status.state] not in PURCHASE_NEXT[known.state]:
                return False
            shown = moved(known, SHOWN[status.state], status.period, status.reason)
            shown = replace(shown, lacks=status.lacks, route=status.route)
            self._state.put(wished=self._state.wished.with_shown(self._circuit, shown))
            self._state.changed.notify_all()  # the plan follows what is up
            self.save_shown()
        return True

    def save_shown(self) -> None:
        """Hand to the database what looks have shown and is neither saved nor on its way there, if it saves now."""
        with self._state.changed, contextlib.suppress(DatabaseFailed):
            wished = self._state.wished
            for name, known in wished.purchases[self._circuit].items():
                if name in wished.unsaved and (name not in self._saving or self._saving[name].done()):
                    self._saving[name] = self._saves.save_purchase(self._circuit, known)

    def forget(self, name: str) -> None:
        """Forget a purchase, on disk too.

        Raises:
            DatabaseFailed: it cannot be saved.
        """
        with self._state.changed:
            saved = self._saves.forget_purchase(self._circuit, name)
        saved.result()
        self.unsent.discard(name)
        self.gone.discard(name)
        self.settled.discard(name)
        self.since_us.pop(name, None)
        self._saving.pop(name, None)

    def _asked(self, call: Callable[[], T]) -> T:
        """Return the answer to a call that changes something at the provider, unless we may not lead any more.

        What was written down before may have waited for long, so it is looked at here once more.

        Raises:
            ProviderError: of the call; or nothing was asked.
        """
        if not self._may_decide():
            raise ProviderUnavailable(
                f"circuit {self._circuit}", "the database has not said in time that we still lead"
            )
        return call()

    def _tell(self, step: Action) -> None:
        """Tell what the provider is asked, once that is written down."""
        self._state.events.publish(
            "provider.asked", circuit=self._circuit, purchase=step.name, step=type(step).__name__.lower()
        )

    def _buy(self, step: Buy, known: Purchase | None, apart: frozenset[str]) -> None:
        asked = asked_about(step, known)
        if not self.write(asked, known):
            return
        self._tell(step)
        self.since_us[step.name] = self._state.now_us()
        try:
            is_sold = self._asked(lambda: self._provider.reserve(step.name, step.period, apart))
        except (AnswerLost, NotInForce):
            self.unsent.discard(step.name)
            raise
        except ProviderError:
            self.unsent.add(step.name)
            raise
        self.unsent.discard(step.name)
        if is_sold:
            self.happened(asked, PurchaseEvent.SELL)

    def _change(self, step: PurchaseChange, known: Purchase) -> None:
        asked = asked_about(step, known)
        with self._state.changed:
            if known.state is PurchaseState.UP:
                self._state.put(wished=self._state.wished.with_rebuilding(known.name, asked.period.rate_bps))
            self._state.changed.notify_all()
        if not self.write(asked, known):
            return
        self._tell(step)
        try:
            period = self._asked(lambda: self._provider.change(step.name, step.period))
        except ProviderRefused:
            self.write(known, asked)
            raise
        self.happened(asked, PurchaseEvent.CHANGE, period)
