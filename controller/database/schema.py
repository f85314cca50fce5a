"""The schema of a database: brought to what this Headway knows, or refused if it is beyond that."""

import contextlib
import functools
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import (
    Column,
    Connection,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    insert,
    inspect,
    select,
)
from sqlalchemy.exc import SQLAlchemyError

from controller.database.errors import DatabaseNewer
from controller.database.tables import META, METADATA
from topology import __version__

VERSION_TABLE = "headway_version"  # not Alembic's usual name: another application's may be in the same database
WRITTEN_BY = "written_by"

_SCRIPTS = Path(__file__).parents[1] / "migrations"
_VERSION = Table(  # as Alembic makes it
    VERSION_TABLE,
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"),
)


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """From which schema, None if there was none, to which."""

    found: str | None
    made: str


def migrate(
    connection: Connection, shown: str, to: str = "", written_by: str = "", *, is_made: bool = False
) -> "SchemaChange | None":
    """Bring the database to a schema, in one transaction: the caller's, or one of its own; return what has changed.

    Args:
        connection: to a database that nobody else changes meanwhile.
        shown: its URL without password.
        to: which; the newest if empty.
        written_by: who has written what is to come into it, if that is not in the database.
        is_made: whether it is known to have a schema of ours.

    Raises:
        DatabaseNewer: its schema, or the one it is to have, is not known here.
    """
    newest, _ = known_schemas()
    wanted = to or newest
    with contextlib.nullcontext() if connection.in_transaction() else connection.begin():
        found = revision(connection, is_made=is_made)
        if found == wanted:
            return None
        for one in filter(None, (found, wanted)):
            _check(one, connection, shown, written_by)
        if found is None and wanted == newest:
            _make(connection, newest)
        else:
            _upgrade(connection, wanted)
    return SchemaChange(found, wanted)


def check_known(connection: Connection, shown: str) -> None:
    """Make sure that a start could go on with what is in a database, if there is a schema of ours.

    Raises:
        DatabaseNewer: that is not known here.
    """
    found = revision(connection)
    if found is not None:
        _check(found, connection, shown)


def _check(schema: str, connection: Connection, shown: str, written_by: str = "") -> None:
    newest, known = known_schemas()
    if schema not in known:
        raise DatabaseNewer(shown, schema, newest, written_by or _written_by(connection), __version__)


@functools.cache
def known_schemas() -> tuple[str, frozenset[str]]:
    """Return the newest schema, and all that are known here: each has a script, whose name begins with it."""
    known = {script.name.partition("_")[0] for script in (_SCRIPTS / "versions").glob("[0-9]*_*.py")}
    return max(known), frozenset(known)


def _make(connection: Connection, newest: str) -> None:
    """Make what a new database has: at once, and not by all the steps that older ones have taken."""
    _VERSION.create(connection, checkfirst=False)
    METADATA.create_all(connection, checkfirst=False)
    connection.execute(insert(_VERSION), {"version_num": newest})


def _upgrade(connection: Connection, wanted: str) -> None:
    """Carry out the steps to a schema. Only here Alembic is loaded, a twentieth of a controller's start."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.attributes.update(connection=connection, version_table=VERSION_TABLE)
    command.upgrade(config, wanted)


def revision(connection: Connection, *, is_made: bool = False) -> str | None:
    """Return the schema that a database has; None if it has none of ours, which is not looked for if it ``is_made``."""
    if not is_made and not inspect(connection).has_table(VERSION_TABLE):
        return None
    found: str | None = connection.execute(select(_VERSION.c.version_num)).scalar()
    return found


def _written_by(connection: Connection) -> str:
    """Return the version of the Headway that opened the database last."""
    try:
        return connection.execute(select(META.c.value).where(META.c.key == WRITTEN_BY)).scalar() or "unknown"
    except SQLAlchemyError:
        return "unknown"
