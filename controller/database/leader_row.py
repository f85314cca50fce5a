"""The row by which one of several controllers leads: in the same PostgreSQL, over a connection of its own.

It stands beside the schema, not in it: a controller must find it before it may bring the schema up to date. Nothing of
it need outlive a crash of the server, so its commits do not wait for the disk: a renewal that is lost costs at worst a
change of leaders, and a taking that is lost was of a term under which nobody has led yet, for that is on the disk then
(:meth:`controller.database.Database.open`). All its times are the server's.
"""

import time
from dataclasses import dataclass
from enum import Enum
from typing import Any

from sqlalchemy import Connection, TextClause, create_engine, make_url, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from controller.database.backend import shown_url
from controller.database.errors import DatabaseFailed
from controller.database.tables import META
from controller.database.terms import TERM, TERM_STEP

LEADER_TABLE = "headway_leader"
SAVES = "saves"  # key in META: the number of the last transaction that one who led a pair has written
CHANNEL = "headway_leader"  # on which those that do not lead hear what becomes of the row
_IS_TAKEN = "taken"  # what is said there; of a row that was left, its term
_NAMED = "headway pair, "  # sessions on this row
_STANDS_BY = "headway standby, "  # those of them that take it as soon as it is over: known to each other by that
_BEATS_MS = 1_000  # who stands by looks at the row many times in this; one that has not hangs
_MAKING = 0x4845_4144_5041_4952  # "HEADPAIR": held by who makes the table; two that make one at once would fail
_LEFT_AT = "'-infinity'"  # until then a row holds that was left; one that died has a time in it
_SILENT_MS = 1_000  # a server whose machine is silent for so long is dead

_MADE = text(f"""
    DO $$ BEGIN
    PERFORM pg_advisory_xact_lock({_MAKING});
    CREATE TABLE IF NOT EXISTS {LEADER_TABLE} (only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
        term bigint NOT NULL, holder text NOT NULL, address text NOT NULL,
        until timestamptz NOT NULL, since timestamptz NOT NULL);
    INSERT INTO {LEADER_TABLE} (term, holder, address, until, since)
        VALUES (0, '', '', {_LEFT_AT}, clock_timestamp()) ON CONFLICT DO NOTHING;
    END $$
""")  # noqa: S608 (names of ours)
_THERE = text(f"SELECT to_regclass('{LEADER_TABLE}') IS NOT NULL, to_regclass('{META.name}') IS NOT NULL")
_SETTINGS = text("""
    SELECT set_config('synchronous_commit', 'off', false), set_config('lock_timeout', :lock_ms, false),
    set_config('statement_timeout', :lock_ms, false)
""")
_ROW = "term, holder, address, (extract(epoch FROM since) * 1000000)::bigint AS since_us"


def _of_meta(key: str) -> str:
    return f"(SELECT value::bigint FROM {META.name} WHERE key = '{key}')"  # noqa: S608


def _seen(saves: str) -> TextClause:
    over = "until <= clock_timestamp() AS is_over"
    return text(f"SELECT {_ROW}, {over}, {saves} AS saves FROM {LEADER_TABLE}")  # noqa: S608


def _taken(kept_term: str, saves: str) -> TextClause:
    """Return what takes the row under the next term (:func:`controller.database.terms.next_term`)."""
    return text(f"""
        WITH taken AS (
            UPDATE {LEADER_TABLE} SET term = greatest(:clock_ms, term + {TERM_STEP}, {kept_term} + {TERM_STEP}),
            holder = :holder, address = :address,
            until = clock_timestamp() + :ttl_us * interval '1 microsecond', since = clock_timestamp()
            WHERE until <= clock_timestamp() AND :holder <> '' RETURNING {_ROW}
        ) SELECT *, {saves} AS saves, (SELECT until = {_LEFT_AT} FROM {LEADER_TABLE}) AS was_left,
            pg_notify('{CHANNEL}', '{_IS_TAKEN}') FROM taken
    """)  # noqa: S608 (the inner one reads the row as it was before)


_NOT_KNOWN = "NULL::bigint"
_SEEN, _SEEN_WITH_META = _seen(_NOT_KNOWN), _seen(_of_meta(SAVES))
_TAKEN, _TAKEN_WITH_META = (
    _taken("NULL", _NOT_KNOWN),
    _taken(_of_meta(TERM), _of_meta(SAVES)),
)  # greatest() passes over NULL
_IS_OURS = "term = :term AND holder = :holder AND address = :address"  # a crash may give a term of the row out twice
_RENEWED = text(f"""
    UPDATE {LEADER_TABLE} SET until = clock_timestamp() + :ttl_us * interval '1 microsecond'
    WHERE {_IS_OURS} RETURNING term
""")  # noqa: S608
_OTHERS = text(f"""
    SELECT application_name FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE :like AND pid <> pg_backend_pid()
    AND state_change > clock_timestamp() - {_BEATS_MS} * interval '1 millisecond' ORDER BY 1
""")  # noqa: S608
_LEFT = text(f"""
    WITH left_row AS (UPDATE {LEADER_TABLE} SET until = {_LEFT_AT} WHERE {_IS_OURS} RETURNING term)
    SELECT pg_notify('{CHANNEL}', term::text) FROM left_row
""")  # noqa: S608
_LISTENING = text(f"LISTEN {CHANNEL}")
_CALLED = text("SELECT set_config('application_name', :name, false)")


class RowNews(Enum):
    """What one that does not lead hears of the row without looking at it."""

    NOTHING = 0
    LEFT = 1
    """Who led decides nothing more, and has all written that it has answered."""
    TAKEN = 2


@dataclass(frozen=True, slots=True)
class SeenLeader:
    """What the row says.

    Attributes:
        term: of who leads, or led last; 0 if nobody ever has.
        holder: who that is, for people.
        address: where it answers requests; empty if nobody ever has led.
        since_us: since when it leads, Unix time by the server's clock.
        is_over: whether the row may be taken.
        saves: the number of the last transaction that has changed what is kept; None if it is not known.
        was_left: of one that was taken: whether who led before had left it, or nobody ever had led.
    """

    term: int
    holder: str
    address: str
    since_us: int
    is_over: bool
    saves: int | None = None
    was_left: bool = True


class LeaderRow:
    """The row; for one thread.

    Args:
        url: of the database.
        holder: who we are, for people.
        address: where we answer requests.

    Attributes:
        stands_by: whether we take the row as soon as it is over, for others to know.
    """

    def __init__(self, url: str, holder: str, address: str) -> None:
        self._holder, self._address = holder, address
        self.stands_by = False
        self._is_said = False  # that we stand by, in the name of the session
        parsed = make_url(url)
        self._shown = shown_url(parsed)
        wanted = {
            "application_name": f"{_NAMED}{holder}"[:63],
            "connect_timeout": "2",
            "keepalives_idle": "1",
            "keepalives_interval": "1",
            "keepalives_count": "1",
            "tcp_user_timeout": str(_SILENT_MS),
        }
        self._engine = create_engine(
            parsed.set(drivername="postgresql+psycopg", query={**wanted, **parsed.query}),
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
            hide_parameters=True,
        )
        self._connection: Connection | None = None
        self._has_meta = False
        self._is_prepared = False  # the session's server, for what a hand-over asks

    def look(self) -> SeenLeader:
        """Return what the row says.

        Raises:
            DatabaseFailed: the database does not answer.
        """
        row = self._asked(_SEEN_WITH_META if self._there_is_meta() else _SEEN)
        if self._has_meta and not self._is_prepared:
            self._prepare()
        return SeenLeader(row.term, row.holder, row.address, row.since_us, row.is_over, row.saves)

    def take(self, ttl_us: int, clock_ms: int) -> SeenLeader | None:
        """Take the row if it is over; return what it says then, None if it is not.

        Args:
            ttl_us: how long it holds.
            clock_ms: our wall clock, Unix time; terms are no less.

        Raises:
            DatabaseFailed: the database does not answer; we do not lead, though the row may be ours.
        """
        values = {"holder": self._holder, "address": self._address, "ttl_us": ttl_us, "clock_ms": clock_ms}
        row = self._asked(_TAKEN_WITH_META if self._there_is_meta() else _TAKEN, **values)
        if row is None:
            return None
        return SeenLeader(row.term, row.holder, row.address, row.since_us, False, row.saves, row.was_left)

    def renew(self, term: int, ttl_us: int) -> bool:
        """Let the row hold for so long from now; return False if another has taken it.

        Raises:
            DatabaseFailed: the database does not answer.
        """
        return self._asked(_RENEWED, **self._own(term), ttl_us=ttl_us) is not None

    def leave(self, term: int) -> None:
        """Let others take the row now, if it is ours; those that wait hear it.

        Raises:
            DatabaseFailed: the database does not answer.
        """
        self._asked(_LEFT, **self._own(term))

    def wait(self, timeout_s: float) -> RowNews:
        """Wait for a word on the row, at most so long; return what it was. Who leads may die without one.

        Raises:
            DatabaseFailed: the connection is broken.
        """
        if self._connection is None:
            time.sleep(timeout_s)
            return RowNews.NOTHING
        import psycopg  # the engine has loaded it; a controller that has SQLite never does

        driver: Any = self._connection.connection.driver_connection
        try:
            said = [one.payload for one in driver.notifies(timeout=timeout_s, stop_after=1)]
        except psycopg.Error as error:
            raise self._failed(error) from error
        if not said:
            return RowNews.NOTHING
        return RowNews.TAKEN if said[-1] == _IS_TAKEN else RowNews.LEFT

    def others(self) -> tuple[str, ...]:
        """Return who else stands by now and has looked at the row in the last second, for people.

        Raises:
            DatabaseFailed: the database does not answer.
        """
        try:
            rows = self._connected().execute(_OTHERS, {"like": f"{_STANDS_BY}%"}).scalars()
            return tuple(name.removeprefix(_STANDS_BY) for name in rows)
        except SQLAlchemyError as error:
            raise self._failed(error) from error

    def close(self) -> None:
        """Let the connection go; the row stays."""
        self._drop()
        self._engine.dispose()

    def _prepare(self) -> None:
        """Ask what a hand-over will, in the name of nobody: the first time takes a server's session twice as long."""
        nobody = {"term": -1, "holder": "", "address": "", "ttl_us": 0, "clock_ms": 0}
        self._is_prepared = True
        for statement in (_TAKEN_WITH_META, _RENEWED, _LEFT):
            self._asked(statement, **nobody)

    def _own(self, term: int) -> dict[str, object]:
        return {"term": term, "holder": self._holder, "address": self._address}

    def _there_is_meta(self) -> bool:
        self._has_meta = self._has_meta or bool(self._asked(_THERE)[1])
        return self._has_meta

    def _asked(self, statement: Any, **values: object) -> Any:
        """Return the first row of an answer; None if there is none."""
        try:
            answer = self._connected().execute(statement, values)
            return answer.first() if answer.returns_rows else None
        except SQLAlchemyError as error:
            raise self._failed(error) from error

    def _connected(self) -> Connection:
        if self._connection is None:
            connection = self._engine.connect()
            try:
                connection.execute(_SETTINGS, {"lock_ms": str(_SILENT_MS)})
                if not connection.execute(_THERE).one()[0]:
                    connection.execute(_MADE)
                connection.execute(_LISTENING)
            except BaseException:
                connection.invalidate()
                connection.close()
                raise
            self._connection, self._is_said, self._is_prepared = connection, False, False
        if self._is_said is not self.stands_by:
            named = _STANDS_BY if self.stands_by else _NAMED
            self._connection.execute(_CALLED, {"name": f"{named}{self._holder}"[:63]})
            self._is_said = self.stands_by
        return self._connection

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()

    def _failed(self, error: Exception) -> DatabaseFailed:
        """Return what happened; the next question connects anew."""
        self._drop()
        said = str(getattr(error, "orig", None) or error).strip().splitlines()
        return DatabaseFailed(self._shown, said[0] if said else type(error).__name__)
