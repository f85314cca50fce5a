"""A database of ours as it was at one moment, to be read to its end; a controller may go on with it meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection

from controller.database.backends import backend, connected
from controller.database.errors import DatabaseFailed
from controller.database.schema import revision


@dataclass(frozen=True, slots=True)
class DatabaseSnapshot:
    """What is read.

    Attributes:
        connection: inside its transaction.
        schema: the revision of its tables.
        shown: the database's URL, without password.
    """

    connection: Connection
    schema: str
    shown: str


@contextmanager
def snapshot(url: str) -> Iterator[DatabaseSnapshot]:
    """Give a database as it was at one moment.

    Raises:
        UrlNotUsable: the URL names no database that we can use.
        DatabaseFailed: there is none of ours, or it cannot be read.
    """
    source = backend(url)
    with connected(source, source.snapshot) as connection, connection.begin():
        if (schema := revision(connection)) is None:
            raise DatabaseFailed(source.shown, "there is no database of a controller in it")
        yield DatabaseSnapshot(connection, schema, source.shown)
