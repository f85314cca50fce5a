"""The one place that puts switch state on the wire and believes only what a switch has confirmed.

The os-ken application (``apps/openflow.py``) tells :class:`SwitchSessions` of switches and their answers; the service
asks it to ``apply`` a desired state or to read back what is ``installed``. Threads: any may call; per switch one call
runs at a time; the service is told of switches in a thread of ours, so it may call back at once.
"""

import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import structlog

from controller.southbound.errors import RuleTaken, SwitchGone, SwitchRefused, SwitchTimeout
from controller.southbound.openflow import wire
from controller.southbound.openflow.foreign import Ignored, without_ignored
from controller.southbound.openflow.messages import Barrier, Message, PutRule, messages
from controller.southbound.openflow.state import Rule, SwitchState, is_ours

# How long a switch that has gone is expected back: Open vSwitch calls at once after its own start, without a rule, and
# a second after its connection was cut.
BACK_WITHIN_S = 2.0

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Deadline:
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
        self.refusals: list[tuple[Message | None, Any]] = []
        self.parts: dict[int, list[Any]] = {}  # bodies of multipart replies, by transaction id
        self.open: set[int] = set()  # transaction ids whose answer ends the batch
        self.ended = threading.Event()

    def answered(self, msg: Any) -> bool:
        """Take in a barrier reply, a part of a multipart reply or an error; return whether it is one of ours."""
        if msg.xid not in self.sent:
            return False
        is_last = True
        if wire.is_error(msg):
            self.refusals.append((self.sent[msg.xid], msg))
        elif wire.is_multipart(msg):
            self.parts.setdefault(msg.xid, []).extend(msg.body)
            is_last = not wire.has_more(msg)
        if is_last:
            self.open.discard(msg.xid)
        if not self.open:
            self.ended.set()
        return True


@dataclass(eq=False, slots=True)
class _Connection:
    """One connection of one switch; a reconnected switch gets a new one."""

    datapath: Any
    calls: threading.Lock = field(default_factory=threading.Lock)  # held for the length of one apply or read
    confirmed: SwitchState | None = None  # what the switch has confirmed; None: not known, read it back
    batch: _Batch | None = None
    gone: bool = False


class SwitchSessions:
    """The connected switches."""

    def __init__(
        self,
        switch_up: Callable[[int], None],
        switch_down: Callable[[int], None],
        ignored: tuple[Ignored, ...] = (),
        rule_gone: Callable[[int], None] = lambda _: None,
        port_said: Callable[[int, int, bool], None] = lambda _dpid, _port_no, _is_live: None,
    ) -> None:
        """Start with no switch.

        Args:
            switch_up: told the dpid of a switch that has connected; may call ``apply`` at once.
            switch_down: told the dpid of a switch that has gone.
            ignored: the rules that are left alone although they have our cookie.
            rule_gone: told the dpid of a switch on which somebody else has deleted a rule of ours; once until that
                switch is read back.
            port_said: told the dpid, the number of a port and whether it is live: of each when the switch connects, and
                whenever one changes.
        """
        self._rule_gone = rule_gone
        self._ignored = ignored
        self._switch_up = switch_up
        self._switch_down = switch_down
        self._port_said = port_said
        self._connections: dict[int, _Connection] = {}
        self._gone_s: dict[int, float] = {}  # when a switch went, of time.monotonic()
        self._lock = threading.Lock()  # guards these, and each connection's batch and gone
        self._arrived = threading.Condition(self._lock)
        # Changes are told in a thread of their own: told in os-ken's, a callback that waits for an answer of the
        # switch would wait for ever, since that very thread delivers the answers.
        self._changes: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._teller = threading.Thread(target=self._tell, name="switch-changes", daemon=True)
        self._teller.start()

    # ---- called by the os-ken application ----

    def connected(self, datapath: Any) -> None:
        """Take in a switch that has finished the OpenFlow handshake; a newer connection replaces an older."""
        with self._lock:
            older = self._connections.get(datapath.id)
            self._connections[datapath.id] = _Connection(datapath)
            if older is not None:
                self._end(older)
            self._arrived.notify_all()
        _log.info("switch.up", dpid=f"{datapath.id:#018x}", address=datapath.address)
        self._changes.put(partial(self._switch_up, datapath.id))
        for port_no, is_live in wire.live_ports(datapath).items():
            self._changes.put(partial(self._port_said, datapath.id, port_no, is_live))

    def disconnected(self, datapath: Any) -> None:
        """Take in that a connection has ended; whoever waits on it is told at once."""
        with self._lock:
            connection = self._connections.get(datapath.id)
            if connection is None or connection.datapath is not datapath:
                return  # it never finished the handshake, or a newer connection has replaced it
            del self._connections[datapath.id]
            self._gone_s[datapath.id] = time.monotonic()
            self._end(connection)
        _log.warning("switch.down", dpid=f"{datapath.id:#018x}")
        self._changes.put(partial(self._switch_down, datapath.id))

    def port_changed(self, msg: Any) -> None:
        """Take in that a port has come, gone, or changed its state."""
        port_no, is_live = wire.changed_port(msg)
        _log.info("switch.port", dpid=f"{msg.datapath.id:#018x}", port_no=port_no, is_live=is_live)
        self._changes.put(partial(self._port_said, msg.datapath.id, port_no, is_live))

    def answered(self, msg: Any) -> None:
        """Take in a barrier reply, a multipart reply or an error from a switch."""
        with self._lock:
            connection = self._connections.get(msg.datapath.id)
            batch = connection.batch if connection is not None and connection.datapath is msg.datapath else None
            if batch is not None and batch.answered(msg):
                return
        if wire.is_error(msg):  # nobody waits for it any more, or it was never ours
            _log.warning("switch.late_error", dpid=f"{msg.datapath.id:#018x}", xid=msg.xid, error=wire.error_of(msg)[2])

    def removed(self, msg: Any) -> None:
        """Take in that a switch has lost a rule; those that we delete ourselves are not confirmed any more then."""
        with self._lock:
            connection = self._connections.get(msg.datapath.id)
            confirmed = connection.confirmed if connection is not None else None
        if connection is None or confirmed is None or not is_ours(msg.cookie):
            return
        key = wire.removed_key(msg)
        if any(rule.key == key for rule in confirmed.rules):
            connection.confirmed = None  # one is enough to look at all
            _log.warning("switch.rule_gone", dpid=f"{msg.datapath.id:#018x}", table=msg.table_id, priority=msg.priority)
            self._changes.put(partial(self._rule_gone, msg.datapath.id))

    # ---- called by the service ----

    def dpids(self) -> frozenset[int]:
        """Return the switches connected now."""
        with self._lock:
            return frozenset(self._connections)

    def apply(self, dpid: int, desired: SwitchState, timeout_s: float) -> int:
        """Bring a switch to ``desired``; return, once it has confirmed everything, how many messages that took.

        Args:
            dpid: the switch.
            desired: all that is to be ours on it.
            timeout_s: for the whole, seconds.

        Raises:
            SwitchRefused: it refused a message. No later phase was sent; the next call reads back what it has.
            SwitchGone: it is not connected, or went away before it had confirmed.
            SwitchTimeout: it did not confirm in time.
            RuleTaken: a rule that is not ours stands where one of ours should; nothing was sent.
            NotSettable: the state is not ours to set.
        """
        deadline = _Deadline.after(timeout_s)
        with self._call(dpid, deadline) as connection:
            shown = connection.confirmed  # os-ken's thread may take it away: a rule has gone
            if shown is None:
                shown = self._read(connection, deadline, wire.our_flows_request(connection.datapath)).ours
                connection.confirmed = shown
            spared = shown.rules - without_ignored(desired, shown, self._ignored).rules if self._ignored else None
            difference = messages(desired, replace(shown, rules=shown.rules - spared) if spared else shown)
            self._check_free(connection, shown, difference, deadline)
            if not difference:
                return 0
            connection.confirmed = None  # unknown until the last barrier
            for is_barrier, phase in itertools.groupby(difference, lambda message: isinstance(message, Barrier)):
                if not is_barrier:
                    self._send_phase(connection, list(phase), deadline)
            # the very same rules where nothing is spared: then they need not be looked at again
            connection.confirmed = replace(desired, rules=desired.rules | spared) if spared else desired
        sent = sum(not isinstance(message, Barrier) for message in difference)
        _log.info("switch.applied", dpid=f"{dpid:#018x}", messages=sent)
        return sent

    def installed(self, dpid: int, timeout_s: float = 5.0) -> SwitchState:
        """Return what is ours on a switch, read back from it now.

        Raises:
            SwitchGone: it is not connected, or went away before it had answered.
            SwitchTimeout: it did not answer in time.
        """
        return self.read(dpid, timeout_s).ours

    def read(self, dpid: int, timeout_s: float = 5.0) -> ReadBack:
        """Return what is on a switch, ours and others', read back from it now.

        Raises:
            SwitchGone: it is not connected, or went away before it had answered.
            SwitchTimeout: it did not answer in time.
        """
        deadline = _Deadline.after(timeout_s)
        with self._call(dpid, deadline) as connection:
            connection.confirmed = None
            seen = self._read(connection, deadline, wire.flows_request(connection.datapath))
            connection.confirmed = seen.ours
            return seen

    def close(self) -> None:
        """End the thread that tells of changes, after those already under way."""
        self._changes.put(None)
        self._teller.join()

    # ---- inside ----

    def _tell(self) -> None:
        """Tell the service of each change in order, until closed."""
        while (tell := self._changes.get()) is not None:
            try:
                tell()
            except Exception:  # noqa: BLE001 - a thread's top: one failed callback must not end the telling of others
                _log.exception("switch.callback_failed", callback=repr(tell))

    @staticmethod
    def _end(connection: _Connection) -> None:
        """Mark a connection gone and wake whoever waits on it; the caller holds the lock."""
        connection.gone = True
        if connection.batch is not None:
            connection.batch.ended.set()

    @contextmanager
    def _call(self, dpid: int, deadline: _Deadline) -> Iterator[_Connection]:
        """Hold the connection of ``dpid`` for one call; a switch that has just gone is waited for."""
        with self._arrived:
            back_s = self._gone_s.get(dpid, -BACK_WITHIN_S) + BACK_WITHIN_S - time.monotonic()
            self._arrived.wait_for(lambda: dpid in self._connections, min(max(0.0, back_s), deadline.left_s()))
            connection = self._connections.get(dpid)
        if connection is None:
            raise SwitchGone(dpid)
        if not connection.calls.acquire(timeout=deadline.left_s()):
            raise SwitchTimeout(dpid, deadline.timeout_s)
        try:
            yield connection
        finally:
            connection.calls.release()

    def _exchange(
        self, connection: _Connection, asked: Sequence[tuple[Message | None, Any]], deadline: _Deadline
    ) -> _Batch:
        """Send wire messages; return once each that has an answer of its own is answered.

        Raises:
            SwitchGone: before all answers were there.
            SwitchTimeout: the deadline passed.
        """
        datapath, batch = connection.datapath, _Batch()
        for message, wired in asked:
            xid = datapath.set_xid(wired)
            batch.sent[xid] = message
            if wire.has_answer(wired):
                batch.open.add(xid)
        with self._lock:
            if connection.gone:
                raise SwitchGone(datapath.id)
            connection.batch = batch
        try:
            for _, wired in asked:
                if not datapath.send_msg(wired):
                    raise SwitchGone(datapath.id)
            if not batch.ended.wait(deadline.left_s()):
                raise SwitchTimeout(datapath.id, deadline.timeout_s)
            if batch.open:  # woken by the end of the connection, not by the last answer
                raise SwitchGone(datapath.id)
        finally:
            with self._lock:
                connection.batch = None
        return batch

    def _send_phase(self, connection: _Connection, phase: Sequence[Message], deadline: _Deadline) -> None:
        """Send messages and a barrier; return once the switch has confirmed them.

        Raises:
            SwitchRefused: it answered one of them with an error.
        """
        datapath = connection.datapath
        asked = [(message, wire.to_wire(datapath, message)) for message in phase]
        batch = self._exchange(connection, [*asked, (None, wire.barrier(datapath))], deadline)
        if batch.refusals:
            self._refuse(datapath.id, batch)

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

    def _read(self, connection: _Connection, deadline: _Deadline, flows: Any) -> ReadBack:
        """Return what a question for flows, one for meters and one for groups, asked at once, are answered."""
        datapath = connection.datapath
        meters, groups = wire.meters_request(datapath), wire.groups_request(datapath)
        batch = self._exchange(connection, [(None, flows), (None, meters), (None, groups)], deadline)
        if batch.refusals:
            self._refuse(datapath.id, batch)
        rules = [wire.to_rule(datapath, entry) for entry in batch.parts.get(flows.xid, ())]
        ours = SwitchState(
            rules=frozenset(rule for rule in rules if is_ours(rule.cookie)),
            meters=wire.to_meters(datapath, batch.parts.get(meters.xid, ())),
            groups=wire.to_groups(datapath, batch.parts.get(groups.xid, ())),
        )
        return ReadBack(ours, frozenset(rule for rule in rules if not is_ours(rule.cookie)))

    def _check_free(
        self, connection: _Connection, shown: SwitchState, difference: Sequence[Message], deadline: _Deadline
    ) -> None:
        """Refuse to overwrite a rule that is not ours: an ADD would replace it without a word.

        Raises:
            RuleTaken: one stands where a rule to be put should.
        """
        datapath = connection.datapath
        wanted = {message.rule.key: message.rule for message in difference if isinstance(message, PutRule)}
        known = {rule.key for rule in shown.rules}
        asked = [(None, wire.flows_like_request(datapath, rule)) for key, rule in wanted.items() if key not in known]
        if not asked:
            return
        batch = self._exchange(connection, asked, deadline)
        for entry in itertools.chain.from_iterable(batch.parts.values()):
            rule = wire.to_rule(datapath, entry)
            if rule.key in wanted and not is_ours(rule.cookie):
                raise RuleTaken(datapath.id, wanted[rule.key], rule.cookie)
