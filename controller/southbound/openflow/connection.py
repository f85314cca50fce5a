"""One connection of one switch: what is sent on it, and what the switch has answered to that.

A request is over when each message of it that has an answer of its own is answered; a barrier stands for those that
have none.
"""

import itertools
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import structlog

from controller.plan.wiring import SeenPorts
from controller.southbound.errors import RuleTaken, SwitchGone, SwitchRefused, SwitchTimeout
from controller.southbound.openflow import wire
from controller.southbound.openflow.asked_role import AskedRole
from controller.southbound.openflow.limits import AskedLimits
from controller.southbound.openflow.messages import Barrier, Message, PutRule
from controller.southbound.openflow.state import Rule, SwitchState, is_ours
from topology.addresses import shown_peer

_log = structlog.get_logger()

FEW = 16  # rules that are asked about one by one; a question costs a switch as much as a rule


@dataclass(frozen=True, slots=True)
class Deadline:
    """The instant by which a call must have ended, and the time it was given for that."""

    timeout_s: float
    at_s: float  # of time.monotonic()

    @classmethod
    def after(cls, timeout_s: float) -> Self:
        """Return the deadline ``timeout_s`` from now."""
        return cls(timeout_s, time.monotonic() + timeout_s)

    def left_s(self) -> float:
        """Return the seconds that are left, never below 0."""
        return max(0.0, self.at_s - time.monotonic())


@dataclass(frozen=True, slots=True)
class ReadBack:
    """What a switch has shown.

    Attributes:
        ours: all that is ours.
        foreign: the rules that are not.
    """

    ours: SwitchState
    foreign: frozenset[Rule]


class _Batch:
    """Requests under way on one connection, and what the switch has answered to them so far."""

    def __init__(self) -> None:
        self.sent: dict[int, Message | None] = {}  # by transaction id
        self.asked: dict[int, Any] = {}  # the same as they went out
        self.refusals: list[tuple[Message | None, Any]] = []
        self.parts: dict[int, list[Any]] = {}  # bodies of multipart replies, by transaction id
        self.open: set[int] = set()  # transaction ids whose answer ends the batch
        self.ended = threading.Event()

    def answered(self, msg: Any) -> bool:
        """Take in a barrier reply, a part of a multipart reply or an error; return whether it is one of ours."""
        if msg.xid not in self.sent or not wire.is_answer(self.asked[msg.xid], msg):
            return False
        is_last = True
        if wire.is_error(msg):
            self.refusals.append((self.sent[msg.xid], msg))
        elif wire.is_multipart(msg):
            self.parts.setdefault(msg.xid, []).extend(msg.body if isinstance(msg.body, list) else [msg.body])
            is_last = not wire.has_more(msg)
        if is_last:
            self.open.discard(msg.xid)
        if not self.open:
            self.ended.set()
        return True


class SwitchConnection:
    """One connection; a reconnected switch gets a new one.

    Attributes:
        datapath: os-ken's.
        address: its other end, for people.
        is_ours: whether the switch is in the network; another one is told nothing.
        calls: held for the length of one apply or read.
        confirmed: what the switch has confirmed; None: not known, read it back.
        hardware: the hardware addresses of its ports when it connected.
        ports: its ports by number, as it has shown them; the sessions keep them.
        role_xid: of our wish for a role there, or our question which one we have; None before that.
        echo_xid: of our question whether it is there; None before that.
        limits: what it holds, as far as it was asked and has said.
        role: whether we are its master, as it says when it is asked.
    """

    def __init__(self, datapath: Any, *, is_ours: bool = True) -> None:
        self.datapath = datapath
        self.address = shown_peer(datapath.address)
        self.is_ours = is_ours
        self.calls = threading.Lock()
        self.confirmed: SwitchState | None = None
        self.hardware = wire.hardware_addresses(datapath)
        self.ports = wire.seen_ports(datapath)
        self.role_xid: int | None = None
        self.echo_xid: int | None = None
        self.limits = AskedLimits(datapath)
        self.role = AskedRole(datapath)
        self._lock = threading.Lock()  # guards these
        self._batch: _Batch | None = None
        self._gone = False

    def answered(self, msg: Any) -> bool:
        """Take in an answer; return whether it was asked for."""
        if self.limits.takes(msg) or self.role.takes(msg):
            return True
        with self._lock:
            return self._batch is not None and self._batch.answered(msg)

    def ask_to_lead(self, term: int) -> None:
        """Ask to be the switch's master under a term; what it answers is the sessions' to take in."""
        self._ask_role(wire.role_request(self.datapath, term))

    def ask_to_stand_by(self, term: int) -> None:
        """Ask to be a slave, to whom ports are told and who changes nothing; ``term`` is that of who leads."""
        self._ask_role(wire.standby_request(self.datapath, term))

    def _ask_role(self, request: Any) -> None:
        """Send the wish for a role; a switch that is not ours is asked which role we have, which changes nothing.

        Whom it obeys would be demoted by our wish to be its one master, or outranked by a term of ours.
        """
        asked = request if self.is_ours else wire.role_question(self.datapath)
        self.role_xid = self.datapath.set_xid(asked)
        self.datapath.send_msg(asked)

    def ask_whether_there(self) -> bool:
        """Send an echo; return whether it could be sent. What it answers is the sessions' to take in."""
        request = wire.echo_request(self.datapath)
        self.echo_xid = self.datapath.set_xid(request)
        return bool(self.datapath.send_msg(request))

    def is_another(self, than: Self) -> bool:
        """Return whether it shows ports of which the other one shows none."""
        return self.hardware != than.hardware and self.hardware.isdisjoint(than.hardware)

    def end(self) -> None:
        """Mark it gone, and wake whoever waits on it."""
        with self._lock:
            self._gone = True
            if self._batch is not None:
                self._batch.ended.set()

    def send(self, messages: Sequence[Message], deadline: Deadline) -> None:
        """Send messages and a barrier, all at once; return once the switch has confirmed them.

        Raises:
            SwitchRefused: it answered one of them with an error.
        """
        datapath = self.datapath
        asked = [
            (m, wire.barrier(datapath) if isinstance(m, Barrier) else wire.to_wire(datapath, m))
            for m in (*messages, Barrier())
        ]
        batch = self._exchange(asked, deadline)
        if batch.refusals:
            self._refuse(datapath.id, batch)

    def read(self, deadline: Deadline, flows: Any) -> ReadBack:
        """Return what a question for flows, one for meters and one for groups, asked at once, are answered."""
        datapath = self.datapath
        meters, groups = wire.meters_request(datapath), wire.groups_request(datapath)
        batch = self._exchange([(None, flows), (None, meters), (None, groups)], deadline)
        if batch.refusals:
            self._refuse(datapath.id, batch)
        rules = [wire.to_rule(datapath, entry) for entry in batch.parts.get(flows.xid, ())]
        ours = SwitchState(
            rules=frozenset(rule for rule in rules if is_ours(rule.cookie)),
            meters=wire.to_meters(datapath, batch.parts.get(meters.xid, ())),
            groups=wire.to_groups(datapath, batch.parts.get(groups.xid, ())),
        )
        return ReadBack(ours, frozenset(rule for rule in rules if not is_ours(rule.cookie)))

    def check_free(self, gone: Collection[Rule], difference: Sequence[Message], deadline: Deadline) -> None:
        """Refuse to overwrite a rule that is not ours: an ADD would replace it without a word.

        Args:
            gone: the rules of ours that the switch has, and is not to have any more.
            difference: what it is to be told.
            deadline: of the answer.

        Raises:
            RuleTaken: one stands where a rule to be put should.
        """
        datapath = self.datapath
        wanted = {message.rule.key: message.rule for message in difference if isinstance(message, PutRule)}
        if not wanted:
            return
        replaced = {rule.key for rule in gone}
        new = [rule for key, rule in wanted.items() if key not in replaced]
        if len(new) > FEW:
            shared = self._shared_tables({rule.table_id for rule in new}, deadline)
            new = [rule for rule in new if rule.table_id in shared]
        asked = [(None, wire.flows_like_request(datapath, rule)) for rule in new]
        if not asked:
            return
        batch = self._exchange(asked, deadline)
        for entry in itertools.chain.from_iterable(batch.parts.values()):
            rule = wire.to_rule(datapath, entry)
            if rule.key in wanted and not is_ours(rule.cookie):
                raise RuleTaken(datapath.id, wanted[rule.key], rule.cookie)

    def _shared_tables(self, table_ids: Collection[int], deadline: Deadline) -> set[int]:
        """Return the tables in which a switch has entries that are not ours."""
        counts = {table_id: wire.counts_requests(self.datapath, table_id) for table_id in table_ids}
        asked = [(None, request) for both in counts.values() for request in both]
        batch = self._exchange(asked, deadline)
        if batch.refusals:
            return set(table_ids)
        found = {table_id: [batch.parts[one.xid][0].flow_count for one in both] for table_id, both in counts.items()}
        return {table_id for table_id, (of_any, of_ours) in found.items() if of_any != of_ours}

    def _exchange(self, asked: Sequence[tuple[Message | None, Any]], deadline: Deadline) -> _Batch:
        """Send wire messages; return once each that has an answer of its own is answered.

        Raises:
            SwitchGone: before all answers were there.
            SwitchTimeout: the deadline passed.
        """
        datapath, batch = self.datapath, _Batch()
        for message, wired in asked:
            xid = datapath.set_xid(wired)
            batch.sent[xid], batch.asked[xid] = message, wired
            if wire.has_answer(wired):
                batch.open.add(xid)
        with self._lock:
            if self._gone:
                raise SwitchGone(datapath.id)
            self._batch = batch
        try:
            if not datapath.send_together(wired for _, wired in asked):
                raise SwitchGone(datapath.id)
            if not batch.ended.wait(deadline.left_s()):
                raise SwitchTimeout(datapath.id, deadline.timeout_s)
            if batch.open:  # woken by the end of the connection, not by the last answer
                raise SwitchGone(datapath.id)
        finally:
            with self._lock:
                self._batch = None
        return batch

    @staticmethod
    def _refuse(dpid: int, batch: _Batch) -> None:
        """Raise the first refusal of a batch.

        Raises:
            SwitchRefused: always.
        """
        message, error = batch.refusals[0]
        refused = SwitchRefused(dpid, *wire.error_of(error), message, len(batch.refusals))
        _log.error(
            "switch.refused", dpid=f"{dpid:#018x}", xid=error.xid, error=refused.error_name, refused=str(message)
        )
        raise refused


class Confirmed(NamedTuple):
    """What a switch has confirmed, and the ports that it showed then."""

    dpid: int
    ports: SeenPorts
    state: SwitchState

    def is_of(self, connection: SwitchConnection | None) -> bool:
        """Return whether that is what the connection of a switch has confirmed last, and shows."""
        return connection is not None and connection.confirmed is self.state and connection.ports == self.ports
