"""What a pair of controllers stands on, as a world has it: the row, the database, switches with roles, a provider.

Each lets something happen before and after it acts for a controller, as between any two instructions of a process:
it may be stopped there for long, or die.
"""

import functools
import itertools
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Protocol

from sqlalchemy import Connection, create_engine, event, make_url
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from controller.database import Database, DatabaseFailed, DatabaseTaken
from controller.database.leader_row import SAVES, SeenLeader
from controller.database.sqlite import Sqlite
from controller.database.terms import TERM, TERM_STEP, next_term
from controller.plan.purchases import Period, PurchaseState, Terms
from controller.providers.provider import CircuitStatus
from controller.southbound.openflow.tests.played_switch import PlayedDatapath

S = 1_000_000
NEVER_US = -(1 << 62)


class Asks(Protocol):
    """A controller, as what it asks of others knows it.

    Attributes:
        name: who that is.
        is_cut: whether it reaches the database.
    """

    name: str
    is_cut: bool

    def moment(self) -> None:
        """Let something happen to it, or beside it."""

    def wall_ms(self) -> int:
        """Return its wall clock, which may be wrong."""


@dataclass
class SharedDatabase:
    """What both controllers see of the database: the leader's row, and a file with all the rest.

    Attributes:
        path: the file.
        now_us: the server's clock.
        takes: terms under which the row was taken, in order.
        numbers: of names that are drawn.
    """

    path: Path
    now_us: Callable[[], int]
    term: int = 0
    holder: str = ""
    until_us: int = NEVER_US
    takes: list[int] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def meta(self, key: str) -> int | None:
        """Return a number of META; None if it is not there."""
        found = self._found("SELECT value FROM meta WHERE key = ?", key)
        return None if found is None else int(found)

    def purchase(self, name: str) -> str | None:
        """Return the state of a purchase as it is saved; None if none is."""
        return self._found("SELECT state FROM purchases WHERE name = ?", name)

    def _found(self, question: str, value: str) -> str | None:
        row = self._reading.execute(question, (value,)).fetchone()
        return None if row is None else str(row[0])

    @functools.cached_property
    def _reading(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, check_same_thread=False)  # SQLite serialises them


def empty_database(path: Path) -> Path:
    """Return a path at which there is a schema now, and nothing in it."""
    database = Database(f"sqlite:///{path}")
    database.open()
    database.close()
    return path


class WorldRow:
    """The leader's row, by one controller's connection, with the interface of ``LeaderRow``."""

    def __init__(self, shared: SharedDatabase, asks: Asks) -> None:
        self._shared, self._asks = shared, asks
        self.stands_by = False

    def look(self) -> SeenLeader:
        """Return what it says."""
        self._reached()
        it = self._shared
        is_over = it.until_us <= it.now_us()
        return SeenLeader(it.term, it.holder, f"http://{it.holder}", 0, is_over, it.meta(SAVES))

    def take(self, ttl_us: int, _clock_ms: int) -> SeenLeader | None:
        """Take it if it is over; the clock is that of the world's controller."""
        self._reached()
        it = self._shared
        if it.until_us > it.now_us():
            return None
        term = max(next_term(it.meta(TERM), self._asks.wall_ms()), it.term + TERM_STEP)
        it.term, it.holder, it.until_us = term, self._asks.name, it.now_us() + ttl_us
        it.takes.append(term)
        self._asks.moment()
        return SeenLeader(term, it.holder, f"http://{it.holder}", 0, is_over=False, saves=it.meta(SAVES))

    def renew(self, term: int, ttl_us: int) -> bool:
        """Let it hold from now on."""
        self._reached()
        it = self._shared
        if it.term != term:
            return False
        it.until_us = it.now_us() + ttl_us
        self._asks.moment()
        return True

    def leave(self, term: int) -> None:
        """Let others take it."""
        self._reached()
        if self._shared.term == term:
            self._shared.until_us = NEVER_US

    def others(self) -> tuple[str, ...]:
        """Nobody asks here."""
        return ()

    def wait(self, timeout_s: float) -> None:
        """Nobody waits here."""

    def close(self) -> None:
        """Nothing is open."""

    def _reached(self) -> None:
        self._asks.moment()
        if self._asks.is_cut:
            raise DatabaseFailed("the row", "it is cut")


class PairFile(Sqlite):
    """A file as both controllers of a pair have it: nobody's session is ended, so the term alone fences."""

    def __init__(self, shared: SharedDatabase, asks: Asks) -> None:
        super().__init__(make_url(f"sqlite:///{shared.path}"))
        self._shared, self._asks = shared, asks
        event.listen(self._engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous = OFF"))
        event.listen(self._engine, "begin", self._reached, insert=True)
        self._reading = create_engine(f"sqlite:///{shared.path}", poolclass=NullPool)
        event.listen(self._reading, "begin", self._reached)
        event.listen(self._reading, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))

    def connect(self, term: int = 0) -> Connection:
        """See :meth:`Backend.connect`."""
        if term != self._shared.term:
            raise DatabaseTaken(self.shown, term, self._shared.term)
        return self._engine.connect()

    def snapshot(self) -> Connection:
        """See :meth:`Backend.snapshot`."""
        return self._reading.connect()

    def _reached(self, _connection: Connection) -> None:
        if self._asks.is_cut:
            raise OperationalError("begin", None, OSError("it is cut"))


class PairDatabase(Database):
    """The real database of one controller; fails if it writes anything although another has a later term there."""

    def __init__(self, shared: SharedDatabase, asks: Asks) -> None:
        super().__init__(f"sqlite:///{shared.path}", save_within_s=60)
        for session in (self._session, self._follower._session):
            session._backend = PairFile(shared, asks)
        self._shared, self._asks = shared, asks

    def save(self, changes: Any) -> Any:
        """See :meth:`Database.save`; returns once it is known what became of it."""
        self._asks.moment()
        before = self._shared.meta(SAVES)
        future = super().save(changes)
        if future.exception() is None and self._shared.meta(SAVES) != before:
            last = self._shared.meta(TERM)
            assert self.term == last, f"term {self.term} has written to the database of term {last}"
        self._asks.moment()
        return future


@dataclass(eq=False)
class RoleSwitch:
    """Who may write to a switch: roles as Open vSwitch 3.1 keeps them (OpenFlow 1.3, section 6.3.6; decision 40).

    Attributes:
        generation: the last that was granted; None since it has started.
        roles: of those that are connected; all begin as equals, who may write.
        heard: the highest term that it has granted since it has started.
    """

    dpid: int
    generation: int | None = None
    roles: dict[Any, int] = field(default_factory=dict)
    heard: int = 0

    def asked(self, datapath: "RoleDatapath", msg: Any) -> tuple[int, int] | None:
        """Take in a wish for a role; return the error that refuses it, if any."""
        ofp = datapath.ofproto
        if msg.role != ofp.OFPCR_ROLE_EQUAL:  # whose number is not looked at
            if self.generation is not None and msg.generation_id < self.generation:
                return ofp.OFPET_ROLE_REQUEST_FAILED, ofp.OFPRRFC_STALE
            self.generation = msg.generation_id
        if msg.role == ofp.OFPCR_ROLE_MASTER:
            masters = [one for one, role in self.roles.items() if role == ofp.OFPCR_ROLE_MASTER]
            self.roles |= dict.fromkeys(masters, ofp.OFPCR_ROLE_SLAVE)
            self.heard = max(self.heard, msg.generation_id)
        self.roles[datapath] = msg.role
        return None

    def restarts(self) -> None:
        """Forget the generation, as ovs-vswitchd does; its connections have ended by then."""
        self.generation, self.heard = None, 0
        self.roles.clear()


@dataclass(eq=False)
class RoleDatapath(PlayedDatapath):
    """A controller's connection to such a switch."""

    switch: RoleSwitch = field(default_factory=lambda: RoleSwitch(0))

    def __post_init__(self) -> None:
        """Begin as an equal."""
        self.switch.roles[self] = self.ofproto.OFPCR_ROLE_EQUAL

    @property
    def may_write(self) -> bool:
        """Whether the switch does what is written by this connection."""
        return self.switch.roles.get(self, self.ofproto.OFPCR_ROLE_SLAVE) != self.ofproto.OFPCR_ROLE_SLAVE

    @property
    def is_slave(self) -> bool:
        """Whether it is asked to be nothing else."""
        return self.switch.roles.get(self) == self.ofproto.OFPCR_ROLE_SLAVE

    def answer_question(self, msg: Any) -> None:
        """Say which role it has."""
        self.now_role = self.switch.roles.get(self, self.ofproto.OFPCR_ROLE_SLAVE)
        super().answer_question(msg)

    def answer_role(self, msg: Any) -> None:
        """Answer as the switch does."""
        self.role = self.switch.asked(self, msg)
        super().answer_role(msg)


class WorldProvider:
    """Who sells a circuit, by one controller's connection; fails if what is needed is given back."""

    terms = Terms(lead_us=0, tail_us=0, min_duration_us=0, gap_us=0, granularity_bps=1, settle_us=10 * S)
    schedule = ()

    def __init__(self, sold: dict[str, Period], shared: SharedDatabase, asks: Asks) -> None:
        self._sold, self._shared, self._asks = sold, shared, asks

    def new_name(self, _random: Random) -> str:
        """Return a name; the same at each play of a world."""
        return f"p{next(self._shared.numbers)}"

    def reserve(self, name: str, period: Period, _apart: frozenset[str] = frozenset()) -> bool:
        """Sell it once."""
        self._asks.moment()
        assert self._shared.purchase(name) is not None, f"{name} is bought, and nobody could know of it"
        self._sold.setdefault(name, period)
        self._asks.moment()
        return True

    def change(self, name: str, period: Period) -> Period:
        """Change it."""
        self._asks.moment()
        self._sold[name] = period
        self._asks.moment()
        return period

    def tend(self, name: str, period: Period) -> None:
        """Nothing is to be done."""

    def release(self, name: str) -> bool:
        """Take it back."""
        self._asks.moment()
        known = self._shared.purchase(name)
        assert known in {None, "dropped"}, f"{name} is given back, and the database has it as {known}"
        self._sold.pop(name, None)
        self._asks.moment()
        return True

    def status(self, name: str) -> CircuitStatus:
        """Return what is sold."""
        period = self._sold.get(name)
        if period is None:
            return CircuitStatus(PurchaseState.FAILED, None, "there is none of this name")
        return CircuitStatus(PurchaseState.UP, period)

    def free_bps(self, start_us: int, end_us: int) -> int | None:
        """It does not say."""
        return None

    def close(self) -> None:
        """Nothing is open."""
