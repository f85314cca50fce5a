"""What each owner may have and has: quotas, checked against what is on the books, under the lock of the state."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from controller.asker import present_asker
from controller.plan.admission import Offer, OfferKind, Reason, Refused, Request
from controller.plan.quotas import UNLIMITED, Live, More, Quotas, beyond, grows, live_of
from controller.plan.reservations import Reservation
from controller.state.guard import GuardedState

T = TypeVar("T")


class Allowances:
    """Quotas over one state."""

    def __init__(self, state: GuardedState, quotas: Quotas) -> None:
        self._state = state
        self.quotas = quotas

    def live_of(self, owner: str) -> Live:
        """Return what an owner has; takes the lock itself."""
        with self._state.changed:
            return self._live_of(owner)

    def decided(
        self, more: More, decide: Callable[[], T | Refused], now_us: int, known: Reservation | None = None
    ) -> T | Refused:
        """Return what is decided of what is within the quota of its owner; of a refusal's offers those that are too.

        Under the lock.

        Args:
            more: what is asked.
            decide: decides on it.
            now_us: Unix time.
            known: the reservation that is to change.
        """
        answer = self._refused(more, now_us, known) or decide()
        if not isinstance(answer, Refused):
            return answer
        within = (offer for offer in answer.offers if self._refused(_taken(offer, more), now_us, known) is None)
        return replace(answer, offers=tuple(within))

    def _refused(self, more: More, now_us: int, known: Reservation | None) -> Refused | None:
        """Return the refusal of what is beyond the quota of its owner; who operates the site has none.

        Under the lock. It looks at all that is live: 50 us for a thousand reservations, of whoever has a quota.

        Args:
            more: what is asked.
            now_us: Unix time.
            known: the reservation that is to change; its own share counts as free.
        """
        quota = self.quotas.of(more.owner)
        if quota == UNLIMITED or present_asker().operates or (known is not None and not grows(known, more)):
            return None
        found = beyond(quota, self._live_of(more.owner, known.reservation_id if known else ""), more, now_us)
        if found is None:
            return None
        return Refused(Reason.QUOTA, "", found.asked, found.left, now_us, (), str(found), found)

    def _live_of(self, owner: str, without: str = "") -> Live:
        ledger = self._state.wished.ledger
        reservations = (known for name, known in ledger.reservations.items() if name != without)
        return live_of(owner, reservations, ((a.owner, a.size_bytes) for a in ledger.announcements.values()))


def reserved(request: Request) -> More:
    """Return what a reservation would be beside what its owner has."""
    return More(request.owner, request.rate_bps, request.start_us, request.end_us)


def _taken(offer: Offer, more: More) -> More:
    """Return what is asked as it is if an offer is taken; an announcement is made when it is to begin."""
    if more.rate_bps:
        return replace(more, rate_bps=offer.rate_bps, start_us=offer.start_us, end_us=offer.end_us)
    return replace(more, end_us=offer.end_us) if offer.kind is OfferKind.LATER_DEADLINE else more
