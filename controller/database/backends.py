"""SQLite or PostgreSQL, by a URL."""

import contextlib
from collections.abc import Callable, Iterator

from sqlalchemy import Connection, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from controller.database.backend import Backend
from controller.database.errors import DatabaseFailed, UrlNotUsable
from controller.database.postgresql import Postgresql
from controller.database.sqlite import Sqlite
from controller.database.text import one_line


@contextlib.contextmanager
def connected(database: Backend, connect: Callable[[], Connection]) -> Iterator[Connection]:
    """Give a connection to a database that is used this once; however that ends, both are let go.

    Args:
        database: what is used.
        connect: its :meth:`Backend.connect` or :meth:`Backend.snapshot`.

    Raises:
        DatabaseFailed: it cannot be reached, read or written.
    """
    try:
        connection = connect()
        try:
            yield connection
        finally:
            database.drop(connection)
    except (SQLAlchemyError, OSError) as error:
        raise DatabaseFailed(database.shown, one_line(getattr(error, "orig", None) or error)) from error
    finally:
        database.release()


def backend(url: str) -> Sqlite | Postgresql:
    """Return what a URL names.

    Raises:
        UrlNotUsable: nothing that we can use.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise UrlNotUsable("it is no URL") from None
    if parsed.drivername in {"sqlite", "sqlite+pysqlite"}:
        return Sqlite(parsed)
    if parsed.drivername in {"postgresql", "postgresql+psycopg"}:
        return Postgresql(parsed)
    raise UrlNotUsable(f'there is no support for "{parsed.drivername}"')
