"""The schema of a database: brought to what this Headway knows, or refused if it is beyond that."""

from pathlib import Path

import structlog
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, select
from sqlalchemy.exc import SQLAlchemyError

from controller.store.errors import StoreNewer
from controller.store.tables import META
from topology import __version__

log = structlog.get_logger()

VERSION_TABLE = "headway_version"  # not Alembic's usual name: another application's may be in the same database
WRITTEN_BY = "written_by"

_SCRIPTS = Path(__file__).parents[1] / "migrations"


def migrate(connection: Connection, shown: str) -> None:
    """Bring the database to the newest schema, in one transaction.

    Args:
        connection: to a database that nobody else changes meanwhile.
        shown: its URL without password.

    Raises:
        StoreNewer: its schema is not known here.
    """
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.attributes.update(connection=connection, version_table=VERSION_TABLE)
    scripts = ScriptDirectory.from_config(config)
    newest = scripts.get_current_head() or ""
    with connection.begin():
        found = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()
        if found == newest:
            return
        if found is not None and found not in {script.revision for script in scripts.walk_revisions()}:
            raise StoreNewer(shown, found, newest, _written_by(connection), __version__)
        command.upgrade(config, "head")
    log.info("store.migrated", database=shown, from_schema=found, to_schema=newest)


def _written_by(connection: Connection) -> str:
    """Return the version of the Headway that opened the database last."""
    try:
        return connection.execute(select(META.c.value).where(META.c.key == WRITTEN_BY)).scalar() or "unknown"
    except SQLAlchemyError:
        return "unknown"
