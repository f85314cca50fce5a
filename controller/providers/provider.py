"""What the controller asks of who sells a circuit, whoever that is."""

from dataclasses import dataclass
from random import Random
from typing import Protocol

from controller.plan.purchases import Period, PurchaseState, Terms


@dataclass(frozen=True, slots=True)
class CircuitStatus:
    """What a provider has under a name.

    Attributes:
        state: UP only if it carries its rate now.
        period: what is sold; None if the provider does not say, or has nothing.
        reason: why it is in this state, in words; empty if there is nothing to say.
        lacks: what of the rate nobody guarantees, in words; empty if all of it is guaranteed, or nothing is sold.
        route: what it crosses at the provider, by the provider's names, its own ends left out; empty if not known.
        refused: it was asked for, and the provider has decided against it; ``reason`` says why.
    """

    state: PurchaseState
    period: Period | None
    reason: str = ""
    lacks: str = ""
    route: tuple[str, ...] = ()
    refused: bool = False


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

    def new_name(self, random: Random) -> str:
        """Return a name for a purchase that the provider takes, drawn by ``random``."""

    def reserve(self, name: str, period: Period, apart: frozenset[str] = frozenset()) -> bool:
        """Buy ``period`` under ``name``; once only, however often it is called.

        Returns:
            whether it is sold; if not, the provider has still to decide, and a look at it will tell.

        Args:
            name: from ``new_name``.
            period: what to buy.
            apart: what it should not cross, for something crosses it that this is to stand in for; by the names of
                ``CircuitStatus.route``. Where there is no other way it is bought all the same: a look at it says so.

        Raises:
            ProviderRefused: it cannot be had.
            ProviderUnavailable: to be tried again with the same name.
            ProviderDenied: our credentials are not accepted.
            NotInForce: something was bought, and ``found`` is what.
        """

    def change(self, name: str, period: Period) -> Period:
        """Make of the purchase what ``period`` says, and return what it then is at the provider.

        Where the provider cannot change what is sold, what takes less stays as it is, and what takes more is refused.

        Raises:
            ProviderRefused: it cannot be had; the purchase is what it was, as far as the provider says.
            ProviderUnavailable: to be tried again.
            ProviderDenied: our credentials are not accepted.
            NotInForce: confirmed, and yet not so.
        """

    def tend(self, name: str, period: Period) -> None:
        """Do what has to be done of what is bought at this moment, such as to have it built at its begin.

        Args:
            name: of the purchase.
            period: what it is.

        Raises:
            ProviderUnavailable: to be tried again.
            ProviderDenied: our credentials are not accepted.
        """

    def release(self, name: str) -> bool:
        """Give the purchase back; that it is gone already is fine.

        Returns:
            whether it is gone; if not, it is on its way, and this is to be called again.

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

    def free_bps(self, start_us: int, end_us: int) -> int | None:
        """Return what could be bought from ``start_us`` to ``end_us``, bit/s; None if the provider does not say.

        Advice: it holds nothing, and others buy.

        Raises:
            ProviderUnavailable: to be tried again.
            ProviderDenied: our credentials are not accepted.
        """

    def close(self) -> None:
        """Close the connections to it; nothing is given back."""
