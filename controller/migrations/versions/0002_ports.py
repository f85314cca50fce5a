"""A reservation between two hosts may be for the connections of a port alone; those of before are for all."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the ports."""
    for name in ("dest_port", "local_port"):
        op.add_column("reservations", sa.Column(name, sa.BigInteger, nullable=False, server_default="0"))
