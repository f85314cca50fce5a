"""A database that is ours alone, over one connection. Not for several threads at once."""

import contextlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import NamedTuple, TypeVar

import structlog
from sqlalchemy import Connection, Table, Transaction, bindparam, delete, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from controller.database.backends import backend
from controller.database.chain import BEGINNING, ChainEnd, ChainRow, chained
from controller.database.changed import remembered
from controller.database.changes import CUT, END_COLUMNS, LAST, change_row, cut, end_row, forgettable, next_end
from controller.database.clock import SavedTime, time_of, time_text
from controller.database.ended import ended_row
from controller.database.errors import DatabaseTaken
from controller.database.history import HIGHEST, HIGHEST_COLUMNS, EndedKind, forget, highest, highest_of
from controller.database.leader_row import SAVES
from controller.database.live import DELAYS, DELAYS_TEXT, MAINTENANCE, all_rows, maintenance_text, sold_by_row
from controller.database.many import Many
from controller.database.past import past_with_key
from controller.database.rows import Row, RowBatch, SavedPoint, SavedRows, purchase_row, reservation_row
from controller.database.schema import WRITTEN_BY, known_schemas, migrate, revision
from controller.database.tables import (
    ANNOUNCEMENTS,
    CHANGES,
    ENDED_ANNOUNCEMENTS,
    ENDED_RESERVATIONS,
    META,
    PURCHASES,
    RESERVATIONS,
)
from controller.database.terms import TERM, next_term
from controller.database.text import storable
from controller.database.written import first_number, names_row
from controller.plan.lifecycle import ENDED
from topology import __version__

T = TypeVar("T")
log = structlog.get_logger()

TIME, PROOF = "time", "proof"
_FOUND = select(  # at once: who takes over waits a millisecond for each question
    *(select(META.c.value).where(META.c.key == key).scalar_subquery() for key in (WRITTEN_BY, TERM, SAVES, TIME)),
    *HIGHEST_COLUMNS,
    *END_COLUMNS,
)
_FENCE = select(META.c.value).where(META.c.key == TERM).with_for_update(read=True)
PROOF_BYTES = 1 << 15  # some pages: more than is left in one that others share


class _Found(NamedTuple):
    """What a database has as it is opened: four values of META, the highest number that was used, the chain's end."""

    written_by: str | None
    term: str | None
    saves: str | None
    time: str | None
    number: int
    end: ChainEnd


def _found(connection: Connection) -> _Found:
    written_by, term, saves, saved_time, *numbers = connection.execute(_FOUND).one()
    highest_values, end_values = numbers[: len(HIGHEST_COLUMNS)], numbers[len(HIGHEST_COLUMNS) :]
    number, end = highest_of(highest_values).number, next_end(connection, end_values)
    return _Found(written_by, term, saves, saved_time, number, end)


class DatabaseSession:
    """Reads all, writes batches.

    Its methods raise what SQLAlchemy, the driver and the operating system raise; :class:`~controller.database.Database`
    makes one error of them.

    Raises:
        UrlNotUsable: the URL names no database that we can use.
    """

    def __init__(self, url: str) -> None:
        self._backend = backend(url)
        self.shown = self._backend.shown
        self._connection: Connection | None = None
        self.is_made = False  # whether there was a schema when it was opened to read
        self.is_older = False  # whether that was one of an older Headway, of which we read nothing
        self.term = 0  # under which we lead; 0 before we do
        self._claimed = 0  # the term of the leader's row, if we lead a pair; every transaction is fenced by it then
        self.saves = 0  # the number of the last transaction that a leader of a pair has written
        self._next_save = 0  # the number of our next one
        self.time_before: SavedTime | None = None  # as it was written down last when this was opened
        self._name = ""  # of this connection: which of them are ours
        self._number = 0  # of what has ended last
        self._chain = BEGINNING  # where it ends
        tables = (RESERVATIONS, ENDED_RESERVATIONS, ANNOUNCEMENTS, ENDED_ANNOUNCEMENTS, PURCHASES, META)
        self._upserts = {table: Many(self._backend.upsert(table)) for table in tables}
        self._append_all = Many(insert(CHANGES))

    def open_to_read(self) -> bool:
        """Connect, or connect again, only to read, whoever has the database; return whether its schema is our own."""
        self._disconnect()
        self._connection = self._backend.snapshot()
        with self._connection.begin():
            found = revision(self._connection)
        newest, known = known_schemas()
        self.is_made, self.is_older = found is not None, found in known - {newest}
        return found == newest

    def warm(self, *, is_made: bool, is_newest: bool) -> None:
        """Have a session ready for :meth:`open`, and every question and save that follows prepared there."""
        self.is_made = is_made
        known_schemas()  # so that open() need not read them
        self._backend.warm(self._ask_first if is_newest else None)

    def open(self, claimed: int = 0) -> None:
        """Connect, or connect again; be alone; bring the schema up to date; lead under a new term, or still ours.

        Args:
            claimed: the term under which we have taken the leader's row of a pair, at the first time.

        Raises:
            DatabaseBusy: another controller has it.
            DatabaseTaken: another controller has had it since.
            DatabaseNewer: a newer Headway has written it.
        """
        self._disconnect()
        self._claimed = claimed or self._claimed
        self._name = secrets.token_hex(8)
        connection = self._connection = self._backend.connect(self._claimed)
        if self._claimed and not self.term and self._is_newest(connection):
            with self._backend.each_alone(connection):  # nobody else writes: we have the lock
                self._begin(connection)
            return
        with connection.begin():
            change = migrate(connection, self.shown, is_made=self.is_made and not self.term)
            self._begin(connection)
        if change is not None:
            log.info("store.migrated", database=self.shown, from_schema=change.found, to_schema=change.made)

    def _is_newest(self, connection: Connection) -> bool:
        """Return whether a database has our schema; False too where it is to be looked for first."""
        with self._backend.each_alone(connection):
            return self.is_made and revision(connection, is_made=True) == known_schemas()[0]

    def _begin(self, connection: Connection) -> None:
        """Lead, and go on from where the numbers of what is kept end."""
        found = _found(connection)
        self._lead(found.term)
        if found.written_by is None:
            connection.execute(insert(META), {"key": WRITTEN_BY, "value": __version__})
        elif found.written_by != __version__:
            connection.execute(update(META).where(META.c.key == WRITTEN_BY).values(value=__version__))
        self.saves = int(found.saves or 0)
        self._next_save = first_number(self.saves)
        self.time_before = None if found.time is None else time_of(found.time)
        self._number = max(self._number, found.number)
        self._chain = found.end

    def _lead(self, kept: str | None) -> None:
        """Begin a term, if this is our first connection; otherwise make sure that ours is the last one still.

        One that is there already is another's, also if it is the one that we took the row under: a crash of the server
        has taken that back, and given it to somebody else.

        Raises:
            DatabaseTaken: it is not.
        """
        found = None if kept is None else int(kept)
        if self.term and found != self.term:
            raise DatabaseTaken(self.shown, self.term, found or 0)
        if self._claimed and not self.term and (found or 0) >= self._claimed:
            raise DatabaseTaken(self.shown, self._claimed, found or 0)
        if not self.term:
            term = self._claimed or next_term(found, time.time_ns() // 1_000_000)
            self._put(META, [{"key": TERM, "value": str(term)}])
            self.term = term

    def close(self) -> None:
        """Let it go, with the lock."""
        self._disconnect()
        self._backend.release()

    def read(self) -> SavedRows:
        """Return what has not ended."""
        with self._connected().begin() as transaction:
            return all_rows(transaction.connection)

    def ask(self, question: Callable[[Connection], T]) -> T:
        """Return the answer to a question, which changes nothing."""
        with self._connected().begin() as transaction:
            return question(transaction.connection)

    def forget(self, kind: EndedKind, before_us: int, limit: int) -> int:
        """Forget what has ended before a time; return how many they were, at most ``limit``."""
        with self._writing() as transaction:
            used = highest(transaction.connection)
            count = forget(transaction.connection, kind, before_us, limit)
            if count:  # the highest numbers may be among what is gone
                self._put(META, [{"key": HIGHEST, "value": json.dumps(asdict(used))}])
            return count

    def forget_changes(self, before_us: int, limit: int) -> int:
        """Forget the oldest changes, as long as they are from before a time; return how many they were.

        Where they ended is written down, so that the rest can be verified.
        """
        with self._writing() as transaction:
            end = forgettable(transaction.connection, before_us, limit)
            if end is None:
                return 0
            self._put(META, [end_row(CUT, end)])
            return cut(transaction.connection, end)

    def prove(self) -> None:
        """Write something that needs room, so that nobody takes a database for whole that is read-only or full."""
        with self._writing():
            self._put(META, [{"key": PROOF, "value": os.urandom(PROOF_BYTES).hex()}])

    def time(self) -> SavedTime | None:
        """Return the calendar's time as it was written down last; None if it never was."""
        with self._connected().begin() as transaction:
            text = transaction.connection.execute(select(META.c.value).where(META.c.key == TIME)).scalar()
        return None if text is None else time_of(text)

    def write(self, batch: RowBatch) -> None:
        """Write a batch in one transaction; once this returns, it outlives a crash of the machine."""
        bodies = {name: body for name, body in batch.announcements.items() if body is not None}
        bought = [purchase for purchase in batch.purchases.values() if purchase is not None]
        changes = chained(self._chain, (row for record in batch.records for row in remembered(record)))
        with self._writing(batch):
            over = [r for r in batch.reservations.values() if r.state in ENDED]
            self._forget(RESERVATIONS, [r.reservation_id for r in over])
            self._put(RESERVATIONS, [reservation_row(r) for r in batch.reservations.values() if r.state not in ENDED])
            self._put(ENDED_RESERVATIONS, self._numbered([reservation_row(r) for r in over]))
            self._put(ANNOUNCEMENTS, [{"id": storable(n), "body": storable(b)} for n, b in bodies.items()])
            self._put(PURCHASES, [purchase_row(purchase) for purchase in bought])
            self._put(META, [{"key": TIME, "value": time_text(time)} for time in batch.times])
            self._put(META, [{"key": MAINTENANCE, "value": maintenance_text(all_)} for all_ in batch.maintenance])
            self._put(META, [{"key": DELAYS, "value": DELAYS_TEXT.dump_json(all_).decode()} for all_ in batch.delays])
            self._put(META, [sold_by_row(circuit, seller) for circuit, seller in batch.sold_by.items()])
            self._append(changes)
            self._put(ENDED_ANNOUNCEMENTS, self._numbered([ended_row(one) for one in batch.ended.values()]))
            self._forget(ANNOUNCEMENTS, [name for name in batch.announcements if name not in bodies])
            self._forget(PURCHASES, [name for name, purchase in batch.purchases.items() if purchase is None])
        self._chain = changes[-1].end if changes else self._chain

    @contextlib.contextmanager
    def _writing(self, batch: RowBatch | None = None) -> Iterator[Transaction]:
        """Hold a transaction that changes something; of a pair's leader, one that is refused after a later term.

        Its lock on the row of the term is shared, and whoever leads next waits for it: what is written is written
        before that one reads, or not at all.

        Raises:
            DatabaseTaken: another one leads; nothing is changed.
        """
        with self._connected().begin() as transaction:
            if self._claimed:
                found = transaction.connection.execute(_FENCE).scalar()
                if found != str(self._claimed):
                    raise DatabaseTaken(self.shown, self._claimed, int(found or 0))
            yield transaction
            if self._claimed:
                at = SavedPoint(self._next_save, self._name)
                names = names_row(at, RowBatch() if batch is None else batch)
                self._put(META, [{"key": SAVES, "value": str(at.saves)}, names])
                self.saves, self._next_save = at.saves, at.saves + 1

    def _append(self, changes: Sequence[ChainRow]) -> None:
        if changes:
            self._append_all.carry_out(self._connected(), [change_row(row) for row in changes])
            self._put(META, [end_row(LAST, changes[-1].end)])

    def _numbered(self, ended: Sequence[Row]) -> list[Row]:
        """Return rows with the numbers that come next."""
        first = self._number + 1
        self._number += len(ended)
        return [{**row, "number": number} for number, row in enumerate(ended, first)]

    def _put(self, table: Table, rows: Sequence[Row]) -> None:
        self._upserts[table].carry_out(self._connected(), rows)

    def _forget(self, table: Table, names: Sequence[str]) -> None:
        if names:
            (key,) = table.primary_key
            gone = delete(table).where(key == bindparam("gone"))  # not IN: the number of its values is limited
            self._connected().execute(gone, [{"gone": storable(name)} for name in names])

    def _ask_first(self, connection: Connection) -> None:
        """Ask what :meth:`open`, :meth:`read` and the first request after them will, a row of each table.

        Both SQLAlchemy and the session's server prepare each question at its first time. The fence's lock ends here.
        """
        with connection.begin():
            revision(connection, is_made=True)
            _found(connection)
            connection.execute(_FENCE)
            highest(connection)
            past_with_key(connection, "")
            for table in (RESERVATIONS, ANNOUNCEMENTS, PURCHASES):
                connection.execute(select(table).limit(1))
        for table, upsert in self._upserts.items():
            upsert.prepare(connection, table.columns.keys())
        self._append_all.prepare(connection, CHANGES.columns.keys())

    def _connected(self) -> Connection:
        if self._connection is None:
            raise SQLAlchemyError("not connected")
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._backend.drop(connection)
