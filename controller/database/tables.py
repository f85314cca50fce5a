"""The tables, as a new database has them. One of an older Headway is brought there by ``controller/migrations``."""

from typing import Any

from sqlalchemy import DDL, BigInteger, Column, Index, MetaData, Table, Text, event, text

METADATA = MetaData()


def _reservation_columns() -> tuple[Column[Any], ...]:
    return (
        Column("reservation_id", Text, primary_key=True),
        Column("sequence", BigInteger, nullable=False),
        Column("version", BigInteger, nullable=False),
        Column("state", Text, nullable=False),
        Column("flow_class", Text, nullable=False),
        Column("a_end", Text, nullable=False),
        Column("z_end", Text, nullable=False),
        Column("rate_bps", BigInteger, nullable=False),
        Column("start_us", BigInteger, nullable=False),
        Column("end_us", BigInteger, nullable=False),
        Column("path", Text, nullable=False),
        Column("backup", Text, nullable=False),
        Column("constraints", Text, nullable=False),
        Column("hold_until_us", BigInteger),
        Column("created_us", BigInteger, nullable=False),
        Column("changed_us", BigInteger, nullable=False),
        Column("description", Text, nullable=False),
        Column("reason", Text, nullable=False),
        Column("key", Text, nullable=False),
        Column("fingerprint", Text, nullable=False),
        Column("dest_port", BigInteger, nullable=False),
        Column("local_port", BigInteger, nullable=False),
        Column("owner", Text, nullable=False),
        Column("creator", Text, nullable=False),
    )


_WITH_KEY = text("key <> ''")

RESERVATIONS = Table(
    "reservations",
    METADATA,
    *_reservation_columns(),
    Index("reservations_key", "key", unique=True, sqlite_where=_WITH_KEY, postgresql_where=_WITH_KEY),
)
"""Those that have not ended."""

ENDED_RESERVATIONS = Table(
    "ended_reservations",
    METADATA,
    *_reservation_columns(),
    Column("number", BigInteger, nullable=False),
    Index("ended_reservations_sequence", "sequence"),
    Index("ended_reservations_state", "state", "sequence"),
    Index("ended_reservations_changed_us", "changed_us"),
    Index("ended_reservations_number", "number"),
    Index("ended_reservations_key", "key", sqlite_where=_WITH_KEY, postgresql_where=_WITH_KEY),
)
"""``number`` is the place among all that has ended, in the order in which it was saved; it is never used again."""

ANNOUNCEMENTS = Table(
    "announcements",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("body", Text, nullable=False),
)

ENDED_ANNOUNCEMENTS = Table(
    "ended_announcements",
    METADATA,
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("ended_us", BigInteger, nullable=False),
    Column("key", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("owner", Text, nullable=False),
    Index("ended_announcements_owner", "owner", "sequence"),
    Index("ended_announcements_id", "id"),
    Index("ended_announcements_ended_us", "ended_us"),
    Index("ended_announcements_number", "number"),
    Index("ended_announcements_key", "key", sqlite_where=_WITH_KEY, postgresql_where=_WITH_KEY),
)

PURCHASES = Table(
    "purchases",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("circuit", Text, nullable=False),
    Column("start_us", BigInteger, nullable=False),
    Column("end_us", BigInteger, nullable=False),
    Column("rate_bps", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
)

META = Table(
    "meta",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

CHANGES = Table(
    "changes",
    METADATA,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("at_us", BigInteger, nullable=False),
    Column("who", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("request_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("old", Text),
    Column("new", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Index("changes_at_us", "at_us"),
    Index("changes_who", "who", "number"),
    Index("changes_id", "id", "number"),
)
"""Who has changed what, when, from where; appended only. What ``hash`` is: :mod:`controller.database.chain`."""

_APPENDED_ONLY = {
    "sqlite": (
        """
        CREATE TRIGGER changes_appended_only BEFORE UPDATE ON changes
        BEGIN SELECT RAISE(ABORT, 'changes are appended only'); END
        """,
    ),
    "postgresql": (
        """
        CREATE OR REPLACE FUNCTION headway_changes_appended_only() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'changes are appended only'; END $$
        """,
        """
        CREATE TRIGGER changes_appended_only BEFORE UPDATE ON changes
        FOR EACH STATEMENT EXECUTE FUNCTION headway_changes_appended_only()
        """,
    ),
}
for _dialect, _statements in _APPENDED_ONLY.items():
    for _statement in _statements:
        _made = DDL(_statement)  # type: ignore[no-untyped-call]  # SQLAlchemy's own
        event.listen(CHANGES, "after_create", _made.execute_if(dialect=_dialect))
