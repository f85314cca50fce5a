"""Reservations and announcements have an owner and a creator; what was made before is nobody's."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the columns. Those of announcements are in their text, and beside it where they are looked for."""
    for table in ("reservations", "ended_reservations"):
        for name in ("owner", "creator"):
            op.add_column(table, sa.Column(name, sa.Text, nullable=False, server_default=""))
    op.add_column("ended_announcements", sa.Column("owner", sa.Text, nullable=False, server_default=""))
    op.create_index("ended_announcements_owner", "ended_announcements", ["owner", "sequence"])
