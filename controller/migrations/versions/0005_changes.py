"""Who has changed what, when, from where: rows that are appended, and never altered."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_SQLITE = """
    CREATE TRIGGER changes_appended_only BEFORE UPDATE ON changes
    BEGIN SELECT RAISE(ABORT, 'changes are appended only'); END
"""
_POSTGRESQL = (
    """
    CREATE OR REPLACE FUNCTION headway_changes_appended_only() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'changes are appended only'; END $$
    """,
    """
    CREATE TRIGGER changes_appended_only BEFORE UPDATE ON changes
    FOR EACH STATEMENT EXECUTE FUNCTION headway_changes_appended_only()
    """,
)


def upgrade() -> None:
    """Make the table; what was changed before is not in it."""
    op.create_table(
        "changes",
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at_us", sa.BigInteger, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("old", sa.Text),
        sa.Column("new", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
    )
    op.create_index("changes_at_us", "changes", ["at_us"])
    op.create_index("changes_who", "changes", ["who", "number"])
    op.create_index("changes_id", "changes", ["id", "number"])
    for statement in (_SQLITE,) if op.get_bind().dialect.name == "sqlite" else _POSTGRESQL:
        op.execute(statement)
