"""SQLite and PostgreSQL: how a connection is made, and how a controller is alone with the database."""

import contextlib
import errno
import fcntl
import functools
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, Protocol

from sqlalchemy import URL, Connection, Table, create_engine, event, make_url, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import NullPool, StaticPool

from controller.database.errors import DatabaseBusy, DatabaseFailed, DatabaseTaken, UrlNotUsable
from controller.database.leader_row import LEADER_TABLE
from controller.database.text import one_line

Upsert = sqlite.Insert | postgresql.Insert

_BUSY_MS = 1_000  # somebody else's transaction holds up ours no longer than this
_GONE_S = 6  # a peer whose machine is silent for this long is dead
_STATEMENT_MS = 30_000  # what a statement may take that does not wait for others: to read a million rows
_LOCK_PATIENCE = "2s"  # PostgreSQL takes a moment to notice that the last controller is dead
LOCK = (0x4845_4144, 0x5741_5921)  # "HEAD", "WAY!": names our advisory lock within the database
_LIMITS = {"busy_ms": str(_BUSY_MS), "statement_ms": str(_STATEMENT_MS), "probe_s": str(_GONE_S // 3)}
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


class Backend(Protocol):
    """A kind of database.

    Attributes:
        shown: its URL without password.
    """

    shown: str

    def connect(self, term: int = 0) -> Connection:
        """Return a connection to a database that no other controller has.

        Args:
            term: if given, we lead a pair under it: who has the database is thrown out.

        Raises:
            DatabaseBusy: another one has it.
            DatabaseTaken: another one leads the pair.
        """

    def warm(self, reads: Callable[[Connection], object] | None = None) -> None:
        """Have most of a connection ready, so that :meth:`connect` takes no time; a new one, if it is called again.

        Args:
            reads: reads what will be read over it first, so that server and driver have looked up all they need for it.
        """

    def snapshot(self) -> Connection:
        """Return a connection that only reads, as everything was at one moment, whoever has the database."""

    def try_out(self) -> None:
        """Find out whether it could be connected to now; nothing is changed.

        Raises:
            DatabaseBusy: another controller has it.
            OSError: its folder or its files cannot be written.
        """

    def each_alone(self, connection: Connection) -> AbstractContextManager[object]:
        """Let each statement be a transaction of its own: a server is asked neither for its begin nor for its end."""

    def drop(self, connection: Connection) -> None:
        """Close a connection, which may be broken."""

    def release(self) -> None:
        """Let others have the database."""

    def upsert(self, table: Table) -> Upsert:
        """Return the statement that inserts a row, or replaces the one with its key."""


@contextlib.contextmanager
def connected(database: Backend, connect: Callable[[], Connection]) -> Iterator[Connection]:
    """Give a connection to a database that is used this once; however that ends, both are let go.

    Args:
        database: what is used.
        connect: its :meth:`Backend.connect` or :meth:`Backend.snapshot`.

    Raises:
        DatabaseFailed: it cannot be reached, read or written.
    """
    try:
        connection = connect()
        try:
            yield connection
        finally:
            database.drop(connection)
    except (SQLAlchemyError, OSError) as error:
        raise DatabaseFailed(database.shown, one_line(getattr(error, "orig", None) or error)) from error
    finally:
        database.release()


def backend(url: str) -> "Sqlite | Postgresql":
    """Return what a URL names.

    Raises:
        UrlNotUsable: nothing that we can use.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise UrlNotUsable("it is no URL") from None
    if parsed.drivername in {"sqlite", "sqlite+pysqlite"}:
        return Sqlite(parsed)
    if parsed.drivername in {"postgresql", "postgresql+psycopg"}:
        return Postgresql(parsed)
    raise UrlNotUsable(f'there is no support for "{parsed.drivername}"')


def _private(path: str, flags: int) -> int:
    """Open a file; one that is made is our user's, and may be read by its group."""
    return os.open(path, flags, 0o640)


def _keep_from_others(path: Path) -> None:
    """Take a file of ours from all other users; SQLite gives what it makes beside it the same mode."""
    for each in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm", ".lock"))):
        with contextlib.suppress(FileNotFoundError, PermissionError):  # none, or not ours: then its owner decides
            mode = each.stat().st_mode
            if mode & 0o007:
                each.chmod(mode & 0o770)


class Sqlite:
    """A file, and a lock file beside it; or memory, which nobody else can reach.

    Raises:
        UrlNotUsable: options or SQLite's own URIs, which could name a file in ways that our lock does not see.
    """

    def __init__(self, url: URL) -> None:
        if url.query or url.host or (url.database or "").startswith("file:"):
            raise UrlNotUsable("an SQLite database is named by its path alone")
        in_memory = url.database in {None, "", ":memory:"}
        self._path = None if in_memory else Path(url.database or "").resolve()
        self.shown = "sqlite://" if self._path is None else f"sqlite:///{self._path}"
        self._lock: IO[str] | None = None
        # One connection at a time; a StaticPool keeps that to the memory, and the memory with it.
        self._engine = create_engine(
            URL.create("sqlite", database=None if self._path is None else str(self._path)),
            poolclass=StaticPool if self._path is None else NullPool,
            connect_args={"check_same_thread": False},
            hide_parameters=True,
        )
        event.listen(self._engine, "connect", _prepare_sqlite)
        event.listen(self._engine, "begin", _begin_sqlite)

    def connect(self, term: int = 0) -> Connection:
        """See :meth:`Backend.connect`. A pair has no file."""
        if term:
            raise UrlNotUsable("a pair of controllers needs PostgreSQL")
        if self._path is not None and self._lock is None:
            self._lock = self._locked(self._path.with_name(self._path.name + ".lock"))
            open(self._path, "ab", opener=_private).close()
            _keep_from_others(self._path)
        return self._engine.connect()

    def warm(self, reads: Callable[[Connection], object] | None = None) -> None:
        """See :meth:`Backend.warm`. A file is opened at once."""

    def snapshot(self) -> Connection:
        """See :meth:`Backend.snapshot`. With a log beside the file, who reads waits for nobody, nor is waited for."""
        if self._path is not None and not self._path.exists():
            raise FileNotFoundError(2, "there is no such file", str(self._path))
        url = URL.create("sqlite", database=None if self._path is None else str(self._path))
        reading = create_engine(url, poolclass=NullPool, hide_parameters=True)
        event.listen(reading, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
        return reading.connect()

    def try_out(self) -> None:
        """See :meth:`Backend.try_out`."""
        if self._path is None:
            return
        lock = self._path.with_name(self._path.name + ".lock")
        if not self._path.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(lock))
        for path in (self._path.parent, self._path, lock):
            if path.exists() and not os.access(path, os.W_OK):
                raise PermissionError(errno.EACCES, "cannot be written", str(path))
        if lock.exists():
            self._locked(lock).close()

    def each_alone(self, connection: Connection) -> AbstractContextManager[object]:
        """See :meth:`Backend.each_alone`. Here it is one, of all: a file is asked in no time."""
        return connection.begin()

    def drop(self, connection: Connection) -> None:
        """See :meth:`Backend.drop`."""
        if self._path is not None:
            connection.invalidate()
        connection.close()

    def release(self) -> None:
        """See :meth:`Backend.release`. The lock file stays: one that is removed could be locked twice."""
        self._engine.dispose()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def upsert(self, table: Table) -> Upsert:
        """See :meth:`Backend.upsert`."""
        return _upsert(sqlite.insert, table)

    def _locked(self, path: Path) -> IO[str]:
        """Return the lock file, locked; the kernel unlocks it when we die, however we do."""
        with contextlib.ExitStack() as undo:
            file = undo.enter_context(open(path, "a+", opener=_private))
            try:
                # flock, not lockf: that one would let a second database of this very process pass.
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                raise DatabaseBusy(self.shown, file.read().strip() or "another process") from None
            file.truncate(0)
            file.write(f"process {os.getpid()}\n")
            file.flush()
            undo.pop_all()
        return file


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
        where = {name: value for name, value in url.query.items() if name in {"host", "port", "dbname"}}
        shown = URL.create("postgresql", url.username, None, url.host, url.port, url.database, where)
        self.shown = shown.render_as_string()
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
        return _upsert(postgresql.insert, table)

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


@functools.cache
def _upsert(insert: Callable[[Table], Upsert], table: Table) -> Upsert:
    """Return what inserts a row, or makes of the columns of one that is there already what was to be inserted."""
    new = insert(table)
    replaced = {column.name: new.excluded[column.name] for column in table.columns if not column.primary_key}
    return new.on_conflict_do_update(index_elements=table.primary_key, set_=replaced)


def _prepare_sqlite(connection: Any, _record: object) -> None:
    """Make a new connection sure: a commit returns once it is on the disk."""
    for pragma in ("journal_mode = WAL", "synchronous = FULL", f"busy_timeout = {_BUSY_MS}", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    """Begin what we are told to begin: the driver would wait for the first change of a row, and leave out a table's."""
    connection.exec_driver_sql("BEGIN IMMEDIATE")
