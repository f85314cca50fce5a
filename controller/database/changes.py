"""What is remembered of changes, in its table: the questions about it, and how its old end is cut off."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, delete, func, select

from controller.database.chain import BEGINNING, ChainEnd, ChainRow, Remembered
from controller.database.tables import CHANGES, META
from controller.database.text import storable

LAST, CUT = "changes last", "changes cut"  # in ``meta``: the last row that was written, the last that was forgotten
_OUT_OF_ORDER = 1000  # rows that may be saved before an earlier one, as what the clock did during an outage is
_COLUMNS = (*CHANGES.c,)
END_COLUMNS = (
    *(select(META.c.value).where(META.c.key == key).scalar_subquery() for key in (LAST, CUT)),
    select(func.coalesce(func.max(CHANGES.c.number), 0)).scalar_subquery(),
)


@dataclass(frozen=True, slots=True)
class ChangeQuery:
    """Which changes.

    Attributes:
        after: those with a higher number.
        limit: how many at most, the lowest numbers first.
        id: of this reservation or announcement; empty for any.
        who: by this principal; empty for any.
        since_us: from the first one on that was made then or later, Unix time; None for all.
        newest_first: the highest numbers first instead.
    """

    after: int = 0
    limit: int = 1
    id: str = ""
    who: str = ""
    since_us: int | None = None
    newest_first: bool = False


def changes(connection: Connection, query: ChangeQuery) -> tuple[ChainRow, ...]:
    """Return what a question asks for."""
    after = query.after
    if query.since_us is not None:
        made = CHANGES.c.at_us, CHANGES.c.number  # many are made at once, as where all of a night begin together
        later = select(CHANGES.c.number).where(CHANGES.c.at_us >= query.since_us).order_by(*made).limit(_OUT_OF_ORDER)
        first = connection.execute(select(func.min(later.subquery().c.number))).scalar()
        if first is None:
            return ()
        after = max(after, first - 1)
    wanted = in_order(after, query.limit)
    if query.newest_first:
        wanted = wanted.order_by(None).order_by(CHANGES.c.number.desc())
    if query.id:
        wanted = wanted.where(CHANGES.c.id == storable(query.id))
    if query.who:
        wanted = wanted.where(CHANGES.c.who == storable(query.who))
    return tuple(chain_row(row) for row in connection.execute(wanted))


def in_order(after: int, limit: int) -> Select[Any]:
    """Return the statement for rows with a higher number, the lowest first."""
    return select(*_COLUMNS).where(CHANGES.c.number > after).order_by(CHANGES.c.number).limit(limit)


def chain_row(row: Row[Any]) -> ChainRow:
    """Return a row of the table, as it was stored."""
    number, *content, its_hash = tuple(row)
    return ChainRow(number, Remembered(*content), its_hash)  # the columns are in its order


def change_row(row: ChainRow) -> dict[str, str | int | None]:
    """Return a row for the table."""
    c = row.change
    return {
        "number": row.number,
        "at_us": c.at_us,
        "who": c.who,
        "address": c.address,
        "request_id": c.request_id,
        "kind": c.kind,
        "id": c.id,
        "old": c.old,
        "new": c.new,
        "outcome": c.outcome,
        "hash": row.hash,
    }


def end_row(key: str, end: ChainEnd) -> dict[str, str | int | None]:
    """Return :data:`LAST` or :data:`CUT` as its row of ``meta``."""
    return {"key": key, "value": json.dumps(asdict(end))}


def cut_end(connection: Connection) -> ChainEnd:
    """Return the last row that was forgotten."""
    return _said(connection, CUT) or BEGINNING


def written_end(connection: Connection) -> ChainEnd:
    """Return the last row that was written, by what is said beside the table."""
    return _said(connection, LAST) or cut_end(connection)


def next_end(connection: Connection, values: Sequence[Any]) -> ChainEnd:
    """Return where the chain goes on: no number is used twice, whatever somebody has done to what is said.

    Args:
        connection: to the table.
        values: of :data:`END_COLUMNS`.
    """
    last, cut_at, highest = values
    said = _end(last) or _end(cut_at) or BEGINNING
    if highest <= said.number:
        return said
    row = connection.execute(in_order(highest - 1, 1)).one()
    return chain_row(row).end


def forgettable(connection: Connection, before_us: int, limit: int) -> ChainEnd | None:
    """Return up to which row the oldest are from before a time, Unix time; of so many at most. None if none is."""
    oldest = select(CHANGES.c.number, CHANGES.c.hash, CHANGES.c.at_us).order_by(CHANGES.c.number).limit(limit)
    end = None
    for number, its_hash, at_us in connection.execute(oldest):
        if at_us >= before_us:
            break
        end = ChainEnd(number, its_hash)
    return end


def cut(connection: Connection, end: ChainEnd) -> int:
    """Forget all up to a row; return how many they were. The caller writes down the end."""
    return connection.execute(delete(CHANGES).where(CHANGES.c.number <= end.number)).rowcount


def _said(connection: Connection, key: str) -> ChainEnd | None:
    return _end(connection.execute(select(META.c.value).where(META.c.key == key)).scalar())


def _end(text: str | None) -> ChainEnd | None:
    return None if text is None else ChainEnd(**json.loads(text))
