"""SQLite: a file and a lock file beside it, or memory."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

from sqlalchemy import URL, Connection, Table, create_engine, event
from sqlalchemy.dialects import sqlite
from sqlalchemy.pool import NullPool, StaticPool

from controller.database.backend import BUSY_MS, Upsert, upsert
from controller.database.errors import DatabaseBusy, UrlNotUsable


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
        return upsert(sqlite.insert, table)

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


def _prepare_sqlite(connection: Any, _record: object) -> None:
    """Make a new connection sure: a commit returns once it is on the disk."""
    for pragma in ("journal_mode = WAL", "synchronous = FULL", f"busy_timeout = {BUSY_MS}", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    """Begin what we are told to begin: the driver would wait for the first change of a row, and leave out a table's."""
    connection.exec_driver_sql("BEGIN IMMEDIATE")
