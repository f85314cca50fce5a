"""One controller of a pair: it stands by, and reads what the leader writes, until it leads itself."""

import threading
import time
from collections.abc import Callable
from typing import Protocol

import structlog

from controller.database import Database, DatabaseBusy, DatabaseError, DatabaseFailed
from controller.plan.leading import LeaderView, PairStanding
from controller.saves import Saves
from controller.state.guard import GuardedState
from controller.work.clock_watch import ClockWatch
from controller.work.leadership import LOOK_S, Leadership

SHARE = 4  # a thread of who stands by may take one in so many parts of a processor

_log = structlog.get_logger()


def rest_s(begun_s: float) -> float:
    """Return how long a thread of who stands by rests from what it has done since ``begun_s``, of ``time.thread_time``.

    That clock does not go on while a silent database is waited for.
    """
    return max(LOOK_S, (time.thread_time() - begun_s) * (SHARE - 1))


class Follower(Protocol):
    """A part that must know when we begin to lead."""

    def lead(self, term: int) -> None:
        """Lead from now on, under a term."""


class Pair:
    """The pair as this controller knows it.

    Args:
        leadership: whether we lead; its thread is another's.
        state: brought to what the leader has written, until we lead.
        database: opened to read only until then.
        saves: between these two.
        clocks: begun anew when we lead.
    """

    def __init__(
        self,
        leadership: Leadership,
        state: GuardedState,
        database: Database,
        saves: Saves,
        clocks: ClockWatch,
    ) -> None:
        self._leadership = leadership
        self._state = state
        self._database = database
        self._saves = saves
        self._clocks = clocks
        self._read = -1  # the transactions of the leader's that we have read, by their number
        self._seen: int | None = -1  # and the number that let us: the leader may have written more until we read
        self._current_us = state.elapsed_us()  # when we knew last that we have read all
        self._reading = threading.Lock()
        self._has_all = False  # that was written before us; what we write ourselves is ours
        self._takes = False

    def follow(self) -> None:
        """Read what the leader writes, until the state says stop, or once more after we have begun to lead.

        That last time it is read while the session that writes is being opened.
        """
        said, is_last = "", False
        while not is_last:
            begun_s = time.thread_time()
            is_last = self._leadership.led.is_set()
            try:
                with self._reading:
                    self._look()
            except DatabaseError as failure:
                if not said:
                    _log.error("standby.behind", why=str(failure))
                said = str(failure)
            else:
                said = ""
            wait_s = rest_s(begun_s)
            with self._state.changed:
                if self._state.stopping:
                    return
            if not is_last:
                self._leadership.led.wait(wait_s)

    def _look(self) -> None:
        """Read what the leader has written since, if anything; under ``_reading``."""
        at_us, seen = self._leadership.seen_us, self._leadership.seen  # in this order: what is seen is no older
        if seen is None or self._has_all:
            return
        if seen.saves not in {self._seen, self._read}:
            saves = self._saves.follow()
            self._seen, self._read = seen.saves, -1 if seen.saves is None else saves
        if seen.saves is not None and self._read >= seen.saves:  # less: a leader of an older Headway writes
            self._current_us = at_us

    def lead(self, followers: tuple[Follower, ...], greet: Callable[[], None]) -> None:
        """Take over: the database, the time, what was written and we have not read, the plan under our term, all below.

        Raises:
            DatabaseError: it does not work, or another leads already.
        """
        term, begun_s = self._leadership.term, time.monotonic()
        try:
            self._database.open(term)
        except DatabaseBusy as busy:  # its session has been ended, and its server's process hangs: tried again later
            raise DatabaseFailed(busy.url, f"who led before has it still: {busy.holder}") from busy
        self._clocks.begin_anew()
        with self._reading:
            self._has_all = True
            if self._database.saves != self._read:
                self._saves.follow()
        self._state.lead(term)
        for follower in followers:
            follower.lead(term)
        greet()
        self._takes = True
        took_ms = round((time.monotonic() - begun_s) * 1000)
        if self._leadership.lost:
            self._state.events.publish("leader.lost", level="error", before=self._leadership.lost, term=term)
        self._state.events.publish("leader.leads", level="warning", term=term, took_ms=took_ms)

    def view(self) -> LeaderView:
        """Return who leads."""
        led, standing = self._leadership, self._leadership.standing
        seen, now_us = led.seen, self._state.elapsed_us()
        leads = self._takes and standing is PairStanding.LEADER
        if seen is None:
            return LeaderView(standing, leads)
        is_left = seen.is_over or seen.term == led.term  # one that lets another lead must not name itself
        is_known = standing is not PairStanding.STANDBY or not is_left
        age_us = 0 if self._takes else now_us - self._current_us
        return LeaderView(
            standing,
            leads,
            seen.term,
            seen.address if is_known else "",
            seen.holder if is_known else "",
            seen.since_us,
            age_us,
            led.others if led.term else (),
        )
