"""What each owner may have and has: quotas, checked against what is on the books, under the lock of the state."""

from controller.asker import present_asker
from controller.plan.admission import Reason, Refused, Request
from controller.plan.quotas import UNLIMITED, Live, More, Quotas, beyond, grows, live_of
from controller.plan.reservations import Reservation
from controller.state.guard import GuardedState


class Allowances:
    """Quotas over one state."""

    def __init__(self, state: GuardedState, quotas: Quotas) -> None:
        self._state = state
        self.quotas = quotas

    def live_of(self, owner: str) -> Live:
        """Return what an owner has; takes the lock itself."""
        with self._state.changed:
            return self._live_of(owner)

    def refused(self, more: More, now_us: int, known: Reservation | None = None) -> Refused | None:
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
