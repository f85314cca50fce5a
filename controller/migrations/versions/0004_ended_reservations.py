"""Reservations that have ended have a table of their own; what has ended is numbered in the order it was saved."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the table, move what has ended into it, and number that."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("SET LOCAL statement_timeout = 0")  # a million rows take their time
    op.create_table(
        "ended_reservations",
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
        sa.Column("dest_port", sa.BigInteger, nullable=False),
        sa.Column("local_port", sa.BigInteger, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
    )
    op.execute(  # the columns are in the same order
        "INSERT INTO ended_reservations SELECT reservations.*, row_number() OVER (ORDER BY changed_us, sequence)"
        " FROM reservations WHERE state IN ('released', 'expired', 'failed')"
    )
    op.execute("DELETE FROM reservations WHERE state IN ('released', 'expired', 'failed')")
    op.add_column("ended_announcements", sa.Column("number", sa.BigInteger, nullable=False, server_default="0"))
    op.execute(
        "UPDATE ended_announcements SET number = sequence + (SELECT coalesce(max(number), 0) FROM ended_reservations)"
    )
    op.create_index("ended_reservations_sequence", "ended_reservations", ["sequence"])
    op.create_index("ended_reservations_state", "ended_reservations", ["state", "sequence"])
    op.create_index("ended_reservations_changed_us", "ended_reservations", ["changed_us"])
    op.create_index("ended_reservations_number", "ended_reservations", ["number"])
    op.create_index("ended_announcements_number", "ended_announcements", ["number"])
    with_key = sa.text("key <> ''")
    for table in ("ended_reservations", "ended_announcements"):
        op.create_index(f"{table}_key", table, ["key"], sqlite_where=with_key, postgresql_where=with_key)
