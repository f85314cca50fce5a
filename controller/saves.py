"""What goes to the database, what is known to be there, and what becomes of the rest when it fails.

No method waits for it, except :meth:`Saves.recover`, :meth:`Saves.follow` and :meth:`Saves.read_anew`, which do so
without the lock.
"""

import contextlib
import gc
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

import structlog

from controller.asker import CONTROLLER, present_asker
from controller.bought import noted_purchase, purchase_row, with_bought
from controller.database import (
    STANDS_BY,
    Changes,
    Database,
    DatabaseFailed,
    Noted,
    PurchaseRow,
    RefusedWish,
    SavedPoint,
    SavedRows,
    SavedSince,
    SaveRecord,
    changed_since,
    ended_numbered,
    past_named,
)
from controller.database.announcements import announcement_of, announcement_text
from controller.database.text import without_paths
from controller.delay_watch import take_saved_delays
from controller.plan.announcements import Announcement
from controller.plan.ended import EndedAnnouncement
from controller.plan.kept_ledger import KeptLedger, LedgerPart
from controller.plan.maintenance import Maintenance
from controller.plan.purchases import Purchase
from controller.plan.reservations import Reservation
from controller.refusals import RefusalQuota
from controller.restored import left_bought, restored
from controller.state.guard import GuardedState
from controller.state.wished import Wished
from controller.told import tells_of_gone
from topology.uncollected import uncollected
from topology.units import shown_time

log = structlog.get_logger()

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Saved(Generic[T]):
    """An answer, and what is done once it outlives a crash (or raises DatabaseFailed)."""

    value: T
    saved: Future[None]
    is_repeated: bool = False  # it is the answer to an earlier request, of which this is a repetition


class Saves:
    """Between one state and one database."""

    def __init__(self, state: GuardedState, database: Database) -> None:
        self._state = state
        self._database = database
        self._refusals = RefusalQuota()
        self._read = SavedPoint()  # up to where the ledger has all that is saved, while another controller leads

    @property
    def unsaved_us(self) -> int:
        """Age of the oldest answer, or step of the clock, that waits to be saved or was not; 0 if none does."""
        return self._database.unsaved_us

    # Under the lock.

    def check(self) -> None:
        """Look whether anything can be saved now.

        Raises:
            DatabaseFailed: it cannot.
        """
        if why := self._refuses:
            raise DatabaseFailed(self._database.url, why)

    @property
    def _refuses(self) -> str:
        """Why nothing can be saved now; "" if it can."""
        return STANDS_BY if self._state.value.stands_by else self._state.reported.database_error

    def hand_over(self, *, decided: bool, tells: Sequence[Callable[[], None]] = ()) -> Future[None]:
        """Hand what has changed to the database; return what is done once that is saved, and the plan may follow it.

        Args:
            decided: whether by somebody's wish, not by the clock.
            tells: what publishes the events of it, called once it is saved; never, if it is not.
        """
        state = self._state
        ledger = state.wished.ledger
        part = ledger.changes(decided=decided)
        bodies = tuple((name, None if a is None else announcement_text(a)) for name, a in part.announcements.items())
        told: Future[None] = Future()
        told.set_running_or_notify_cancel()
        changes = Changes(
            reservations=tuple(part.reservations.values()),
            announcements=bodies,
            ended=tuple(part.ended.values()),
            record=self._record(part, decided=decided),
        )
        saved = self._database.save(changes)
        tells = *tells, *tells_of_gone(state.events, part.gone)
        saved.add_done_callback(partial(self._heard, ledger, part, tells, told))
        if state.is_behind_wishes() or state.due_us() < state.value.sleeping_until_us:
            state.changed.notify_all()  # for the clock
        return told

    def _record(self, part: LedgerPart, *, decided: bool) -> SaveRecord | None:
        """Return what is to be remembered of a part: who has asked for it, and what was before; None if for nothing."""
        if not (part.reservations or part.announcements or part.ended):
            return None
        before, announced = part.before, part.announcements_before
        kept: list[tuple[Announcement | None, Announcement]] = [
            (announced[name], known) for name, known in part.announcements.items() if known is not None
        ]
        return SaveRecord(
            present_asker() if decided else CONTROLLER,
            self._state.now_us(),
            tuple((before[name], known) for name, known in part.reservations.items()),
            tuple(kept),
            tuple(ended for number, ended in part.ended.items() if part.ended_before[number] is None),
        )

    def remember_refused(self, wish: RefusedWish) -> None:
        """Remember a wish that was refused, if its asker has not had too many lately. Nobody waits for that."""
        asker, now_us = present_asker(), self._state.now_us()
        unwritten = self._refusals.takes(asker.who, now_us)
        if unwritten is not None:
            refused = (replace(wish, unwritten=unwritten),)
            self._database.save(Changes(record=SaveRecord(asker, now_us, refused=refused)))

    def hand_over_clock(self, tells: Sequence[Callable[[], None]] = ()) -> Future[None]:
        """Hand over what the clock has done; it waits in the ledger while the database fails or another one leads."""
        why = self._refuses
        if not why:
            return self.hand_over(decided=False, tells=tells)
        waiting: Future[None] = Future()
        waiting.set_exception(DatabaseFailed(self._database.url, why))
        return waiting

    def save_purchase(self, circuit: str, purchase: Purchase) -> Future[None]:
        """Save what is bought of a provider, once more if it is saved so: who leads no more is refused.

        Raises:
            DatabaseFailed: nothing can be saved now; nothing has changed.
        """
        self.check()
        wished = self._state.wished
        known = wished.unsaved.get(purchase.name, wished.purchases[circuit].get(purchase.name))
        self._state.put(wished=wished.with_purchase(circuit, purchase))
        self._state.changed.notify_all()  # the plan follows what is up
        old = None if known is None else noted_purchase(circuit, known)
        new = noted_purchase(circuit, purchase)
        record = None if old == new else self._noting(Noted(f"purchase.{purchase.state}", purchase.name, old, new))
        seller = self._state.site.sold_by.get(circuit)
        sold_by = {} if seller is None else {circuit: seller}
        saved = self._database.save(
            Changes(purchases=(purchase_row(circuit, purchase),), sold_by=sold_by, record=record)
        )
        saved.add_done_callback(partial(self._heard_of_purchase, wished.ledger, circuit, purchase))
        return saved

    def forget_purchase(self, circuit: str, name: str) -> Future[None]:
        """Forget what was bought.

        Raises:
            DatabaseFailed: nothing can be saved now; nothing has changed.
        """
        self.check()
        known = self._state.wished.purchases[circuit].get(name)
        self._state.put(wished=self._state.wished.without_purchase(circuit, name))
        old = None if known is None else noted_purchase(circuit, known)
        record = self._noting(Noted("purchase.forgotten", name, old, None))
        return self._database.save(Changes(purchases_gone=(name,), record=record))

    def save_maintenance(self, planned: tuple[Maintenance, ...], noted: Noted) -> Future[None]:
        """Save all maintenance that is planned, by the wish of who asks now."""
        record = replace(self._noting(noted), asker=present_asker())
        return self._database.save(Changes(maintenance=planned, record=record))

    def save_delays(self) -> None:
        """Save what was measured of circuits since; nobody waits for that, and what is lost is measured again."""
        reported = self._state.reported
        if not reported.delays.is_saved and not reported.database_error and not self._state.value.stands_by:
            self._database.save(Changes(delays=tuple(reported.delays.measured.values())))
            self._state.put(reported=replace(reported, delays=replace(reported.delays, is_saved=True)))

    def note(self, noted: Noted) -> Future[None]:
        """Remember a change that the controller has seen, and that is kept elsewhere; else the log has it. No lock."""
        saved = self._database.save(Changes(record=self._noting(noted)))
        saved.add_done_callback(partial(_say_if_lost, noted))
        return saved

    def _noting(self, noted: Noted) -> SaveRecord:
        return SaveRecord(CONTROLLER, self._state.now_us(), noted=(noted,))

    def _heard(
        self,
        ledger: KeptLedger,
        part: LedgerPart,
        tells: tuple[Callable[[], None], ...],
        told: Future[None],
        saved: Future[None],
    ) -> None:
        """Take in what became of a part, and only then tell who waits for it. By a thread of the database."""
        failure = saved.exception()
        try:
            with self._state.changed:
                if ledger is not self._state.wished.ledger:
                    pass  # it was read anew since: what became of this part is known from there
                elif isinstance(failure, DatabaseFailed):
                    self._lost(failure.why)
                else:
                    ledger.saved(part)
                    for tell in tells:
                        tell()
                    if self._state.is_behind_wishes():
                        self._state.changed.notify_all()
        finally:
            if failure is None:
                told.set_result(None)
            else:
                told.set_exception(failure)

    def _heard_of_purchase(self, ledger: KeptLedger, circuit: str, purchase: Purchase, saved: Future[None]) -> None:
        """Take in what became of a purchase that was to be saved. By a thread of the database."""
        failure = saved.exception()
        with self._state.changed:
            if failure is None:
                self._state.put(wished=self._state.wished.with_saved(circuit, purchase))
            elif isinstance(failure, DatabaseFailed) and ledger is self._state.wished.ledger:
                self._lost(failure.why)  # nobody else may be about to save anything

    def _lost(self, why: str) -> None:
        """Take back what was decided and not saved; decide nothing until it is known what of it is in the database.

        Once all threads are to end the database is closed by intent: who asks too late is refused, and no more is said.
        """
        state = self._state
        if not (state.reported.database_error or state.stopping):
            state.events.publish("store.failed", level="error", error=f"{self._database.url}: {why}")
        state.put(reported=replace(state.reported, database_error=without_paths(why)))
        state.wished.ledger.withdraw()
        state.changed.notify_all()
        state.halted.notify_all()

    # Not under the lock.

    def recover(self) -> None:
        """Go on from what is in the database, if the database has failed and can be read and written again.

        Raises:
            DatabaseError: it cannot.
        """
        with self._state.changed:
            if not self._state.reported.database_error:
                return
        self.read_anew()
        self._state.events.publish("store.recovered")

    def follow(self) -> int:
        """Take in what another controller has saved since the last time: what has changed, if that is known, or all.

        Returns the number of the last transaction that a leader of a pair had written by then.

        Raises:
            DatabaseError: it cannot be read.
        """
        since, self._read = self._read, SavedPoint()  # all is read again if this is not done
        saved = self._since(since)
        if saved is None or not self._takes(saved):
            saves = self.read_anew()
            gc.freeze()  # it lives long, as what is read at the start
            return saves
        self._read = saved.until
        return saved.until.saves

    def _since(self, point: SavedPoint) -> SavedSince | None:
        """Return what has changed; None if all is to be read, also by a new connection in place of a broken one."""
        if not point.session:
            return None
        with contextlib.suppress(DatabaseFailed):
            return self._database.asked(partial(changed_since, since=point))
        return None

    def _takes(self, saved: SavedSince) -> bool:
        """Return whether the ledger has taken in what has changed."""
        state = self._state
        announcements = {
            name: None if body is None else announcement_of(body) for name, body in saved.announcements.items()
        }
        with state.changed:
            take_saved_delays(state, saved.delays)
            ledger = state.wished.ledger
            if not ledger.follow(saved.reservations, announcements, saved.ended, state.now_us()):
                return False
            self._go_on(self._with_bought(state.wished, saved.purchases))
        return True

    def read_anew(self) -> int:
        """Take the ledger from the database, and from memory what the clock has done to it meanwhile.

        Returns the number of the last transaction that a leader of a pair had written by then.

        Raises:
            DatabaseError: it cannot be read.
        """
        with uncollected():
            rows = self._database.load()
            self._restore(rows)
        self._read = rows.until
        return rows.until.saves

    def _restore(self, rows: SavedRows) -> None:
        state = self._state
        with state.changed:
            take_saved_delays(state, rows.delays)
        announcements = tuple(announcement_of(body) for body in rows.announcements.values())
        past, ended = self._ended_unheard(rows, announcements)
        ledger = restored(state.site, rows, announcements, state.now_us(), past)
        for one in left_bought(state.site, rows.purchases, state.now_us()):
            log.error("provider.left", circuit=one.circuit, purchase=one.name, until=shown_time(one.end_us))
        with state.changed:
            ledger.go_on_from(state.wished.ledger, state.now_us(), leads=not state.value.stands_by)
            ledger.ended.follow(ended, {}, state.now_us())
            wished = replace(state.wished, ledger=ledger, restored=state.wished.restored + 1)
            self._go_on(self._with_bought(replace(wished, maintenance=rows.maintenance), rows.purchases))

    def _ended_unheard(
        self, rows: SavedRows, announcements: Sequence[Announcement]
    ) -> tuple[tuple[Reservation, ...], tuple[EndedAnnouncement, ...]]:
        """Return what has ended by what is saved, and what is in memory otherwise: nobody has heard of that here."""
        with self._state.changed:
            ledger = self._state.wished.ledger
            names = ledger.reservations.keys() - {known.reservation_id for known in rows.reservations}
            numbers = {known.sequence for known in ledger.announcements.values()}
            if self._state.value.stands_by:  # who leads changes them still
                numbers |= ledger.ended.lately.keys()
        numbers -= {known.sequence for known in announcements}
        if not (names or numbers):
            return (), ()
        return self._database.asked(lambda asked: (past_named(asked, names), ended_numbered(asked, numbers)))

    def _with_bought(self, wished: Wished, rows: Iterable[PurchaseRow]) -> Wished:
        """Return what was wished with what is bought; who stands by knows nothing of it that is not saved."""
        if self._state.value.stands_by:
            wished = replace(wished, purchases={circuit: {} for circuit in wished.purchases}, unsaved={})
        return with_bought(wished, rows)

    def _go_on(self, wished: Wished) -> None:
        """Go on from what was read; under the lock."""
        state = self._state
        wished.ledger.go_by(state.site.network)
        state.put(wished=wished, reported=replace(state.reported, database_error=""))
        state.replan()
        state.changed.notify_all()


def _say_if_lost(noted: Noted, saved: Future[None]) -> None:
    """Say what could not be noted, for nobody tries again."""
    if (failure := saved.exception()) is not None:
        log.error("changes.not_noted", what=noted.kind, id=noted.id, old=noted.old, new=noted.new, why=str(failure))
