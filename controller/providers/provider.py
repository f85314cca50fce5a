"""What the controller asks of who sells a circuit, whoever that is."""

from dataclasses import dataclass
from typing import Protocol

from controller.plan.purchases import Period, PurchaseState, Terms


@dataclass(frozen=True, slots=True)
class CircuitStatus:
    """What a provider has under a name.

    Attributes:
        state: UP only if it carries its rate now.
        period: what is sold; None if the provider does not say, or has nothing.
        reason: why it is in this state, in words; empty if there is nothing to say.
    """

    state: PurchaseState
    period: Period | None
    reason: str = ""


class Provider(Protocol):
    """Who sells one circuit. Every method may be called again after any error, and then ends what was left half done.

    Attributes:
        terms: what may be bought; None for a leased line, of which nothing is ever bought.
        schedule: when the circuit has another capacity than its own rate.
    """

    @property
    def terms(self) -> Terms | None:
        """Return what may be bought; None for a leased line."""

    @property
    def schedule(self) -> tuple[Period, ...]:
        """Return when the circuit has another capacity than its own rate; sorted and disjoint."""

    def reserve(self, name: str, period: Period) -> None:
        """Buy ``period`` under ``name``; once only, however often it is called.

        Raises:
            ProviderRefused: it cannot be had.
            ProviderUnavailable: to be tried again with the same name.
            ProviderDenied: our credentials are not accepted.
            NotInForce: something was bought, and ``found`` is what.
        """

    def change(self, name: str, period: Period) -> Period:
        """Make of the purchase what ``period`` says, and return what it then is at the provider.

        Raises:
            ProviderRefused: it cannot be had; the purchase is what it was, as far as the provider says.
            ProviderUnavailable: to be tried again.
            ProviderDenied: our credentials are not accepted.
            NotInForce: confirmed, and yet not so.
        """

    def release(self, name: str) -> None:
        """Give the purchase back; that it is gone already is fine.

        Raises:
            ProviderUnavailable: to be tried again.
            ProviderDenied: our credentials are not accepted.
            NotInForce: confirmed, and yet still there.
        """

    def status(self, name: str) -> CircuitStatus:
        """Return what the provider has under ``name``.

        Raises:
            ProviderUnavailable: to be tried again.
            ProviderDenied: our credentials are not accepted.
        """
