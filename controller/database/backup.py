"""Backups: every row as a line of JSON, the same for SQLite and PostgreSQL; and back into an empty database.

The first line says what follows, the last how many rows there were: a file that was cut short is not restored.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy import Connection, MetaData, Table, func, insert, select, text

from controller.database.backends import backend, connected
from controller.database.errors import NotRestorable
from controller.database.history import HIGHEST, highest
from controller.database.schema import VERSION_TABLE, migrate
from controller.database.snapshot import snapshot
from controller.database.tables import META, METADATA
from topology import __version__

FORMAT = 1
_AT_ONCE = 1000  # rows that are read, or inserted, together
_ENDED_SINCE = 10**9  # more than can have ended since a backup: whoever goes on from a cursor of then misses nothing


@dataclass(frozen=True, slots=True)
class BackupCount:
    """What a backup has.

    Attributes:
        shown: the database's URL, without password.
        rows: by table.
    """

    shown: str
    rows: dict[str, int]


def backed_up(url: str, rows: dict[str, int]) -> Iterator[str]:
    """Yield the lines of a backup, as the database was at one moment.

    Args:
        url: the database's.
        rows: is told how many there were of each table.

    Raises:
        UrlNotUsable: the URL names no database that we can use.
        DatabaseFailed: there is none of ours, or it cannot be read.
    """
    with snapshot(url) as seen:
        yield _line({"headway_backup": FORMAT, "schema": seen.schema, "written_by": __version__})
        for table in _tables(seen.connection):
            few = select(table).execution_options(yield_per=_AT_ONCE)  # the driver would have all in memory first
            for row in seen.connection.execute(few).mappings():
                rows[table.name] = rows.get(table.name, 0) + 1
                yield _line({"table": table.name, "row": dict(row)})
        yield _line({"rows": sum(rows.values())})


def restore(url: str, lines: Iterable[str]) -> BackupCount:
    """Put a backup into an empty database, all of it or nothing, and bring its schema up to date.

    Raises:
        UrlNotUsable: the URL names no database that we can use.
        DatabaseBusy: a controller is using it.
        DatabaseNewer: a newer Headway has written the backup.
        NotRestorable: the database is not empty, or this is not a whole backup.
        DatabaseFailed: it cannot be written.
    """
    target = backend(url)
    with connected(target, target.connect) as connection, connection.begin():
        rows = _restored(connection, target.shown, iter(lines))
        migrate(connection, target.shown)
        known = highest(connection)
        beyond = replace(known, number=known.number + _ENDED_SINCE)
        connection.execute(target.upsert(META), {"key": HIGHEST, "value": json.dumps(asdict(beyond))})
    return BackupCount(target.shown, rows)


def _restored(connection: Connection, shown: str, lines: Iterator[str]) -> dict[str, int]:
    head = _read(next(lines, ""))
    if head.get("headway_backup") != FORMAT or not isinstance(head.get("schema"), str):
        raise NotRestorable("this is no backup of a database")
    for table in _tables(connection):
        if table.name != META.name and connection.execute(select(func.count()).select_from(table)).scalar():
            raise NotRestorable(f"{shown} is not empty: a backup is restored into an empty database only")
    for table in _tables(connection):
        table.drop(connection)
    connection.execute(text(f"DROP TABLE IF EXISTS {VERSION_TABLE}"))
    migrate(connection, shown, to=head["schema"], written_by=str(head.get("written_by")))
    tables = {table.name: table for table in _tables(connection)}
    columns = {name: {*table.columns.keys()} for name, table in tables.items()}
    rows = dict.fromkeys(tables, 0)
    waiting: list[dict[str, Any]] = []
    of, told = "", -1
    for line in lines:
        said = _read(line)
        if "rows" in said:
            told = said["rows"]
            break
        name, row = str(said.get("table")), said.get("row")
        if name not in tables:
            raise NotRestorable(f"{name} is no table of a database with schema {head['schema']}")
        if not isinstance(row, dict) or row.keys() != columns[name]:
            raise NotRestorable(f"the backup is damaged: a line of {name} is no row of it; nothing is restored")
        if name != of or len(waiting) == _AT_ONCE:
            _put(connection, tables.get(of), waiting)
            of, waiting = name, []
        waiting.append(row)
        rows[of] += 1
    _put(connection, tables.get(of), waiting)
    if told != sum(rows.values()):
        raise NotRestorable(f"the backup is cut short: {sum(rows.values())} rows, and no end; nothing is restored")
    return rows


def _put(connection: Connection, table: Table | None, rows: list[dict[str, Any]]) -> None:
    if table is None or not rows:
        return
    try:
        connection.execute(insert(table), rows)
    except (OverflowError, UnicodeEncodeError) as error:  # a driver's own, which is no error of a database
        raise NotRestorable(f"the backup is damaged: a row of {table.name}: {error}; nothing is restored") from None


def _tables(connection: Connection) -> list[Table]:
    """Return the tables of ours that are there, as they are."""
    ours = set(METADATA.tables)
    found = MetaData()
    found.reflect(connection, only=lambda name, _: name in ours)
    return [found.tables[name] for name in sorted(found.tables)]


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


def _read(line: str) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except ValueError:
        raise NotRestorable("this is no backup of a database, or not a whole one") from None
    if not isinstance(said, dict):
        raise NotRestorable("this is no backup of a database")
    return said
