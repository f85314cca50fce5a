"""All that has ended, in the order in which it was saved; and how it is forgotten."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from sqlalchemy import Connection, RowMapping, Table, delete, func, select

from controller.database.ended import ended_of
from controller.database.rows import reservation_of
from controller.database.tables import ENDED_ANNOUNCEMENTS, ENDED_RESERVATIONS, META
from controller.plan.ended import EndedAnnouncement
from controller.plan.reservations import Reservation

HIGHEST = "highest"  # of what is forgotten


class EndedKind(Enum):
    """What can end: its table, and when it has ended."""

    RESERVATION = (ENDED_RESERVATIONS, "changed_us")
    ANNOUNCEMENT = (ENDED_ANNOUNCEMENTS, "ended_us")

    @property
    def table(self) -> Table:
        """Where it is kept."""
        return self.value[0]


@dataclass(frozen=True, slots=True)
class HistoryItem:
    """Something that has ended.

    Attributes:
        number: its place among all that has; an announcement whose last counts come late gets another one.
        ended: it.
    """

    number: int
    ended: Reservation | EndedAnnouncement


@dataclass(frozen=True, slots=True)
class Highest:
    """The highest numbers that were ever used: of what was promised (``sequence``), and of what has ended."""

    sequence: int = 0
    number: int = 0


HIGHEST_COLUMNS = (
    select(META.c.value).where(META.c.key == HIGHEST).scalar_subquery(),
    *(
        select(func.coalesce(func.max(column), 0)).scalar_subquery()
        for kind in EndedKind
        for column in (kind.table.c.sequence, kind.table.c.number)
    ),
)
_HIGHEST = select(*HIGHEST_COLUMNS)


def items_after(connection: Connection, after: int, limit: int) -> tuple[HistoryItem, ...]:
    """Return what has a higher number, the lowest first."""
    rows: list[tuple[int, EndedKind, RowMapping]] = []
    for kind in EndedKind:
        table = kind.table
        wanted = select(table).where(table.c.number > after).order_by(table.c.number).limit(limit)
        rows += [(row["number"], kind, row) for row in connection.execute(wanted).mappings()]
    return tuple(
        HistoryItem(number, reservation_of(row) if kind is EndedKind.RESERVATION else ended_of(row))
        for number, kind, row in sorted(rows, key=lambda found: found[0])[:limit]
    )


def highest(connection: Connection) -> Highest:
    """Return the highest numbers of all that has ended, forgotten or not; asked at once."""
    return highest_of(connection.execute(_HIGHEST).one())


def highest_of(values: Sequence[Any]) -> Highest:
    """Return them by the values of :data:`HIGHEST_COLUMNS`."""
    saved, *found = values
    forgotten = Highest(**json.loads(saved)) if saved else Highest()
    sequences, numbers = found[::2], found[1::2]
    return Highest(max(forgotten.sequence, *sequences), max(forgotten.number, *numbers))


def forget(connection: Connection, kind: EndedKind, before_us: int, limit: int) -> int:
    """Forget what has ended before a time, Unix time; the oldest first, so many at most. Return how many they were."""
    table, at = kind.table, kind.table.c[kind.value[1]]
    (key,) = table.primary_key
    oldest = select(key).where(at < before_us).order_by(at).limit(limit)
    return connection.execute(delete(table).where(key.in_(oldest))).rowcount
