"""The store: saves wait in a queue, one thread writes all that waits in one transaction, then all of them are told."""

import threading
from concurrent.futures import Future
from pathlib import Path

import structlog
from sqlalchemy.exc import SQLAlchemyError, StatementError

from controller.plan.ended import EndedAnnouncement
from controller.store.clock import SavedTime
from controller.store.database import Database
from controller.store.ended import EndedQuery
from controller.store.errors import StoreBusy, StoreError, StoreFailed, StoreNewer
from controller.store.rows import Changes, StoredRows, merged

log = structlog.get_logger()

_NOT_OPEN = "it is not open"


class Store:
    """What outlives the process.

    After a failure, what is in the database may be less than what the caller believes, or more: a commit whose answer
    was lost may have been carried out. So every save is refused until :meth:`load` has been called, and the caller goes
    on from what that returns.

    Callers may hold a lock of their own in :meth:`save` and :meth:`load`, and take it in what they hang on the futures:
    these are completed in the writer's thread, which holds none then. Not so in :meth:`close`, which waits for them.

    Args:
        url: ``sqlite:////path``, ``sqlite://`` (in memory, for tests) or ``postgresql://...``. PostgreSQL is to be
            reached directly: behind a pooler of transactions nobody is alone.

    Raises:
        UrlNotUsable: the URL names no database that we can use.
    """

    def __init__(self, url: str) -> None:
        self._database = Database(url)
        self.url = self._database.shown
        self._using = threading.Lock()  # the database; never held while futures are completed
        self._changed = threading.Condition()  # what follows; taken last
        self._waiting: list[tuple[Changes, Future[None]]] = []
        self._answers: list[tuple[Future[None], str]] = []  # what to tell whom: why it failed, or "" if it did not
        self._why = _NOT_OPEN  # saves are refused; "" if they are not
        self._closing = False
        self._writer: threading.Thread | None = None

    def open(self) -> None:
        """Connect, be alone with the database, bring its schema up to date, and be ready to save. Once only.

        Raises:
            StoreBusy: another controller has the database.
            StoreNewer: a newer Headway has written it.
            StoreFailed: it cannot be opened.
        """
        with self._using:
            try:
                self._database.open()
            except Exception as error:
                self._database.close()
                if isinstance(error, StoreError):
                    raise
                raise StoreFailed(self.url, _why(error)) from error
            with self._changed:
                self._why = ""
        self._writer = threading.Thread(target=self._run, name="store", daemon=True)
        self._writer.start()

    def time(self) -> SavedTime | None:
        """Return the calendar's time as an earlier controller has written it down; None if none has. After ``open``.

        Raises:
            StoreFailed: it cannot be read.
        """
        with self._using:
            try:
                return self._database.time()
            except Exception as error:
                raise StoreFailed(self.url, _why(error)) from error

    def ended(self, query: EndedQuery) -> tuple[EndedAnnouncement, ...]:
        """Return announcements that have ended, as they were saved.

        Raises:
            StoreFailed: they cannot be read.
        """
        with self._using:
            try:
                return self._database.ended(query)
            except Exception as error:
                raise StoreFailed(self.url, _why(error)) from error

    def load(self) -> StoredRows:
        """Return all that is kept, with every save made before; after a failure, saves are accepted again.

        Raises:
            StoreFailed: it cannot be read; saves are refused until it can.
        """
        with self._using:
            self._flush()
            with self._changed:
                why, stopped = self._why, self._closing or self._writer is None
            if stopped:
                raise StoreFailed(self.url, why or "it is being closed")
            try:
                if why:
                    self._database.open()
                saved = self._database.read()
            except Exception as error:
                self._refuse(_why(error))
                raise StoreFailed(self.url, _why(error)) from error
            with self._changed:
                self._why = self._why if self._closing else ""
        if why:
            log.info("store.recovered", database=self.url, reservations=len(saved.reservations))
        return saved

    def save(self, changes: Changes) -> Future[None]:
        """Return what is done once the changes outlive a crash of the machine, and everything saved before them.

        It fails with StoreFailed if they could not be written. It cannot be cancelled: it may be written already.
        """
        future: Future[None] = Future()
        future.set_running_or_notify_cancel()
        with self._changed:
            why = self._why
            if not why:
                self._waiting.append((changes, future))
                self._changed.notify()
        if why:
            future.set_exception(StoreFailed(self.url, why))
        return future

    def close(self) -> None:
        """Write what waits, and let the database go; safe to call twice. Saves are refused from then on."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._writer is not None:
            self._writer.join()
        with self._using:
            self._database.close()

    def _run(self) -> None:
        """Be the writer, until all is written after :meth:`close`."""
        try:
            while self._work_to_do():
                with self._using:
                    self._flush()
                self._answer()
        except Exception as error:  # the top of a thread: those who wait for it must not wait for ever
            self._stop(f"its writer has stopped: {_why(error)}")
            log.critical("store.stopped", database=self.url, why=_why(error), exc_info=True)

    def _work_to_do(self) -> bool:
        """Wait for something to do; return False if there is nothing left before the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._answers or self._closing)
            if self._waiting or self._answers:
                return True
            self._why = self._why or "it is closed"
            return False

    def _flush(self) -> None:
        """Write all that waits; leave the answers to the writer. The caller holds ``_using``."""
        with self._changed:
            taken, self._waiting = self._waiting, []
        error = self._written([changes for changes, _ in taken])
        if error is None:
            with self._changed:
                self._answers += [(future, "") for _, future in taken]
                self._changed.notify()
        else:
            self._refuse(_why(error), taken)
            unforeseen = None if isinstance(error, SQLAlchemyError) else error
            log.error("store.failed", database=self.url, why=_why(error), saves=len(taken), exc_info=unforeseen)

    def _written(self, many: list[Changes]) -> Exception | None:
        """Write changes as one; return what was in the way, if anything."""
        try:
            batch = merged(many)
            if batch:
                self._database.write(batch)
        except Exception as error:  # noqa: BLE001 - whatever it is: nobody may believe that these are written
            return error
        return None

    def _refuse(self, why: str, taken: list[tuple[Changes, Future[None]]] | None = None) -> None:
        """Fail what was taken and what has come since, and every save to come."""
        with self._changed:
            self._answers += [(future, why) for _, future in (*(taken or ()), *self._waiting)]
            self._waiting = []
            self._why = why
            self._changed.notify()

    def _answer(self) -> None:
        """Tell those who wait, each with an exception of its own: it collects the traceback of who raises it."""
        with self._changed:
            answers, self._answers = self._answers, []
        for future, why in answers:
            if why:
                future.set_exception(StoreFailed(self.url, why))
            else:
                future.set_result(None)

    def _stop(self, why: str) -> None:
        """Refuse everything from now on."""
        with self._changed:
            self._closing = True
        self._refuse(why)
        self._answer()


def _why(error: Exception) -> str:
    """Return what happened in one line: the database's own words, without our statements and their values."""
    match error:
        case StoreBusy():
            return f"meanwhile it is in use by {error.holder}"
        case StoreNewer():
            return f"meanwhile Headway {error.written_by} has written it (schema {error.found})"
        case StatementError(orig=BaseException() as cause):
            text = str(cause)
        case FileNotFoundError():
            text = f"there is no folder {Path(error.filename).parent}: make it first"
        case OSError():
            text = str(error)
        case _:
            text = f"{type(error).__name__}: {error}"
    return "; ".join(line.strip() for line in text.splitlines() if line.strip()) or type(error).__name__
