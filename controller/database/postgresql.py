"""PostgreSQL: one connection, with an advisory lock."""

import contextlib
import os
import socket
from collections.abc import Callable, Iterator

from sqlalchemy import URL, Connection, Table, create_engine, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import NullPool

from controller.database.backend import BUSY_MS, Upsert, shown_url, upsert
from controller.database.errors import DatabaseBusy, DatabaseTaken
from controller.database.leader_row import LEADER_TABLE

_GONE_S = 6  # a peer whose machine is silent for this long is dead
_STATEMENT_MS = 30_000  # what a statement may take that does not wait for others: to read a million rows
_LOCK_PATIENCE = "2s"  # PostgreSQL takes a moment to notice that the last controller is dead
LOCK = (0x4845_4144, 0x5741_5921)  # "HEAD", "WAY!": names our advisory lock within the database
_LIMITS = {"busy_ms": str(BUSY_MS), "statement_ms": str(_STATEMENT_MS), "probe_s": str(_GONE_S // 3)}
_NO_LOCK = "55P03"  # lock_not_available, PostgreSQL's appendix A

_HOLDER = text("""
    SELECT coalesce(nullif(a.application_name, ''), 'an unnamed client') || ', server process ' || l.pid
    FROM pg_locks l JOIN pg_stat_activity a USING (pid) JOIN pg_database d ON d.oid = l.database
    WHERE l.locktype = 'advisory' AND l.granted AND l.classid = :first AND l.objid = :second
    AND d.datname = current_database()
""")
_PATIENCE = text(f"SELECT set_config('lock_timeout', '{_LOCK_PATIENCE}', true)")
_LEADS = text(f"""
    WITH led AS MATERIALIZED (
        SELECT term, set_config('lock_timeout', '{_LOCK_PATIENCE}', true), (
            SELECT count(pg_terminate_backend(l.pid)) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
            WHERE l.locktype = 'advisory' AND l.granted AND l.classid = :first AND l.objid = :second
            AND d.datname = current_database() AND l.pid <> pg_backend_pid() AND term = :term
        ) FROM {LEADER_TABLE}
    ) SELECT term, CASE term WHEN :term THEN pg_advisory_lock(:first, :second) IS NULL END FROM led
""")  # noqa: S608 (names of ours); what is materialized is there, whole, before the lock is waited for
_NO_TERM = -1  # under which nobody leads, and nobody is thrown out
_SESSION = text("""
    SELECT set_config('lock_timeout', :busy_ms, false), set_config('statement_timeout', :statement_ms, false),
    set_config('tcp_keepalives_idle', :probe_s, false),
    set_config('tcp_keepalives_interval', :probe_s, false), set_config('tcp_keepalives_count', '3', false),
    CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END
""")


class Postgresql:
    """A database of a server. The lock belongs to the one connection that we have, so whoever writes has the lock."""

    def __init__(self, url: URL) -> None:
        defaults = {
            "application_name": f"headway, process {os.getpid()} on {socket.gethostname()}"[:63],
            "connect_timeout": "3",
            "keepalives_idle": str(_GONE_S // 3),
            "keepalives_interval": str(_GONE_S // 3),
            "keepalives_count": "3",
            "tcp_user_timeout": str(_GONE_S * 1000),
        }
        self._warm: Connection | None = None
        self.shown = shown_url(url)
        self._engine = create_engine(
            url.set(drivername="postgresql+psycopg", query=defaults | dict(url.query)),
            poolclass=NullPool,
            hide_parameters=True,
        )

    def connect(self, term: int = 0) -> Connection:
        """See :meth:`Backend.connect`."""
        warm, self._warm = self._warm, None
        if warm is not None:
            try:
                return self._alone(warm, term)
            except DBAPIError as error:
                if not error.connection_invalidated:
                    raise
        return self._alone(self._session(), term)

    def _alone(self, connection: Connection, term: int) -> Connection:
        """Return a connection once it has the lock; one that does not get it is dropped."""
        try:
            self._take_lock(connection, term)
        except BaseException:
            self.drop(connection)
            raise
        return connection

    def warm(self, reads: Callable[[Connection], object] | None = None) -> None:
        """See :meth:`Backend.warm`. It is a session without the lock."""
        old, self._warm = self._warm, None
        if old is not None:
            self.drop(old)
        connection = self._session()
        try:
            if reads is not None:
                with connection.begin():
                    connection.execute(_LEADS, {"first": LOCK[0], "second": LOCK[1], "term": _NO_TERM})
                reads(connection)
        except BaseException:
            self.drop(connection)
            raise
        self._warm = connection

    def _session(self) -> Connection:
        connection = self._engine.connect()
        try:
            with connection.begin():
                connection.execute(_SESSION, _LIMITS)
        except BaseException:
            self.drop(connection)
            raise
        return connection

    def snapshot(self) -> Connection:
        """See :meth:`Backend.snapshot`."""
        return self._engine.connect().execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

    def try_out(self) -> None:
        """See :meth:`Backend.try_out`."""
        self.drop(self.connect())

    @contextlib.contextmanager
    def each_alone(self, connection: Connection) -> Iterator[None]:
        """See :meth:`Backend.each_alone`."""
        connection.execution_options(isolation_level="AUTOCOMMIT")
        with connection.begin():
            yield
        connection.execution_options(isolation_level=self._engine.dialect.default_isolation_level)

    def drop(self, connection: Connection) -> None:
        """See :meth:`Backend.drop`."""
        connection.invalidate()
        connection.close()

    def release(self) -> None:
        """See :meth:`Backend.release`. The lock went with the connection."""
        connection, self._warm = self._warm, None
        if connection is not None:
            self.drop(connection)
        self._engine.dispose()

    def upsert(self, table: Table) -> Upsert:
        """See :meth:`Backend.upsert`."""
        return upsert(postgresql.insert, table)

    def _take_lock(self, connection: Connection, term: int) -> None:
        """Take the lock for as long as the connection lasts; it is not the transaction's.

        Who leads a pair ends the session that has it: its controller led before us, and may hang in the midst of
        writing. Only who leads by the row does that. A predecessor that wakes up must not throw out its successor.
        That session's end is what lets us have the lock: ``pg_terminate_backend`` would look for it each 100 ms.

        Raises:
            DatabaseBusy: another one has it.
            DatabaseTaken: another one leads the pair.
        """
        key = {"first": LOCK[0], "second": LOCK[1]}
        try:
            with self.each_alone(connection) if term else connection.begin():
                if not term:
                    connection.execute(_PATIENCE)
                    connection.execute(text("SELECT pg_advisory_lock(:first, :second)"), key)
                elif (found := connection.execute(_LEADS, {**key, "term": term}).scalar()) != term:
                    raise DatabaseTaken(self.shown, term, found or 0)
        except OperationalError as error:
            if getattr(error.orig, "sqlstate", None) != _NO_LOCK:
                raise
            with connection.begin():
                holder = connection.execute(_HOLDER, key).scalar()
            raise DatabaseBusy(self.shown, holder or "another client") from None
