"""What is bought, as the database has it."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from controller.database import PurchaseRow
from controller.plan.purchase_lifecycle import PURCHASE_NEXT, SHOWN
from controller.plan.purchases import Period, Purchase, PurchaseState
from controller.state.wished import Wished


def purchase_row(circuit: str, purchase: Purchase) -> PurchaseRow:
    """Return what is saved of a purchase."""
    start_us, end_us, rate_bps = purchase.period.start_us, purchase.period.end_us, purchase.period.rate_bps
    return PurchaseRow(circuit, purchase.name, start_us, end_us, rate_bps, purchase.state, purchase.reason)


def noted_purchase(circuit: str, purchase: Purchase) -> dict[str, Any]:
    """Return what is remembered of a purchase."""
    period = purchase.period
    return {
        "circuit": circuit,
        "rate_bps": period.rate_bps,
        "start_us": period.start_us,
        "end_us": period.end_us,
        "state": purchase.state,
        "reason": purchase.reason,
    }


def with_bought(wished: Wished, rows: Iterable[PurchaseRow]) -> Wished:
    """Return what was wished with what is bought as it is saved, but for what providers have shown since.

    What is known and not saved stays: who leads has more in memory than is saved when the database has failed. What of
    a period is not guaranteed, and its route, is never saved.
    """
    purchases = {circuit: {**known} for circuit, known in wished.purchases.items()}
    unsaved = dict[str, Purchase]()
    for row in rows:
        if row.circuit not in purchases:
            continue
        period = Period(row.start_us, row.end_us, row.rate_bps)
        saved = Purchase(row.name, period, PurchaseState(row.state), row.reason)
        known = purchases[row.circuit].get(row.name)
        if known and known.period == period:
            saved = replace(saved, lacks=known.lacks, route=known.route)
        if known and row.name in wished.unsaved and SHOWN.get(known.state) in PURCHASE_NEXT[saved.state]:
            unsaved[row.name] = saved
        else:
            purchases[row.circuit][row.name] = saved
    return replace(wished, purchases=purchases, unsaved=unsaved)
