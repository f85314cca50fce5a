"""Maintenance: times in which a circuit carries nothing, planned while the controller runs. Pure.

Two of one circuit may share some of their time, as two crews do: nothing is carried until the last of them is over.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from controller.plan.keeping import Unkeepable, unkeepable
from controller.plan.ledger import Ledger
from controller.plan.purchases import Period
from topology.network import Hop

WITHDRAWN_US = 1  # the shortest time: a controller of before there were such reads no empty one


@dataclass(frozen=True, slots=True)
class Maintenance:
    """A circuit is worked on for ``start_us <= t < end_us``.

    Attributes:
        name: its id.
        circuit: which.
        start_us: Unix time, microseconds.
        end_us: Unix time, microseconds; not in it any more.
        words: what for.
        creator: the principal that has planned it.
        created_us: when, Unix time.
        key: the idempotency key it was planned with; empty if there was none.
        fingerprint: digest of the request that planned it, to tell a repetition from another use of the key.
    """

    name: str
    circuit: str
    start_us: int
    end_us: int
    words: str = ""
    creator: str = ""
    created_us: int = 0
    key: str = ""
    fingerprint: str = ""

    @property
    def is_withdrawn(self) -> bool:
        """Whether it was taken back before it began: it is kept for who asks again, and takes nothing."""
        return self.end_us - self.start_us <= WITHDRAWN_US


def impose(ledger: Ledger, one: Maintenance) -> None:
    """Let a circuit carry nothing for the time, whatever it was to carry then."""
    for hop in () if one.is_withdrawn else _hops(ledger, one):
        ledger.set_schedule(hop, [(one.start_us, one.end_us, 0)])


def lift(
    ledger: Ledger, one: Maintenance, others: Iterable[Maintenance], periods: Iterable[Period], from_us: int
) -> None:
    """Let a circuit carry again what it would without a maintenance; what of that is over stays over.

    Args:
        ledger: with the calendar.
        one: which is taken back.
        others: those that stay: where one of them is at the same time, nothing is carried still.
        periods: when the circuit has another rate than its own.
        from_us: since when, Unix time.
    """
    start_us = max(one.start_us, from_us)
    if start_us >= one.end_us:
        return
    closed = [(other.start_us, other.end_us, 0) for other in others if other.circuit == one.circuit]
    known = [(period.start_us, period.end_us, period.rate_bps) for period in periods]
    for hop in _hops(ledger, one):
        usual = (start_us, one.end_us, ledger.network.link(*hop).rate_bps)
        within = ((max(start_us, b), min(one.end_us, u), bps) for b, u, bps in (usual, *known, *closed))
        ledger.set_schedule(hop, [each for each in within if each[0] < each[1]])


def broken_by(ledger: Ledger, one: Maintenance, now_us: int) -> tuple[Unkeepable, ...]:
    """Return the reservations that a maintenance would break, and what would be granted instead; nothing is changed."""
    before = {(each.reservation_id, each.why) for each in unkeepable(ledger, now_us)}
    carried = {hop: ledger.schedules.pieces(hop, one.start_us, one.end_us) for hop in _hops(ledger, one)}
    impose(ledger, one)
    try:
        return tuple(each for each in unkeepable(ledger, now_us) if (each.reservation_id, each.why) not in before)
    finally:
        for hop, pieces in carried.items():
            ledger.set_schedule(hop, pieces)


def broken_meanwhile(
    ledger: Ledger, one: Maintenance, others: Iterable[Maintenance], periods: Iterable[Period], now_us: int
) -> tuple[Unkeepable, ...]:
    """Return the reservations that a maintenance breaks which counts already; nothing is changed.

    Args:
        ledger: with the calendar.
        one: it.
        others: those that there are beside it.
        periods: when the circuit has another rate than its own.
        now_us: Unix time.
    """
    broken = unkeepable(ledger, now_us)
    carried = {hop: ledger.schedules.pieces(hop, one.start_us, one.end_us) for hop in _hops(ledger, one)}
    lift(ledger, one, others, periods, now_us)
    try:
        without = {(each.reservation_id, each.why) for each in unkeepable(ledger, now_us)}
    finally:
        for hop, pieces in carried.items():
            ledger.set_schedule(hop, pieces)
    return tuple(each for each in broken if (each.reservation_id, each.why) not in without)


def beside(one: Maintenance, others: Iterable[Maintenance]) -> tuple[Maintenance, ...]:
    """Return those of the same circuit that share some of a maintenance's time."""
    return tuple(
        other
        for other in others
        if other.circuit == one.circuit and other.start_us < one.end_us and one.start_us < other.end_us
    )


def _hops(ledger: Ledger, one: Maintenance) -> list[Hop]:
    return [Hop(tail, head) for tail, head, link in ledger.network.circuit_links if link.circuit == one.circuit]
