"""Maintenance: times in which a circuit carries nothing, planned while the controller runs. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from controller.plan.keeping import Unkeepable, unkeepable
from controller.plan.ledger import Ledger
from topology.network import Hop


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
    """

    name: str
    circuit: str
    start_us: int
    end_us: int
    words: str = ""
    creator: str = ""
    created_us: int = 0


def impose(ledger: Ledger, one: Maintenance, sign: int = 1, from_us: int = 0) -> None:
    """Take a circuit's capacity away for the time; with the sign -1 give it back, from a moment on."""
    start_us = max(one.start_us, from_us)
    if start_us < one.end_us:
        for tail, head, link in ledger.network.circuit_links:
            if link.circuit == one.circuit:
                ledger.set_schedule(Hop(tail, head), [(start_us, one.end_us, 0)], sign)


def broken_by(ledger: Ledger, one: Maintenance, now_us: int) -> tuple[Unkeepable, ...]:
    """Return the reservations that a maintenance would break, and what would be granted instead; nothing is changed."""
    before = {each.reservation_id for each in unkeepable(ledger, now_us)}
    impose(ledger, one)
    try:
        return tuple(each for each in unkeepable(ledger, now_us) if each.reservation_id not in before)
    finally:
        impose(ledger, one, -1)


def overlapping(one: Maintenance, others: Iterable[tuple[str, int, int]]) -> bool:
    """Return whether a circuit has another capacity already at a time: (circuit, from, until), each half-open."""
    return any(
        circuit == one.circuit and start_us < one.end_us and one.start_us < end_us
        for circuit, start_us, end_us in others
    )
