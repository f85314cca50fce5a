"""Which schemas are known, without Alembic, and that these are the ones that it would make."""

from pathlib import Path

from alembic.config import Config
from alembic.script import ScriptDirectory

from controller import migrations
from controller.database.schema import known_schemas


def test_the_schemas_that_are_known_are_those_that_alembic_finds():
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    scripts = ScriptDirectory.from_config(config)
    assert known_schemas() == (scripts.get_current_head(), {one.revision for one in scripts.walk_revisions()})
