"""The names of what the last transactions of a pair's leader have changed: who stands by need not read all again.

Each transaction leaves them in a row of ``meta``, in place of those of the one that came ``KEPT`` before. The row says
which session has written it, for one number may have been given to two transactions: after a backup was restored, or by
an older Headway on a server that has lost its last ones. Who stands by sees only whether the number is another, and may
have read what was lost: so a session begins with a number that is drawn.
"""

import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from controller.database.rows import Row, RowBatch, SavedPoint
from controller.database.tables import META

KEPT = 512  # transactions
_PASSED_OVER = 1 << 40  # numbers at most as a session begins; the column's have room for millions of sessions
MOST_NAMES = 1_000  # who is to read more than so many things reads all


@dataclass(frozen=True, slots=True)
class WrittenNames:
    """The names of reservations and announcements, and the numbers of announcements that have ended."""

    reservations: frozenset[str] = frozenset()
    announcements: frozenset[str] = frozenset()
    ended: frozenset[int] = frozenset()

    def __len__(self) -> int:
        """Return how many they are."""
        return len(self.reservations) + len(self.announcements) + len(self.ended)

    def __or__(self, other: "WrittenNames") -> "WrittenNames":
        """Return both together."""
        return WrittenNames(
            self.reservations | other.reservations, self.announcements | other.announcements, self.ended | other.ended
        )


def first_number(found: int) -> int:
    """Return the number of a session's first transaction, above the last one that it has found."""
    return found + 1 + secrets.randbelow(_PASSED_OVER)


def names_row(at: SavedPoint, batch: RowBatch) -> Row:
    """Return the row of a transaction; it names nothing if all is to be read after it."""
    count = len(batch.reservations) + len(batch.announcements) + len(batch.ended)
    is_too_much = bool(batch.maintenance) or count > MOST_NAMES
    lists = sorted(batch.reservations), sorted(batch.announcements), sorted(batch.ended)
    return {"key": _key(at.saves), "value": json.dumps([at.saves, at.session, None if is_too_much else lists])}


def point(connection: Connection, saves: int) -> SavedPoint:
    """Return the point at which a transaction was the last one."""
    said = _said(connection, (saves,)).get(saves)
    return SavedPoint(saves, "" if said is None else said[0])


def names_since(connection: Connection, since: SavedPoint, saves: int) -> WrittenNames | None:
    """Return the names of what has changed from a point to another transaction; None if all is to be read."""
    if not since.session or not 0 <= saves - since.saves < KEPT:
        return None
    numbers = range(since.saves, saves + 1)
    said, names = _said(connection, numbers), WrittenNames()
    for number in numbers:
        session, lists = said.get(number, ("", None))
        if session != since.session:
            return None
        if number == since.saves:  # it is still there, and so is all that we have read
            continue
        if lists is None:
            return None
        names |= WrittenNames(*map(frozenset, lists))
    return names if len(names) <= MOST_NAMES else None


def _said(connection: Connection, saves: Iterable[int]) -> dict[int, tuple[str, Any]]:
    """Return what rows say, by the number of their transaction: its session, and the names."""
    rows = select(META.c.value).where(META.c.key.in_([_key(number) for number in saves]))
    return {number: (session, lists) for number, session, lists in map(json.loads, connection.execute(rows).scalars())}


def _key(saves: int) -> str:
    return f"names of {saves % KEPT}"
