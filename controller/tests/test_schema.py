"""Which schemas are known, and what a new database has, without Alembic: that it would make the same."""

import subprocess
import sys
from pathlib import Path

from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, inspect, text

from controller import migrations
from controller.database.schema import known_schemas, migrate


def test_the_schemas_that_are_known_are_those_that_alembic_finds():
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    scripts = ScriptDirectory.from_config(config)
    assert known_schemas() == (scripts.get_current_head(), {one.revision for one in scripts.walk_revisions()})


def made(*schemas: str) -> tuple[object, ...]:
    """What a database has that was brought to these schemas, one after the other, and then to the newest."""
    with create_engine("sqlite://").begin() as connection:
        for schema in (*schemas, ""):
            migrate(connection, "sqlite://", to=schema)
        return _tables(connection), _indexes_and_triggers(connection)


def _tables(connection: Connection) -> object:
    """Columns by table; a default is only for the rows that there were before a column."""
    found = inspect(connection)
    return {
        name: (
            {(c["name"], str(c["type"]), c["nullable"]) for c in found.get_columns(name)},
            found.get_pk_constraint(name),
        )
        for name in found.get_table_names()
    }


def _indexes_and_triggers(connection: Connection) -> object:
    rows = connection.execute(text("SELECT type, name, sql FROM sqlite_master WHERE type <> 'table'"))
    return {(kind, name): sql and " ".join(sql.split()) for kind, name, sql in rows}


def test_a_new_database_has_what_an_old_one_gets_by_its_steps():
    assert made() == made("0001")


NEW = """
import sys
from controller.database import Database
new = Database("sqlite://")
new.open()
new.close()
print("alembic" in sys.modules)
"""


def test_a_new_database_is_made_without_alembic():
    shown = subprocess.run([sys.executable, "-c", NEW], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines()[-1] == "False"
