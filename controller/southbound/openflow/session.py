"""The one place that puts switch state on the wire and believes only what a switch has confirmed.

The os-ken application (``apps/openflow.py``) tells :class:`SwitchSessions` of switches and their answers; the service
asks it to ``apply`` a desired state or to read back what is ``installed``. Threads: any may call; per switch one call
runs at a time; the service is told of switches in a thread of ours, so it may call back at once.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import structlog

from controller.plan.wiring import SeenPorts
from controller.security.tls import ShownEnd
from controller.southbound.errors import SwitchGone, SwitchRefused, SwitchTimeout
from controller.southbound.openflow import wire
from controller.southbound.openflow.connection import Confirmed, Deadline, ReadBack, SwitchConnection
from controller.southbound.openflow.foreign import Ignored, beside, without_ignored
from controller.southbound.openflow.messages import Barrier, at_once, messages
from controller.southbound.openflow.state import SwitchState, is_ours
from controller.southbound.openflow.switch_listener import SwitchListener
from controller.southbound.openflow.teller import Teller

# Open vSwitch calls at once after its own start, without a rule, and a second after its connection was cut.
BACK_WITHIN_S = 2.0  # so long a switch that has gone is expected back
ANSWERS_WITHIN_S = 1.0  # a switch that is there answers an echo (OpenFlow 1.3, section 7.5.3) in milliseconds

_log = structlog.get_logger()


class SwitchSessions:
    """The connected switches: those that have taken us for their master under our term.

    A switch obeys the master of the highest term alone (OpenFlow 1.3, section 6.3.6): one of us that wakes up after
    another has followed it changes nothing any more. Nothing is written to a switch before it has answered that.
    """

    def __init__(
        self,
        listener: SwitchListener,
        term: int,
        ignored: tuple[Ignored, ...] = (),
        others_term: Callable[[], int] | None = None,
        leads: Callable[[], bool] = lambda: True,
        ours: frozenset[int] | None = None,
    ) -> None:
        """Start with no switch.

        Args:
            listener: who hears of switches.
            term: under which we lead; ``generation_id`` to a switch.
            ignored: the rules that are left alone although they have our cookie.
            others_term: for one that stands by until :meth:`lead`, the term of who leads: it asks to be a slave.
            leads: whether nobody else can lead by now. A switch that has just started has forgotten all terms, and
                would obey whoever asks first; so only who is sure asks.
            ours: the datapath ids of the network's switches, None for any; another one goes on to obey whom it obeys.
        """
        self._listener = listener
        self._term = term
        self._others_term = others_term
        self._leads = leads
        self._ignored = ignored
        self._ours = ours
        self._asked: dict[int, SwitchConnection] = {}  # not yet connections: they have not taken us for their master
        self._connections: dict[int, SwitchConnection] = {}
        self._claimants: dict[int, SwitchConnection] = {}  # who wait until it is known whether the first is there
        self._told_up: set[int] = set()  # the switches that the listener holds for there
        self._gone_s: dict[int, float] = {}  # when a switch went, of time.monotonic()
        self._lock = threading.Lock()  # guards these
        self._arrived = threading.Condition(self._lock)
        self._changes = Teller()

    # ---- called by the os-ken application ----

    def connected(self, datapath: Any) -> None:
        """Take in a switch that has finished the OpenFlow handshake, and ask to be its master.

        Under the datapath id of a switch that is there nobody takes its place: another switch is turned away, and who
        looks the same waits until the first one leaves an echo unanswered, as one does whose connection was cut. With
        TLS another switch is turned away at any time: the certificate is for one datapath id.
        """
        claimant = SwitchConnection(datapath, is_ours=self._ours is None or datapath.id in self._ours)
        if datapath.certified_dpid not in {None, datapath.id}:
            dpid, certified = (f"{one:#018x}" for one in (datapath.id, datapath.certified_dpid))
            _log.warning("switch.not_its_own", dpid=dpid, certified=certified, address=claimant.address)
            datapath.close()
            return
        with self._lock:
            first = self._connections.get(datapath.id)
            is_another = first is not None and first.is_another(claimant)
            must_leave = is_another or (first is not None and datapath.id in self._claimants)
            if first is not None and not must_leave:
                self._claimants[datapath.id] = claimant
            if first is None:
                displaced, self._asked[datapath.id] = self._asked.get(datapath.id), claimant
        if must_leave:
            self._turn_away(claimant)
        elif first is not None:
            self._ask_whether_there(first, claimant)
        else:
            if displaced is not None:  # it had not taken us for its master yet
                displaced.datapath.close()
            self._ask_role(claimant)

    def _ask_role(self, connection: SwitchConnection) -> None:
        """Ask a switch to obey us, once we are sure to lead; while we stand by, to tell us of its ports alone."""
        if (others_term := self._others_term) is not None:
            connection.ask_to_stand_by(others_term())
        elif self._leads():
            connection.ask_to_lead(self._term)
        else:
            _log.warning("switch.not_asked", dpid=f"{connection.datapath.id:#018x}", why="another may lead by now")

    def _turn_away(self, claimant: SwitchConnection) -> None:
        """End a connection under the datapath id of a switch that is there, and tell of it."""
        self._changes.put(partial(self._listener.claimed, claimant.datapath.id, claimant.address))
        claimant.datapath.close()

    def _ask_whether_there(self, first: SwitchConnection, claimant: SwitchConnection) -> None:
        """Send an echo to a switch for whose place somebody waits; that one has it if there is no answer in time."""
        late = threading.Timer(ANSWERS_WITHIN_S, self._replace, (first, claimant))
        late.daemon = True
        late.start()
        if not first.ask_whether_there():  # it has ended
            self._replace(first, claimant)

    def _replace(self, first: SwitchConnection, claimant: SwitchConnection) -> None:
        """Give the place of a switch that does not answer to who waits for it; nothing if that is settled."""
        dpid = claimant.datapath.id
        with self._lock:
            if self._claimants.get(dpid) is not claimant:
                return
            del self._claimants[dpid]
            self._asked[dpid] = claimant
        _log.warning("switch.replaced", dpid=f"{dpid:#018x}", address=claimant.address, before=first.address)
        first.datapath.close()
        self._ask_role(claimant)

    def _answered_echo(self, first: SwitchConnection) -> None:
        """Turn away who waits for the place of a switch that is there."""
        with self._lock:
            claimant = self._claimants.pop(first.datapath.id, None)
        if claimant is not None:
            self._turn_away(claimant)

    def _answered_role(self, connection: SwitchConnection, msg: Any) -> None:
        """Take in what a switch says to our wish to be its master."""
        if wire.is_error(msg) and wire.is_outranked(msg):
            self._let_go(connection)
            return
        datapath = connection.datapath
        if wire.is_error(msg):  # it knows no roles: everybody is its master
            _log.warning("switch.no_roles", dpid=f"{datapath.id:#018x}", error=wire.error_of(msg)[2])
        with self._lock:
            if self._asked.get(datapath.id) is not connection:
                return  # a newer connection has been asked meanwhile, or it has gone
            del self._asked[datapath.id]
            older = self._connections.get(datapath.id)
            self._connections[datapath.id] = connection
            self._told_up.add(datapath.id)
            if older is not None:
                older.end()
            ports = dict(connection.ports)
            self._arrived.notify_all()
        _log.info("switch.up", dpid=f"{datapath.id:#018x}", address=connection.address)
        if connection.is_ours:
            connection.limits.ask()
        self._changes.put(partial(self._listener.switch_up, datapath.id, connection.address, ports))

    def _let_go(self, connection: SwitchConnection) -> None:
        """End a connection to a switch that obeys a controller of a later term."""
        self._changes.put(partial(self._listener.led_by_another, connection.datapath.id, connection.address))
        connection.datapath.close()

    def disconnected(self, datapath: Any) -> None:
        """Take in that a connection has ended; whoever waits on it is told at once."""
        with self._lock:
            connection, dpid = self._known(datapath), datapath.id
            if connection is None:
                return  # it never finished the handshake, or a newer connection has replaced it
            kept = next(its for its in (self._asked, self._connections, self._claimants) if its.get(dpid) is connection)
            del kept[dpid]
            if kept is self._claimants or dpid in self._connections or dpid not in self._told_up:
                return  # who stood by has told of some that have not obeyed it since, and says that they are gone
            self._told_up.remove(dpid)
            if connection.is_ours:  # another one is not waited for, and there may be any number of them
                self._gone_s[dpid] = time.monotonic()
            connection.end()
            claimant = self._claimants.get(dpid)
        (_log.warning if self._leads() else _log.info)("switch.down", dpid=f"{dpid:#018x}")
        self._changes.put(partial(self._listener.switch_down, dpid))
        if claimant is not None:
            self._replace(connection, claimant)

    def port_changed(self, msg: Any) -> None:
        """Take in that a port has come, gone, or changed its state."""
        port_no, port = wire.changed_port(msg)
        with self._lock:
            connection = self._known(msg.datapath)
            if connection is None:
                return
            connection.ports.pop(port_no, None)
            if port is not None:
                connection.ports[port_no] = port
            if connection is not self._connections.get(msg.datapath.id):
                return  # told with all the others, once it is a connection
        is_live = port is not None and port.is_live
        _log.info("switch.port", dpid=f"{msg.datapath.id:#018x}", port_no=port_no, is_live=is_live)
        self._changes.put(partial(self._listener.port_said, msg.datapath.id, port_no, port))

    def answered(self, msg: Any) -> None:
        """Take in a barrier reply, a multipart reply, a role reply, an echo reply or an error from a switch."""
        with self._lock:
            connection = self._known(msg.datapath)
        if wire.is_echo_reply(msg):
            if connection is not None and connection.echo_xid == msg.xid:
                self._answered_echo(connection)
            return
        if connection is not None and connection.role_xid == msg.xid:
            self._answered_role(connection, msg)
            return
        if connection is not None and connection.answered(msg):
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
            self._changes.put(partial(self._listener.rule_gone, msg.datapath.id))

    # ---- called by the service ----

    def lead(self, term: int) -> None:
        """Lead from now on, under a term: ask every switch to obey us; until it does it is as one that has gone."""
        with self._lock:
            self._term, self._others_term = term, None
            self._gone_s.update(dict.fromkeys(self._connections, time.monotonic()))
            self._asked, self._connections = {**self._asked, **self._connections}, {}
            asked = tuple(self._asked.values())
        for connection in asked:
            connection.ask_to_lead(term)

    def dpids(self) -> frozenset[int]:
        """Return the switches connected now."""
        with self._lock:
            return frozenset(self._connections)

    def certificates(self) -> dict[int, ShownEnd]:
        """Return, by connected switch, when the certificate ends that it has shown; none of those without TLS."""
        with self._lock:
            shown = {dpid: one.datapath.certificate for dpid, one in self._connections.items()}
        return {dpid: end for dpid, end in shown.items() if end is not None}

    def ask_waiting(self) -> None:
        """Ask those to obey us that called while we were not sure to lead: we are again."""
        with self._lock:
            waiting = [connection for connection in self._asked.values() if connection.role_xid is None]
        for connection in waiting:
            self._ask_role(connection)

    def still_obeying(self, timeout_s: float) -> frozenset[int]:
        """Return the switches that say, asked now, that we are their one master; who is late is not among them."""
        with self._lock:
            asked, deadline = dict(self._connections), Deadline.after(timeout_s)
        for connection in asked.values():
            connection.role.ask()
        return frozenset(dpid for dpid, one in asked.items() if one.role.is_master(deadline.left_s()))

    def ports(self, dpid: int, timeout_s: float = 0.0) -> SeenPorts:
        """Return the ports of a switch, as it has shown them; one that has just gone is waited for, at most so long.

        Raises:
            SwitchGone: it is not connected.
        """
        with self._arrived:
            connection = self._there(dpid, timeout_s)
            return dict(connection.ports)

    def ports_heard(self, dpid: int) -> SeenPorts | None:
        """Return the ports of a switch that has called, whether it obeys us yet or not; None if it has not."""
        with self._lock:
            connection = self._connections.get(dpid) or self._asked.get(dpid)
            return None if connection is None else dict(connection.ports)

    def unlike(self, known: Mapping[str, Confirmed]) -> set[str]:
        """Return those of some switches that are gone, show other ports, or have not confirmed the very state last."""
        with self._lock:
            return {name for name, one in known.items() if not one.is_of(self._connections.get(one.dpid))}

    def apply(self, dpid: int, desired: SwitchState, timeout_s: float) -> int:
        """Bring a switch to ``desired``; return, once it has confirmed everything, how many messages that took.

        Args:
            dpid: the switch.
            desired: all that is to be ours on it.
            timeout_s: for the whole, seconds.

        Raises:
            SwitchRefused: it refused a message. Nothing after the next awaited barrier was sent; the next call reads
                back what it has.
            SwitchGone: it is not connected, or went away before it had confirmed.
            SwitchTimeout: it did not confirm in time.
            SwitchTooSmall: it has said that it does not hold so much; nothing was sent.
            RuleTaken: a rule that is not ours stands where one of ours should; nothing was sent.
            NotSettable: the state is not ours to set.
        """
        deadline = Deadline.after(timeout_s)
        with self._call(dpid, deadline) as connection:
            shown = connection.confirmed  # os-ken's thread may take it away: a rule has gone
            if shown is None:
                shown = connection.read(deadline, wire.our_flows_request(connection.datapath)).ours
                connection.confirmed = shown
            connection.limits.known.check(dpid, desired)
            rest = without_ignored(desired, shown, self._ignored)
            difference = messages(desired, rest)
            connection.check_free(shown.rules - desired.rules, difference, deadline)
            if not difference:
                if rest is shown and connection.confirmed is shown:
                    connection.confirmed = desired  # the same, and known by identity from now on
                return 0
            connection.confirmed = None  # unknown until the last barrier
            for together in at_once(difference):
                connection.send(together, deadline)
            # the very same rules where nothing is spared: then they need not be looked at again
            connection.confirmed = desired if rest is shown else beside(desired, shown, rest)
        sent = sum(not isinstance(message, Barrier) for message in difference)
        _log.info("switch.applied", dpid=f"{dpid:#018x}", messages=sent)
        return sent

    def installed(self, dpid: int, timeout_s: float = 5.0) -> SwitchState:
        """Return what is ours on a switch, read back from it now; raises what :meth:`read` does."""
        return self.read(dpid, timeout_s).ours

    def read(self, dpid: int, timeout_s: float = 5.0) -> ReadBack:
        """Return what is on a switch, ours and others', read back from it now.

        Raises:
            SwitchGone: it is not connected, or went away before it had answered.
            SwitchTimeout: it did not answer in time.
        """
        deadline = Deadline.after(timeout_s)
        with self._call(dpid, deadline) as connection:
            connection.confirmed = None
            seen = connection.read(deadline, wire.flows_request(connection.datapath))
            connection.confirmed = seen.ours
            return seen

    def close(self) -> None:
        """End the thread that tells of changes, after those already under way."""
        self._changes.close()

    def _known(self, datapath: Any) -> SwitchConnection | None:
        """Return the connection over a datapath, whether it has taken us for its master yet or not; under the lock."""
        for connections in (self._asked, self._connections, self._claimants):
            connection = connections.get(datapath.id)
            if connection is not None and connection.datapath is datapath:
                return connection
        return None

    def _there(self, dpid: int, timeout_s: float) -> SwitchConnection:
        """Return the connection of a switch, under the lock; one that has just gone is waited for.

        Raises:
            SwitchGone: it is not connected.
        """
        back_s = self._gone_s.get(dpid, -BACK_WITHIN_S) + BACK_WITHIN_S - time.monotonic()
        self._arrived.wait_for(lambda: dpid in self._connections, min(max(0.0, back_s), timeout_s))
        if dpid not in self._connections:
            raise SwitchGone(dpid)
        return self._connections[dpid]

    @contextmanager
    def _call(self, dpid: int, deadline: Deadline) -> Iterator[SwitchConnection]:
        """Hold the connection of ``dpid`` for one call; a switch that has just gone is waited for."""
        with self._arrived:
            connection = self._there(dpid, deadline.left_s())
        if not connection.calls.acquire(timeout=deadline.left_s()):
            raise SwitchTimeout(dpid, deadline.timeout_s)
        try:
            yield connection
        except SwitchRefused as refused:
            if refused.is_outranked:
                self._let_go(connection)
            raise
        finally:
            connection.calls.release()
