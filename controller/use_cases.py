"""The use cases of promises: reserve, change, announce, ask what is free; and what the clock does to them.

Each takes the lock, decides by the pure ledger, hands what has changed to the database, and answers with the answer and
the moment from which it outlives a crash. Nobody may be told the answer before that, nor does the plan follow it; what
the clock does follows from what is saved, and waits for nobody.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import TypeVar

from controller.allowances import Allowances, reserved
from controller.asker import present_asker
from controller.checks import AnnouncementRequest, begun_now, check_announcement, check_ends, check_request, check_times
from controller.database import ChangeQuery, Database, DatabaseFailed, RefusedWish
from controller.database.changed import before_change
from controller.errors import NotAllowed, NotKnown, Outdated, Taken
from controller.events import Value
from controller.maintaining import Maintaining
from controller.ownership import check_again, check_own, check_repeated, owner_of
from controller.plan.admission import Refused, Request
from controller.plan.announcements import Announcement
from controller.plan.availability import Availability, Question, TooManyRates, availability, resources_of
from controller.plan.booking_lead import without_what_is_too_late
from controller.plan.ended import EndedAnnouncement, UsedKey
from controller.plan.ledger import HOLD_US, Created
from controller.plan.lifecycle import IN_PLAN, LifecycleEvent, ReservationState
from controller.plan.quotas import NO_QUOTAS, More, Quotas
from controller.plan.reservations import Reservation
from controller.saves import Saved, Saves
from controller.settling import Settling
from controller.state.carried import announcement_obstacles, reservation_obstacles
from controller.state.dealt import is_dealt
from controller.state.guarantees import not_guaranteed
from controller.state.guard import GuardedState
from controller.state.moment import Moment
from controller.told import told_of_end
from controller.wishes import wish_of

T = TypeVar("T")
Tell = Callable[[], None]  # publishes an event
Answered = Announcement | EndedAnnouncement | UsedKey | Refused  # UsedKey: the database has what the answer was


class UseCases:
    """The use cases over one state and one database."""

    def __init__(self, state: GuardedState, database: Database, quotas: Quotas = NO_QUOTAS) -> None:
        """Take in what the database has; what became due meanwhile is acted on by the first :meth:`tick`."""
        self._state = state
        self._database = database
        self.allowances = Allowances(state, quotas)
        self._settling = Settling(state)
        self.saves = Saves(state, database)
        self.maintaining = Maintaining(state, self.saves)
        self.saves.read_anew()
        with state.changed:
            gone = len(state.wished.ledger.gone)
        if gone:
            state.events.publish("promises.gone", level="error", promises=gone)

    # Reservations.

    def hold(self, asked: Callable[[int], Request], created: Callable[[int], Created]) -> Saved[Reservation | Refused]:
        """Hold bandwidth. With a key this may ask the database, and wait for it: not in a thread that others wait for.

        Args:
            asked: from the time to what is asked, for a start that is now.
            created: from the time to the name and the key of a new reservation.

        Raises:
            NotKnown: an end that is neither a host nor a site.
            NotAllowed: a request that makes no sense, or a key that was used for another one.
            Taken: the key was used for somebody else's.
            NotYours: in the name of somebody else.
            DatabaseFailed: it is not known whether the key was used.
        """
        state, past, asked_at = self._state, None, None
        while True:
            with state.changed:
                now_us, ledger = self._now_to_decide(), state.wished.ledger
                new = created(now_us)
                known = (ledger.by_key(new.key) or past) if new.key else None
                if known is not None:
                    check_again(known, new.fingerprint, new.key, present_asker())
                    return self._save(known)
                memory = (state.wished.restored, ledger.left_with_key)
                if not new.key or memory == asked_at:
                    request = self._in_name_of(begun_now(asked(now_us), now_us))
                    check_request(state.site, ledger, request, now_us)
                    hold = partial(ledger.hold, request, new)
                    answer = self.allowances.decided(reserved(request), hold, now_us)
                    return self._save_and_tell("reservation.held", new.reservation_id, answer, request)
                asked_at = memory  # what has left memory since is asked for again
            past = self._database.past_with_key(new.key)

    def commit(self, reservation_id: str) -> Saved[Reservation]:
        """Make a hold a promise; one that is a promise already stays so.

        Raises:
            NotKnown: there is none of this name.
            NotYours: it is somebody else's.
            Illegal: the hold has lapsed, or it has ended.
        """
        with self._state.changed:
            now_us = self._now_to_decide()
            known = self._known(reservation_id)
            check_own("reservation", reservation_id, known.owner, present_asker())
            if known.state in {ReservationState.COMMITTED, *IN_PLAN}:
                return self._save(known)
            self._state.wished.ledger.happened(reservation_id, LifecycleEvent.COMMIT, now_us)
            tells = [self._telling("reservation.committed", reservation=reservation_id)]
            tells += [tell for _, tell in self._ticked(now_us)]  # its start may be now
            return self._save(self._known(reservation_id), *tells)

    def renew(self, reservation_id: str, hold_us: int = HOLD_US) -> Saved[Reservation]:
        """Keep a hold for ``hold_us`` from now.

        Raises:
            NotKnown: there is none of this name.
            NotYours: it is somebody else's.
            Illegal: it is not held any more.
        """
        with self._state.changed:
            now_us = self._now_to_decide()
            check_own("reservation", reservation_id, self._known(reservation_id).owner, present_asker())
            return self._save(self._state.wished.ledger.renew(reservation_id, now_us, hold_us))

    def change(
        self, reservation_id: str, changed: Callable[[Reservation], Request], version: int
    ) -> Saved[Reservation | Refused]:
        """Change rate, start, end or class of a reservation; refused, nothing has changed.

        Args:
            reservation_id: which.
            changed: from what it is to what it shall be.
            version: what the client has seen last.

        Raises:
            NotKnown: there is none of this name.
            Outdated: it has changed since the client saw it.
            NotYours: it is somebody else's.
            NotAllowed: a change that makes no sense.
            Illegal: it has ended.
        """
        with self._state.changed:
            now_us = self._now_to_decide()
            known = self._known(reservation_id)
            if known.version != version:
                raise Outdated("reservation", reservation_id, version, known.version)
            check_own("reservation", reservation_id, known.owner, present_asker())
            request = changed(known)
            if request.owner != known.owner:
                request = self._in_name_of(request)
            started = known.state in IN_PLAN
            if request.start_us != known.start_us:
                if started:
                    raise NotAllowed("start", "it has begun, so its start cannot change any more")
                request = begun_now(request, now_us)
            check_request(self._state.site, self._state.wished.ledger, request, now_us, reservation_id)
            change = partial(self._state.wished.ledger.change, reservation_id, request, now_us)
            answer = self.allowances.decided(reserved(request), change, now_us, known)
            return self._save_and_tell("reservation.changed", reservation_id, answer, request)

    def release(self, reservation_id: str, version: int | None = None) -> Saved[Reservation]:
        """Give a reservation back; one that is given back already stays so.

        Raises:
            NotKnown: there is none of this name.
            Outdated: it has changed since the client saw it.
            NotYours: it is somebody else's.
            Illegal: it has ended otherwise.
        """
        with self._state.changed:
            now_us = self._now_to_decide()
            known = self._known(reservation_id)
            if version is not None and known.version != version:
                raise Outdated("reservation", reservation_id, version, known.version)
            check_own("reservation", reservation_id, known.owner, present_asker())
            if known.state is ReservationState.RELEASED:
                return self._save(known)
            released = self._state.wished.ledger.happened(reservation_id, LifecycleEvent.RELEASE, now_us)
            return self._save(released, self._telling("reservation.released", reservation=reservation_id))

    def reservation(self, reservation_id: str) -> Reservation:
        """Return one.

        Raises:
            NotKnown: there is none of this name in memory.
        """
        with self._state.changed:
            self._now()
            known = self._state.wished.ledger.shown_one(reservation_id)
            if known is None:
                raise NotKnown("reservation", reservation_id, ())
            return known

    def before_change(self, known: Reservation) -> Reservation | None:
        """Return a reservation as it was before it was changed; None if that is not what happened to it last.

        None too if the database does not say. It is waited for: not in a thread that others wait for.
        """
        query = ChangeQuery(limit=10, id=known.reservation_id, since_us=known.changed_us)
        try:
            rows = self._database.changes(query)
        except DatabaseFailed:
            return None
        return before_change(known, rows[-1].change) if rows else None

    def reservations(self) -> tuple[Reservation, ...]:
        """Return those in memory, in order of creation: all that have not ended, or are not saved so."""
        with self._state.changed:
            self._now()
            return tuple(self._state.wished.ledger.shown().values())

    def tally(self) -> tuple[Counter[ReservationState], Counter[ReservationState]]:
        """Return how many reservations there are in memory by state, and how many have left it, each counted once.

        What has ended leaves when its end is saved: until then the database may say that it goes on.
        """
        with self._state.changed:
            self._now()
            ledger = self._state.wished.ledger
            return Counter(known.state for known in ledger.shown().values()), Counter(ledger.left)

    def availability(self, question: Question) -> tuple[Availability, ...]:
        """Return what is free along each path to who asks for it now.

        Others wait for no more than a copy of what is booked there.

        Raises:
            NotKnown: an end that is neither a host nor a site.
            NotAllowed: the time is empty, or over; or the volume takes more rates than an answer may have.
        """
        network = self._state.site.network
        check_ends(network, question.a_end, question.z_end)
        resources = resources_of(question, network)
        with self._state.changed:
            now_us, ledger = self._now(), self._state.wished.ledger
            check_times(question.start_us, question.end_us, now_us)
            free = ledger.calendar.free_of(resources)
        try:
            return availability(question, network, without_what_is_too_late(free, network, ledger.lead_us, now_us))
        except TooManyRates as error:
            raise NotAllowed("bytes", str(error)) from error

    # Announcements.

    def announce(self, asked: AnnouncementRequest) -> Saved[Answered]:
        """Admit bytes that are coming, or refuse them. Asked again by the same name or key, it is the same promise.

        Raises:
            Taken: the name is a reservation's, or it or the key is of something or somebody else's.
            NotAllowed: a class that is not announced, no bytes, or to be stored where nobody knows what that takes.
            NotKnown: a host that is not in the network.
        """
        state = self._state
        with state.changed:
            now_us = self._now_to_decide()
            known = state.wished.ledger.ended.repeated(asked.announcement_id, asked.key, asked.fingerprint)
            if known is not None:
                check_repeated(known, asked.key, present_asker())
                return Saved(known, self._save(known).saved, is_repeated=True)
            if asked.announcement_id in state.wished.ledger.reservations:
                raise Taken("id", asked.announcement_id, "a reservation")
            check_announcement(state.site, asked)
            wish = wish_of(state.site, state.value, asked, present_asker())
            more = More(wish.owner, 0, now_us, now_us + (asked.deadline_us or 0), asked.size_bytes)
            announce = partial(state.wished.ledger.announce, wish, asked.senders, asked.target, now_us)
            answer = self.allowances.decided(more, announce, now_us)
            return self._save_and_tell("announcement.promised", asked.announcement_id, answer, asked)

    def forget(self, announcement_id: str) -> Saved[EndedAnnouncement]:
        """Forget an announcement; its share goes back. What became of it is kept. One that was just released stays so.

        Raises:
            NotKnown: there is none of this name in the plan.
            NotYours: it is somebody else's.
        """
        with self._state.changed:
            now_us, ledger = self._now_to_decide(), self._state.wished.ledger
            known = ledger.announcements.get(announcement_id) or ledger.ended.released(announcement_id)
            if known is None:
                raise NotKnown("announcement", announcement_id, tuple(ledger.announcements))
            promise = known.announcement if isinstance(known, EndedAnnouncement) else known
            check_own("announcement", announcement_id, promise.owner, present_asker())
            if isinstance(known, EndedAnnouncement):
                return self._save(known)
            ended = ledger.forget(announcement_id, now_us)
            return self._save(ended, self._telling_end("announcement.released", ended))

    def announcements(self) -> tuple[Announcement, ...]:
        """Return those in the plan now."""
        with self._state.changed:
            self._now()
            return tuple(self._state.wished.ledger.shown_announcements().values())

    # Whether what is promised is carried.

    def obstacles(self, promises: Sequence[Reservation | Announcement]) -> tuple[tuple[str, ...] | None, ...]:
        """Return of each promise why it cannot be carried at this moment; None of one whose time it is not.

        None of any while another leads: only who leads knows what switches have been told.
        """
        state = self._state
        with state.changed:
            if state.value.stands_by:
                return (None,) * len(promises)
            moment = Moment(state.site, state.value, state.now())
            return tuple(
                reservation_obstacles(moment, known)
                if isinstance(known, Reservation)
                else announcement_obstacles(moment, known)
                for known in promises
            )

    def is_dealt(self, known: Announcement) -> bool:
        """Return whether connections are dealt to its lanes by those that are there."""
        with self._state.changed:
            return is_dealt(known, self._state.value.reported.hosts, self._state.site.network)

    def not_guaranteed(self, promises: Sequence[Reservation]) -> tuple[tuple[str, ...], ...]:
        """Return of each reservation what the providers of its circuits do not guarantee, each with where."""
        state = self._state
        with state.changed:
            return tuple(not_guaranteed(state.site.network, state.wished, known) for known in promises)

    # The clock.

    def tick(self) -> Future[None]:
        """Act on what has become due, and make the plan follow; return what is done once that is saved, if it can."""
        state = self._state
        with state.changed:
            self._settling.fail_overbooked(self._now())
            self._settling.settle(Moment(state.site, state.value, state.now()))
            saved = self.saves.hand_over_clock()
            self.saves.save_delays()
            state.replan()
        return saved

    # Under the lock.

    def _now(self) -> int:
        """Return the time, with all that is due by now done: an answer never counts on a hold that has lapsed."""
        now_us, ledger, tells = self._state.now_us(), self._state.wished.ledger, list[Tell]()
        for name, tell in self._ticked(now_us):
            if ledger.is_undecided(name):
                tells.append(tell)  # not before what it follows from is told
            else:
                tell()
        if ledger.has_changed:
            self.saves.hand_over_clock(tells)
        return now_us

    def _now_to_decide(self) -> int:
        """Return the time as :meth:`_now` does.

        Raises:
            DatabaseFailed: nothing can be saved, so nothing is decided.
        """
        self.saves.check()
        return self._now()

    def _ticked(self, now_us: int) -> Iterator[tuple[str, Tell]]:
        """Do what is due, unless another leads, who does it; yield what was moved, and what tells of it."""
        for moved in () if self._state.value.stands_by else self._state.wished.ledger.tick(now_us):
            if isinstance(moved, Reservation):
                why = {"why": moved.reason} if moved.reason else {}
                fields = {"reservation": moved.reservation_id} | why
                yield moved.reservation_id, self._telling(f"reservation.{moved.state}", **fields)
            else:
                yield moved.announcement.announcement_id, self._telling_end("announcement.lapsed", moved)

    def _telling(self, event: str, **fields: Value) -> Tell:
        return lambda: self._state.events.publish(event, level="info", **fields)

    def _telling_end(self, event: str, ended: EndedAnnouncement) -> Tell:
        return self._telling(event, **told_of_end(ended))

    def _in_name_of(self, request: Request) -> Request:
        return replace(request, owner=owner_of(request.owner, present_asker()))

    def _known(self, reservation_id: str) -> Reservation:
        known = self._state.wished.ledger.reservations.get(reservation_id)
        if known is None:
            raise NotKnown("reservation", reservation_id, ())
        return known

    def _save_and_tell(self, event: str, name: str, answer: T, asked: Request | AnnouncementRequest) -> Saved[T]:
        kind, _, _ = event.partition(".")
        if isinstance(answer, Refused):
            self.saves.remember_refused(RefusedWish(f"{kind}.refused", name, answer.reason.value, asked))
            return self._save(answer, self._telling(f"{kind}.refused", why=str(answer), **{kind: name}))
        return self._save(answer, self._telling(event, **{kind: name}))

    def _save(self, answer: T, *tells: Tell) -> Saved[T]:
        return Saved(answer, self.saves.hand_over(decided=True, tells=tells))
