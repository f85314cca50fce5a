"""The database: saves wait in a queue, one thread writes all that waits in one transaction, then all of them are told.

Another thread watches the first: a database that hangs fails what waits for it.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from controller.database.backends import backend
from controller.database.clock import SavedTime
from controller.database.errors import DatabaseError, DatabaseFailed, DatabaseTaken
from controller.database.follower import DatabaseFollower
from controller.database.history import EndedKind
from controller.database.questions import Questions
from controller.database.reader import DatabaseReader
from controller.database.reasons import why_of
from controller.database.rows import Changes, SavedRows, merged
from controller.database.session import DatabaseSession

T = TypeVar("T")
log = structlog.get_logger()

SAVE_WITHIN_S = 1.5  # a client is told within 2 s that nothing is certain
CLOSE_WITHIN_S = 5.0  # a database that hangs does not keep the process from ending
_NOT_OPEN = "it is not open"
STANDS_BY = "another controller leads, and this one stands by"


@dataclass(frozen=True, slots=True)
class _Save:
    """Changes that wait, since when (``time.monotonic``), and who is to be told."""

    changes: Changes
    future: Future[None]
    since_s: float


class Database(Questions):
    """What outlives the process.

    After a failure, what is in the database may be less than what the caller believes, or more: a commit whose answer
    was lost may have been carried out. So every save is refused until :meth:`load` has been called, and the caller goes
    on from what that returns. A save that takes too long has failed in the same way, and ``load`` waits until it is
    known what became of it: we have one connection, and whoever connects again takes the lock that the last one held.

    Callers may hold a lock of their own in :meth:`save` and :meth:`load`, and take it in what they hang on the futures:
    these are completed in the writer's thread, which holds none then. Not so in :meth:`close`, which waits for them.

    Args:
        url: ``sqlite:////path``, ``sqlite://`` (in memory, for tests) or ``postgresql://...``. PostgreSQL is to be
            reached directly: behind a pooler of transactions nobody is alone.
        save_within_s: what a save may take; ``SAVE_WITHIN_S`` if nothing is said.

    Raises:
        UrlNotUsable: the URL names no database that we can use.
    """

    def __init__(self, url: str, save_within_s: float | None = None) -> None:
        self._session, self._url = DatabaseSession(url), url
        self._follower = DatabaseFollower(url, self._warm_anew)
        self.url = self._session.shown
        self._using = threading.Lock()  # the database; never held while futures are completed
        self._reader = DatabaseReader(self.url, self._using)
        self._follows = DatabaseReader(self.url, threading.Lock())  # while we stand by: it holds up no open()
        guarded = threading.RLock()  # what follows; taken last
        self._changed = threading.Condition(guarded)  # for the writer
        self._begun = threading.Condition(guarded)  # for who watches it: something waits, and nothing did before
        self._save_within_s = SAVE_WITHIN_S if save_within_s is None else save_within_s
        self._waiting: list[_Save] = []
        self._writing: list[_Save] = []
        self._lost_since_s: float | None = None  # since when what was refused has waited, until it is loaded
        self._answers: list[tuple[Future[None], str]] = []  # what to tell whom: why it failed, or "" if it did not
        self._why = _NOT_OPEN  # saves are refused; "" if they are not
        self._closing = False
        self._stands_by = False  # we only read
        self._writer: threading.Thread | None = None

    def try_out(self) -> None:
        """Find out whether the database could be opened now; nothing is changed.

        Raises:
            DatabaseBusy: another controller has it.
            DatabaseFailed: it cannot be reached, or not be written.
        """
        tried = backend(self._url)
        try:
            tried.try_out()
        except DatabaseError:
            raise
        except Exception as error:
            raise DatabaseFailed(self.url, why_of(error)) from error
        finally:
            tried.release()

    def open_to_read(self) -> None:
        """Connect only to read, beside the controller that leads; until :meth:`open` every save is refused.

        Raises:
            DatabaseFailed: it cannot be reached.
        """
        with self._using:
            try:
                self._follower.open()
                self._session.warm(is_made=self._follower.is_made, is_newest=self._follower.is_newest)
            except Exception as error:
                raise DatabaseFailed(self.url, why_of(error)) from error
        self._stands_by, self._why = True, STANDS_BY
        self._begin()

    def open(self, claimed: int = 0) -> None:
        """Connect, be alone with the database, bring its schema up to date, and be ready to save. Once only.

        Args:
            claimed: the term under which we lead a pair, by its row: who had the database is thrown out.

        Raises:
            DatabaseBusy: another controller has the database.
            DatabaseTaken: another one leads the pair.
            DatabaseNewer: a newer Headway has written it.
            DatabaseFailed: it cannot be opened.
        """
        with self._using:
            try:
                self._session.open(claimed)
            except Exception as error:
                self._session.close()
                if isinstance(error, DatabaseError):
                    raise
                raise DatabaseFailed(self.url, why_of(error)) from error
            with self._changed:
                self._why, self._stands_by = "", False
        threading.Thread(target=self._follower.close, name="database follower", daemon=True).start()  # it may be asked
        self._begin()

    def _warm_anew(self) -> None:
        """Have another session ready for :meth:`open`: the old one was lost with the follower's, or may have been."""
        with self._using, contextlib.suppress(Exception):  # then open() connects
            if self._stands_by:
                self._session.warm(is_made=self._follower.is_made, is_newest=self._follower.is_newest)

    def _begin(self) -> None:
        """Have the threads at work, if they are not: who stands by needs not wait for their start when it leads."""
        if self._writer is None:
            self._writer = threading.Thread(target=self._run, name="database", daemon=True)
            self._writer.start()
            threading.Thread(target=self._watch, name="database watch", daemon=True).start()

    @property
    def term(self) -> int:
        """The term under which we lead; 0 before ``open``."""
        return self._session.term

    @property
    def saves(self) -> int:
        """The number of the last transaction that a leader of a pair has written, we included; known after ``open``."""
        return self._session.saves

    @property
    def time_before(self) -> SavedTime | None:
        """The calendar's time as the controller before us has written it down last; known after ``open``."""
        return self._session.time_before

    @property
    def unsaved_us(self) -> int:
        """Age of the oldest save that the database has not confirmed, failed ones included; 0 if there is none."""
        with self._changed:
            since_s = self._lost_since_s or self._oldest_s()
        return 0 if since_s is None else round((time.monotonic() - since_s) * 1e6)

    def time(self) -> SavedTime | None:
        """Return the calendar's time as an earlier controller has written it down; None if none has. After ``open``.

        Raises:
            DatabaseFailed: it cannot be read.
        """
        with self._using:
            try:
                return (self._follower if self._stands_by else self._session).time()
            except Exception as error:
                raise DatabaseFailed(self.url, why_of(error)) from error

    def forget(self, kind: EndedKind, before_us: int, limit: int) -> int:
        """Forget what has ended before a time, Unix time; return how many they were, at most ``limit``.

        Raises:
            DatabaseFailed: nothing was forgotten, or it is not certain.
        """
        return self._read(lambda: self._session.forget(kind, before_us, limit), self._reader)

    def forget_changes(self, before_us: int, limit: int) -> int:
        """Forget the oldest changes, from before a time; return how many they were, at most ``limit``.

        Raises:
            DatabaseFailed: nothing was forgotten, or it is not certain.
        """
        return self._read(lambda: self._session.forget_changes(before_us, limit), self._reader)

    def asked(self, question: Callable[[Connection], T]) -> T:
        """See :meth:`Questions.asked`."""
        if self._stands_by:
            return self._read(lambda: self._follower.ask(question), self._follows)
        return self._read(lambda: self._session.ask(question), self._reader)

    def _read(self, ask: Callable[[], T], reader: DatabaseReader) -> T:
        """Return what is asked of the database, if it answers in time.

        Raises:
            DatabaseFailed: it cannot be read, or has not answered in time; then it is not asked again until it has.
        """
        try:
            return reader.answer(ask)
        except DatabaseFailed:
            raise
        except Exception as error:
            if isinstance(error, SQLAlchemyError | OSError) and reader is self._reader:  # who follows loses nothing
                self._refuse(why_of(error))  # the connection may be dead: who connects again is who loads
            raise DatabaseFailed(self.url, why_of(error)) from error

    def load(self) -> SavedRows:
        """Return what has not ended, with every save made before; after a failure, saves are accepted again.

        Raises:
            DatabaseFailed: it cannot be read; saves are refused until it can.
            DatabaseTaken: another controller has had the database since; saves are refused for good.
        """
        if self._stands_by:
            return self._follower.load()
        with self._using:
            self._flush()
            with self._changed:
                why, stopped = self._why, self._closing or self._writer is None
            if stopped:
                raise DatabaseFailed(self.url, why or "it is being closed")
            try:
                if why:
                    self._session.open()
                    self._session.prove()
                saved = self._session.read()
            except Exception as error:
                self._refuse(why_of(error))
                if isinstance(error, DatabaseTaken):
                    raise
                raise DatabaseFailed(self.url, why_of(error)) from error
            with self._changed:
                self._why = self._why if self._closing else ""
                self._lost_since_s = None
        if why:
            log.info("store.recovered", database=self.url, reservations=len(saved.reservations))
        return saved

    def save(self, changes: Changes) -> Future[None]:
        """Return what is done once the changes outlive a crash of the machine, and everything saved before them.

        It fails with DatabaseFailed if they could not be written. It cannot be cancelled: it may be written already.
        """
        future: Future[None] = Future()
        future.set_running_or_notify_cancel()
        with self._changed:
            why = self._why
            if not why:
                if self._oldest_s() is None:
                    self._begun.notify()
                self._waiting.append(_Save(changes, future, time.monotonic()))
                self._changed.notify()
        if why:
            future.set_exception(DatabaseFailed(self.url, why))
        return future

    def finish(self) -> None:
        """Write what waits, and refuse saves from then on."""
        with self._changed:
            self._closing = True
            self._changed.notify()
            self._begun.notify()
        if self._writer is not None:
            self._writer.join(CLOSE_WITHIN_S)

    def close(self) -> None:
        """Write what waits, and let the database go; safe to call twice."""
        self.finish()
        is_ours = self._using.acquire(timeout=CLOSE_WITHIN_S)
        if is_ours:
            try:
                self._session.close()
            finally:
                self._using.release()
        if not self._follower.close(CLOSE_WITHIN_S) or not is_ours:
            log.error("store.abandoned", database=self.url, why="it hangs; the connection ends with the process")

    def _run(self) -> None:
        """Be the writer, until all is written after :meth:`close`."""
        try:
            while self._work_to_do():
                with self._using:
                    self._flush()
                self._answer()
        except Exception as error:  # the top of a thread: those who wait for it must not wait for ever
            self._stop(f"its writer has stopped: {why_of(error)}")
            log.critical("store.stopped", database=self.url, why=why_of(error), exc_info=True)

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
            taken = self._writing = self._waiting
            self._waiting = []
        error = self._written([save.changes for save in taken])
        with self._changed:
            given_up = self._writing is not taken
            self._writing = []
            if error is None and not given_up:
                self._answers += [(save.future, "") for save in taken]
                self._changed.notify()
        if given_up:
            log.warning("store.late", database=self.url, saves=len(taken), why="" if error is None else why_of(error))
        elif error is not None:
            self._refuse(why_of(error), taken)
            unforeseen = None if isinstance(error, SQLAlchemyError) else error
            log.error("store.failed", database=self.url, why=why_of(error), saves=len(taken), exc_info=unforeseen)

    def _watch(self) -> None:
        """Fail what has waited for too long, until the end."""
        while True:
            with self._changed:
                self._begun.wait_for(lambda: self._oldest_s() is not None or self._closing)
                oldest_s = self._oldest_s()
                if oldest_s is None:
                    return
                left_s = oldest_s + self._save_within_s - time.monotonic()
                if left_s > 0:
                    self._begun.wait(left_s)
                    continue
                taken, self._writing = self._writing, []
                self._refuse(f"it has not answered for {self._save_within_s:g} s", taken)
            log.error("store.silent", database=self.url)
            self._answer()

    def _oldest_s(self) -> float | None:
        """Return since when the oldest save waits; the caller holds ``_changed``."""
        return min((save.since_s for save in (*self._writing[:1], *self._waiting[:1])), default=None)

    def _written(self, many: list[Changes]) -> Exception | None:
        """Write changes as one; return what was in the way, if anything."""
        try:
            batch = merged(many)
            if batch:
                self._session.write(batch)
        except Exception as error:  # noqa: BLE001 - whatever it is: nobody may believe that these are written
            return error
        return None

    def _refuse(self, why: str, taken: Sequence[_Save] = ()) -> None:
        """Fail what was taken and what has come since, and every save to come."""
        with self._changed:
            lost = (*taken, *self._waiting)
            if self._lost_since_s is None:
                self._lost_since_s = lost[0].since_s if lost else time.monotonic()
            self._answers += [(save.future, why) for save in lost]
            self._waiting = []
            self._why = why
            self._changed.notify()

    def _answer(self) -> None:
        """Tell those who wait, each with an exception of its own: it collects the traceback of who raises it."""
        with self._changed:
            answers, self._answers = self._answers, []
        for future, why in answers:
            if why:
                future.set_exception(DatabaseFailed(self.url, why))
            else:
                future.set_result(None)

    def _stop(self, why: str) -> None:
        """Refuse everything from now on."""
        with self._changed:
            self._closing = True
        self._refuse(why)
        self._answer()
