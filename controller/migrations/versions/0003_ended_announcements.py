"""What became of announcements, by their number."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "ended_announcements",
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("ended_us", sa.BigInteger, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("ended_announcements_id", "ended_announcements", ["id"])
    op.create_index("ended_announcements_ended_us", "ended_announcements", ["ended_us"])
