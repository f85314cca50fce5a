"""What changes anything at a provider; each is written down before it is asked for.

So a controller that dies in between finds out at its next start what became of it, and one of a pair that has been
followed, whose writes are refused, buys nothing more, and gives back nothing that its successor needs.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from controller.database import DatabaseFailed
from controller.plan.purchase_lifecycle import PurchaseEvent, moved
from controller.plan.purchases import Action, Buy, Period, Purchase, PurchaseChange, PurchaseState, sure_of
from controller.providers.errors import AnswerLost, NotInForce, ProviderError, ProviderRefused, ProviderUnavailable
from controller.providers.provider import Provider
from controller.saves import Saves
from controller.state.guard import GuardedState

T = TypeVar("T")


class CircuitBuyer:
    """Asks the provider of one circuit, and keeps what becomes of it.

    A process that starts knows nothing of the attributes, and so waits the longest.

    Attributes:
        unsent: purchases that were asked for, and surely not sent: they may be asked for again by their names.
        gone: those that were given back or up, and of which the provider has said that they are not there.
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
        self.since_us: dict[str, int] = {}

    def carry_out(self, step: Action, apart: frozenset[str]) -> None:
        """Carry out a step; ``apart`` is what a purchase should not cross.

        Raises:
            ProviderError: it was not done, or not as asked.
            DatabaseFailed: it cannot be written down, so the provider was not asked; or what it has done cannot be.
        """
        self._state.events.publish(
            "provider.asked", circuit=self._circuit, purchase=step.name, step=type(step).__name__.lower()
        )
        if isinstance(step, Buy):
            self._buy(step, apart)
        elif isinstance(step, PurchaseChange):
            self._change(step)
        else:
            self.happened(step.name, PurchaseEvent.RELEASE)
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
        self, name: str, event: PurchaseEvent, period: Period | None = None, reason: str | None = None
    ) -> None:
        """Take a purchase to its next state, on disk before this returns.

        Raises:
            DatabaseFailed: it cannot be saved.
        """
        self.write(moved(self._known(name), event, period, reason))

    def write(self, purchase: Purchase) -> None:
        """Keep a purchase, on disk before this returns.

        Raises:
            DatabaseFailed: it cannot be saved, and nobody goes by it.
        """
        with self._state.changed:
            before = self._state.wished.purchases[self._circuit].get(purchase.name)
            saved = self._saves.save_purchase(self._circuit, purchase)
        try:
            saved.result()
        except DatabaseFailed:
            with self._state.changed:
                wished = self._state.wished
                if wished.purchases[self._circuit].get(purchase.name) is purchase:  # and not read anew since
                    back = wished.without_purchase(self._circuit, purchase.name)
                    self._state.put(wished=back if before is None else wished.with_purchase(self._circuit, before))
                    self._state.changed.notify_all()
            raise
        if purchase.state is not PurchaseState.ASKED:
            self.since_us.pop(purchase.name, None)

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
        self.since_us.pop(name, None)

    def _known(self, name: str) -> Purchase:
        with self._state.changed:
            return self._state.wished.purchases[self._circuit][name]

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

    def _buy(self, step: Buy, apart: frozenset[str]) -> None:
        self.write(Purchase(step.name, step.period, PurchaseState.ASKED))
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
            self.happened(step.name, PurchaseEvent.SELL)

    def _change(self, step: PurchaseChange) -> None:
        """Change a purchase: until it is rebuilt, no more than both rates have is counted on, by whoever leads."""
        known = self._known(step.name)
        sure = sure_of(known.period, step.period)
        with self._state.changed:
            if known.state is PurchaseState.UP:
                self._state.put(wished=self._state.wished.with_rebuilding(known.name, sure.rate_bps))
            self._state.changed.notify_all()
        self.write(replace(known, period=sure))
        try:
            period = self._asked(lambda: self._provider.change(step.name, step.period))
        except ProviderRefused:
            self.write(known)
            raise
        self.happened(step.name, PurchaseEvent.CHANGE, period)
