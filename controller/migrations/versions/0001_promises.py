"""The first schema: reservations, announcements, purchases.

``meta`` stays as it is in every schema to come: an older Headway reads from it who wrote what it cannot read.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "reservations",
        sa.Column("reservation_id", sa.Text, primary_key=True),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("flow_class", sa.Text, nullable=False),
        sa.Column("a_end", sa.Text, nullable=False),
        sa.Column("z_end", sa.Text, nullable=False),
        sa.Column("rate_bps", sa.BigInteger, nullable=False),
        sa.Column("start_us", sa.BigInteger, nullable=False),
        sa.Column("end_us", sa.BigInteger, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("backup", sa.Text, nullable=False),
        sa.Column("constraints", sa.Text, nullable=False),
        sa.Column("hold_until_us", sa.BigInteger),
        sa.Column("created_us", sa.BigInteger, nullable=False),
        sa.Column("changed_us", sa.BigInteger, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("fingerprint", sa.Text, nullable=False),
    )
    with_key = sa.text("key <> ''")
    op.create_index(
        "reservations_key", "reservations", ["key"], unique=True, sqlite_where=with_key, postgresql_where=with_key
    )
    op.create_table(
        "announcements",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "purchases",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("circuit", sa.Text, nullable=False),
        sa.Column("start_us", sa.BigInteger, nullable=False),
        sa.Column("end_us", sa.BigInteger, nullable=False),
        sa.Column("rate_bps", sa.BigInteger, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
    )
    op.create_table(
        "meta",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
