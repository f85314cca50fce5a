"""The thread that keeps the leader's row of a pair, or waits to take it."""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

import structlog

from controller.database import DatabaseFailed
from controller.database.leader_row import LeaderRow, RowNews, SeenLeader
from controller.plan.leading import RENEWALS, Leading, PairStanding

LOOK_S = 0.05  # how often who stands by looks at the row, unless it hears that the row was left
OTHERS_S = 1.0  # how often it is looked who stands by
ANSWERED_S = 1.0  # so long somebody waits who asks that
FOLLOWED_S, FOLLOWS_S = 1.0, 0.005  # so long who has left the row waits for another one to take it; looks so often

_log = structlog.get_logger()


class Leadership:
    """Whether we lead. Any thread may ask; the row is this thread's alone.

    Attributes:
        led: set once we have taken the row.
        left: set once we have left it, and another one has taken it, or seems not to.
        seen: what the row has said last; None before the first look.
        seen_us: when it was looked at or renewed last, elapsed time.
        may_take: whether the row may be taken: not before all is warm that a leader needs.
        others: who stands by beside us, for people, as it was seen in the last second.
        lost: who led before us and has not left the row, for people: its process, its machine or its way to the
            database is dead; empty if it has left.
    """

    def __init__(self, row: LeaderRow, elapsed_us: Callable[[], int], ttl_us: int) -> None:
        self._row = row
        self._elapsed_us = elapsed_us
        self._ttl_us = ttl_us
        self._leading = Leading()
        self._said = ""
        self._wakes = threading.Event()
        self._resigned = self._leaves = self._ends = False
        self._is_left = False  # the row, by who led: we have heard so, and need not look
        self._has_left = False  # later than _leaves, which is said amid a step that has begun otherwise
        self._answers: deque[Future[tuple[str, ...]]] = deque()  # who waits to be told who stands by now
        self._looked_s = 0.0
        self.may_take = False
        self.led, self.left = threading.Event(), threading.Event()
        self.seen: SeenLeader | None = None
        self.seen_us = 0
        self.others: tuple[str, ...] = ()
        self.lost = ""

    @property
    def term(self) -> int:
        """Under which we lead or have led; 0 if we never have."""
        return self._leading.term

    @property
    def seen_term(self) -> int:
        """The term of who leads or led last, as we know it; 0 if nobody has."""
        return self.seen.term if self.seen else 0

    @property
    def standing(self) -> PairStanding:
        """How we stand, now; one that has resigned decides nothing more, as one that stands by."""
        return PairStanding.STANDBY if self._resigned else self._leading.standing(self._elapsed_us())

    @property
    def has_resigned(self) -> bool:
        """Whether we lead no more by our own will: hosts hear of the next one from now on."""
        return self._resigned

    def may_decide(self) -> bool:
        """Return whether we lead, and nobody else can by now."""
        return self.standing is PairStanding.LEADER

    def look(self) -> SeenLeader:
        """Return what the row says, before the thread has begun.

        Raises:
            DatabaseFailed: the database does not answer.
        """
        asked_us = self._elapsed_us()
        self.seen = self._row.look()
        self.seen_us = asked_us
        return self.seen

    def run(self) -> None:
        """Work until :meth:`end`, or until another leads."""
        while not self._ends:
            begun_s = time.monotonic()
            try:
                self.step()
            except DatabaseFailed as failure:
                if self._has_left:
                    _log.error("leader.not_left", why=failure.why)
                else:
                    self._say(failure.why)
            else:
                self._say("")
            if self._has_left:
                self._wait_for_another()
            if self._has_left or self.standing is PairStanding.DEPOSED:
                return
            self._pause(begun_s)

    def others_now(self) -> tuple[str, ...]:
        """Return who stands by beside us, as the row's thread sees it now; nobody if it cannot see it in time."""
        answer: Future[tuple[str, ...]] = Future()
        self._answers.append(answer)
        self._wakes.set()
        try:
            return answer.result(ANSWERED_S)
        except TimeoutError:
            return ()

    def resign(self) -> None:
        """Decide nothing from now on, and keep the row until :meth:`leave`: what is decided is to be written first."""
        self._resigned = True

    def leave(self) -> None:
        """Let another take the row at once, by the thread's next act, which is its last; take it no more ourselves."""
        self._leaves = True
        self._wakes.set()

    def _wait_for_another(self) -> None:
        """Wait until another one has taken the row that we have left: who asks us is told where that one is."""
        until_s = time.monotonic() + (FOLLOWED_S if self.others else 0.0)
        with contextlib.suppress(DatabaseFailed):
            while self.look().term == self.term and time.monotonic() < until_s and not self._ends:
                self._row.wait(FOLLOWS_S)
        self.left.set()

    def step(self) -> None:
        """Renew the row, or leave it, or look at it and take it if it is over.

        Raises:
            DatabaseFailed: the database does not answer.
        """
        asked_us = self._elapsed_us()
        self._row.stands_by = self.may_take and not self.term
        if self._leaves:
            self._has_left = True
            if self.term:
                self._row.leave(self.term)
        elif self.term:
            if not self._row.renew(self.term, self._ttl_us):
                self._leading = self._leading.deposed()
                _log.error("leader.deposed", term=self.term)
                return
            self._leading = self._leading.renewed(asked_us, self._ttl_us)
            self.seen_us = asked_us
        elif self._may_be_over() and self.may_take:
            asked_us = self._elapsed_us()
            taken = self._row.take(self._ttl_us, time.time_ns() // 1_000_000)
            if taken is not None:
                self._leading = self._leading.took(taken.term, asked_us, self._ttl_us)
                before, self.seen = self.seen.holder if self.seen else "", taken
                self.lost = "" if taken.was_left else before
                self.led.set()
                _log.warning("leader.taken", term=taken.term, before=before)
        waiting = [self._answers.popleft() for _ in range(len(self._answers))]
        if waiting or time.monotonic() - self._looked_s > OTHERS_S:
            self._looked_s = time.monotonic()
            self.others = self._row.others()
        for answer in waiting:
            answer.set_result(self.others)

    def _may_be_over(self) -> bool:
        """Return whether the row is over by what we have heard, or a look at it says so."""
        is_left, self._is_left = self._is_left, False
        return (is_left and self.may_take) or self.look().is_over

    def _pause(self, begun_s: float) -> None:
        """Wait until the row is to be renewed, counted from the last time, or looked at again."""
        if self.term:
            self._wakes.wait(max(0.0, self._ttl_us / 1e6 / RENEWALS - (time.monotonic() - begun_s)))
            self._wakes.clear()
            return
        with contextlib.suppress(DatabaseFailed):  # the next look says so
            self._is_left = self._row.wait(LOOK_S) is RowNews.LEFT

    def stop(self) -> None:
        """Let the thread end; the row holds until its time is over."""
        self._ends = True
        self._wakes.set()

    def close(self) -> None:
        """Let the connection go, when the thread has ended."""
        self._row.close()

    def _say(self, why: str) -> None:
        """Say once that the row cannot be reached, and once that it can again, unless another has it by then."""
        if why and not self._said:
            _log.error("leader.unsure", why=why)
        elif self._said and not why and self.standing is not PairStanding.DEPOSED:
            _log.info("leader.sure")
        self._said = why
