"""A kind of database: how a connection is made, and how a controller is alone with it."""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from sqlalchemy import URL, Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

Upsert = sqlite.Insert | postgresql.Insert

BUSY_MS = 1_000  # somebody else's transaction holds up ours no longer than this


class Backend(Protocol):
    """A kind of database.

    Attributes:
        shown: its URL without password.
    """

    shown: str

    def connect(self, term: int = 0) -> Connection:
        """Return a connection to a database that no other controller has.

        Args:
            term: if given, we lead a pair under it: who has the database is thrown out.

        Raises:
            DatabaseBusy: another one has it.
            DatabaseTaken: another one leads the pair.
        """

    def warm(self, reads: Callable[[Connection], object] | None = None) -> None:
        """Have most of a connection ready, so that :meth:`connect` takes no time; a new one, if it is called again.

        Args:
            reads: reads what will be read over it first, so that server and driver have looked up all they need for it.
        """

    def snapshot(self) -> Connection:
        """Return a connection that only reads, as everything was at one moment, whoever has the database."""

    def try_out(self) -> None:
        """Find out whether it could be connected to now; nothing is changed.

        Raises:
            DatabaseBusy: another controller has it.
            OSError: its folder or its files cannot be written.
        """

    def each_alone(self, connection: Connection) -> AbstractContextManager[object]:
        """Let each statement be a transaction of its own: a server is asked neither for its begin nor for its end."""

    def drop(self, connection: Connection) -> None:
        """Close a connection, which may be broken."""

    def release(self) -> None:
        """Let others have the database."""

    def upsert(self, table: Table) -> Upsert:
        """Return the statement that inserts a row, or replaces the one with its key."""


def shown_url(url: URL) -> str:
    """Return where a database of PostgreSQL is, for people: nothing else of its URL, which may have passwords and keys.

    >>> shown_url(URL.create("postgresql", "root", "secret", database="headway", query={"password": "secret"}))
    'postgresql://root@/headway'
    """
    where = {name: value for name, value in url.query.items() if name in {"host", "port", "dbname"}}
    return URL.create("postgresql", url.username, None, url.host, url.port, url.database, where).render_as_string()


@functools.cache
def upsert(insert: Callable[[Table], Upsert], table: Table) -> Upsert:
    """Return what inserts a row, or makes of the columns of one that is there already what was to be inserted."""
    new = insert(table)
    replaced = {column.name: new.excluded[column.name] for column in table.columns if not column.primary_key}
    return new.on_conflict_do_update(index_elements=table.primary_key, set_=replaced)
