"""Whether what is remembered of changes is as it was written: a look along the chain in the database itself."""

from collections.abc import Iterator
from dataclasses import replace

from sqlalchemy import Connection

from controller.database.chain import ChainChecked, ChainEnd, ChainFault, ChainRow, checked
from controller.database.changes import chain_row, cut_end, in_order, written_end
from controller.database.errors import DatabaseFailed
from controller.database.snapshot import snapshot
from controller.database.text import one_line

_AT_ONCE = 1_000  # rows


def verified(url: str, noted: ChainEnd | None = None) -> ChainChecked:
    """Return what a look along the chain has found, as everything was at one moment.

    Args:
        url: the database's.
        noted: a row as somebody else has noted it, if it must be in the chain: all of which could be made anew.

    Raises:
        UrlNotUsable: the URL names no database that we can use.
        DatabaseFailed: there is none of ours, or it cannot be read.
    """
    with snapshot(url) as seen:
        try:
            return _checked(seen.connection, noted)
        except (ValueError, TypeError) as error:  # a row that is none of ours
            raise DatabaseFailed(seen.shown, one_line(error)) from error


def _checked(connection: Connection, noted: ChainEnd | None) -> ChainChecked:
    cut, seen = cut_end(connection), set[ChainEnd]()

    def watched() -> Iterator[ChainRow]:
        for row in _rows(connection):
            if noted is not None and row.number == noted.number:
                seen.add(row.end)
            yield row

    found = checked(watched(), cut, written_end(connection))
    if noted is None or found.fault is not None or noted in seen or noted == cut:
        return found
    if noted.number < cut.number:
        why = f"it is forgotten, as is all up to {cut.number}: name a later one"
    elif seen:
        why = "its hash is another one: all from there on, or from before, was made anew"
    else:
        why = f"it is missing: the last row is {found.end.number}"
    return replace(found, fault=ChainFault(noted.number, why))


def _rows(connection: Connection) -> Iterator[ChainRow]:
    """Yield all rows in order; not all of them are in memory at once."""
    after = -1
    while rows := [chain_row(row) for row in connection.execute(in_order(after, _AT_ONCE))]:
        yield from rows
        after = rows[-1].number
