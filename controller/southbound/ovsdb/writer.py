"""Queues of switch ports, set through OVSDB (RFC 7047): ours only, in one transaction, done when the switch says so.

A live connection is kept, so that a change costs one round trip to the database and one to ovs-vswitchd. Rows are
changed in place: a queue row that keeps its identity makes ovs-vswitchd change the HTB class under way instead of
tearing it down. Rows we make carry ``external_ids:headway``; others are never touched.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self

import structlog

from controller.security.tls import ServerTls, ShownEnd
from controller.southbound.errors import (
    DatabaseGone,
    DatabaseRefused,
    QueueError,
    QueuesNotApplied,
)
from controller.southbound.ovsdb.our_rows import OurRows
from controller.southbound.ovsdb.queues import PortQueues, Queue, check_queues
from controller.southbound.ovsdb.replica import replica
from controller.southbound.ovsdb.rows import number, port_queues_of
from controller.southbound.ovsdb.secured import SecuredRemote

__all__ = ["PortQueues", "Queue", "QueueWriter"]

_RESTATED = "headway-restated"  # key in external_ids of a QoS: how often the kernel had to be put right
_CONNECTING_S = 0.1  # the package gives up a handshake that it has not gone on with for a second
_KEEP_ALIVE_S = 1.0  # the server asks an idle client for a sign of life every 5 s

_log = structlog.get_logger()


class QueueWriter:
    """Writes queues to one OVSDB server; any thread may call, one call runs at a time."""

    def __init__(
        self,
        remote: str,
        tls: ServerTls | None = None,
        dpids: frozenset[int] = frozenset(),
        term: int | None = None,
    ) -> None:
        """Begin to connect.

        Args:
            remote: ``unix:PATH``, ``tcp:ADDRESS:PORT`` or ``ssl:ADDRESS:PORT``.
            tls: our files for ``ssl:``.
            dpids: of the switches whose queues are there; with ``ssl:`` the server must have one's certificate.
            term: under which we lead: where somebody of a later one has written, we write no more. None for who writes
                whoever leads.

        Raises:
            OSError: a TLS file cannot be read, or does not fit the others.
        """
        self.remote = remote
        self._lock = threading.Lock()  # guards _idl
        self._secured = SecuredRemote(remote, tls, dpids) if tls is not None else None
        self._idl = replica(remote, self._secured)
        self._rows = OurRows(self._idl, remote, term)
        self._closing = threading.Event()
        self._keeper = threading.Thread(target=self._keep_alive, name="ovsdb-keep-alive", daemon=True)
        self._keeper.start()

    def lead(self, term: int) -> None:
        """Write under a term from now on; for one that stood by, and has written nothing."""
        with self._lock:
            self._rows.lead(term)

    def certificate(self) -> tuple[int, ShownEnd] | None:
        """Return which switch's certificate the server has shown, and when that ends; None without TLS to it now."""
        return None if self._secured is None else self._secured.shown

    def apply(self, wanted: Mapping[str, PortQueues], timeout_s: float) -> int:
        """Bring ports to the queues wanted; return, once ovs-vswitchd has acted on them, how many ports it changed.

        Where one port cannot have them, the others have them nevertheless.

        Args:
            wanted: queues by port name; ports not named stay as they are.
            timeout_s: for the whole, seconds.

        Raises:
            DatabaseGone: the server cannot be reached, or did not answer in time.
            DatabaseOutranked: somebody who leads under a later term has written there; nothing was changed.
            DatabaseRefused: the server refused; nothing was changed.
            NoSuchPort: the database has no such port.
            ForeignQos: a port carries a QoS that is not ours; it was left.
            RateTooHigh: the switch's Open vSwitch would set another rate.
            NotExpressible: a value that would not do what it says; nothing was changed.
            QueuesNotApplied: written, and ovs-vswitchd did not act in time.
        """
        changed, failed = self._applied(wanted, timeout_s)
        for error in failed.values():
            raise error
        return changed

    def apply_each(self, wanted: Mapping[str, PortQueues], timeout_s: float) -> dict[str, QueueError]:
        """Bring ports to the queues wanted, in one transaction; return which of them cannot have them, and why.

        Raises:
            DatabaseGone: the server cannot be reached, or did not answer in time.
            DatabaseOutranked: somebody who leads under a later term has written there; nothing was changed.
            DatabaseRefused: the server refused; nothing was changed.
            NotExpressible: a value that would not do what it says; nothing was changed.
            QueuesNotApplied: written, and ovs-vswitchd did not act in time.
        """
        return self._applied(wanted, timeout_s)[1]

    def _applied(self, wanted: Mapping[str, PortQueues], timeout_s: float) -> tuple[int, dict[str, QueueError]]:
        """Return how many ports were changed, and those that cannot have what is wanted."""
        for queues in wanted.values():
            check_queues(queues)
        changed: list[bool] = []
        failed: dict[str, QueueError] = {}

        def compose(transaction: Any) -> bool:
            changed.clear()
            failed.clear()
            for name, queues in wanted.items():
                try:
                    changed.append(self._rows.write(transaction, name, queues))
                except QueueError as error:  # raised before anything is written of that port
                    failed[name] = error
            return any(changed)

        self._transact(compose, timeout_s, wanted.keys())
        return sum(changed), failed

    def take_off_others(self, port_names: Collection[str], dpids: Collection[int], timeout_s: float) -> None:
        """Take our queues off ports that had them and are no circuit's any more; return once ovs-vswitchd has acted.

        Args:
            port_names: the ports that are to have queues.
            dpids: of the switches whose other ports are to have none of ours; other bridges are somebody else's.
            timeout_s: for the whole, seconds.

        Raises:
            DatabaseGone: the server cannot be reached, or did not answer in time.
            DatabaseOutranked: somebody who leads under a later term has written there; nothing was changed.
            DatabaseRefused: the server refused; nothing was changed.
            QueuesNotApplied: written, and ovs-vswitchd did not act in time.
        """
        self._transact(lambda _: self._rows.take_off_others(port_names, dpids), timeout_s)

    def restate(self, port_names: Collection[str], timeout_s: float) -> None:
        """Have ovs-vswitchd put the kernel's classes of our ports right; return once it has.

        At any new configuration it gives every class of every port to the kernel again, in place: no packet that waits
        is lost. A mark in our own row is the least that makes one.

        Raises:
            DatabaseGone: the server cannot be reached, or did not answer in time.
            DatabaseOutranked: somebody who leads under a later term has written there; nothing was changed.
            DatabaseRefused: the server refused; nothing was changed.
            NoSuchPort: the database has no such port.
            ForeignQos: a port carries a QoS that is not ours.
            QueuesNotApplied: written, and ovs-vswitchd did not act in time.
        """

        def compose(_transaction: Any) -> bool:
            marked = [qos for name in port_names if (qos := self._rows.our_qos(self._rows.port(name))) is not None]
            for qos in marked:
                count = number(qos.external_ids, _RESTATED) + 1
                qos.external_ids = {**qos.external_ids, _RESTATED: str(count)}
            return bool(marked)

        self._transact(compose, timeout_s, port_names)

    def reattach(self, port_name: str, timeout_s: float) -> None:
        """Take our queues off a port and put them on again: its kernel has lost them whole, so no packet waits there.

        Raises:
            DatabaseGone: the server cannot be reached, or did not answer in time.
            DatabaseOutranked: somebody who leads under a later term has written there; nothing was changed.
            DatabaseRefused: the server refused.
            NoSuchPort: the database has no such port.
            ForeignQos: the port carries a QoS that is not ours.
            QueuesNotApplied: written, and ovs-vswitchd did not act in time.
        """
        taken: list[Any] = []

        def off(_transaction: Any) -> bool:
            port = self._rows.port(port_name)
            taken[:] = [] if self._rows.our_qos(port) is None else [port.qos[0]]
            port.qos = []
            return bool(taken)

        def on(_transaction: Any) -> bool:
            port = self._rows.port(port_name)
            port.verify("qos")
            if not port.qos:
                port.qos = taken
            return bool(taken)

        self._transact(off, timeout_s, (port_name,))
        self._transact(on, timeout_s, (port_name,))

    def installed(self, port_name: str, timeout_s: float = 5.0) -> PortQueues | None:
        """Return our queues of a port as the database has them; None if it carries none.

        Raises:
            DatabaseGone: the server cannot be reached.
            NoSuchPort: the database has no such port.
            ForeignQos: the port carries a QoS that is not ours.
        """
        with self._lock:
            self._connect(_deadline(timeout_s), timeout_s)
            qos = self._rows.our_qos(self._rows.port(port_name))
            return None if qos is None else port_queues_of(qos)

    def close(self) -> None:
        """End the connection; queues stay."""
        self._closing.set()
        self._keeper.join()
        with self._lock:
            self._idl.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        """Close."""
        self.close()

    # ---- the connection ----

    def _keep_alive(self) -> None:
        """Answer the server and follow its changes while nobody calls."""
        wait_s = _KEEP_ALIVE_S
        while not self._closing.wait(wait_s):
            with self._lock:
                if self._secured is not None and self._secured.must_end():
                    _log.warning("ovsdb.revoked", remote=self.remote)
                    self._idl.force_reconnect()
                self._idl.run()
                wait_s = _KEEP_ALIVE_S if self._idl._session.is_connected() else _CONNECTING_S

    def _run_until(self, done: Callable[[], bool], deadline_s: float) -> bool:
        """Run the connection until ``done()``; return False if the deadline passes first."""
        from ovs.poller import Poller

        while True:
            self._idl.run()
            if done():
                return True
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return False
            poller = Poller()
            self._idl.wait(poller)
            poller.timer_wait(max(1, int(left_s * 1000)))
            poller.block()

    def _connect(self, deadline_s: float, timeout_s: float) -> None:
        """Return once we hold the database's present content.

        Raises:
            DatabaseGone: not in time.
        """

        def ready() -> bool:
            idl = self._idl  # a database that nobody has initialised has no top row yet
            has_all = idl.state == idl.IDL_S_MONITORING and idl.tables["Open_vSwitch"].rows
            return bool(has_all and idl._session.is_connected())

        if not self._run_until(ready, deadline_s):
            raise DatabaseGone(self.remote, timeout_s)

    def _transact(self, compose: Callable[[Any], bool], timeout_s: float, port_names: Collection[str] = ()) -> None:
        """Commit what ``compose`` writes of ports, if it says that it wrote; wait for ovs-vswitchd in any case.

        In any case: an earlier call may have written the same and given up waiting.
        """
        deadline_s = _deadline(timeout_s)
        with self._lock:
            asked_cfg = self._commit(compose, port_names, deadline_s, timeout_s)
            if not self._run_until(lambda: self._rows.reached_cfg >= asked_cfg, deadline_s):
                raise QueuesNotApplied(self.remote, timeout_s, asked_cfg, self._rows.reached_cfg)

    def _commit(
        self, compose: Callable[[Any], bool], port_names: Collection[str], deadline_s: float, timeout_s: float
    ) -> int:
        """Return the number of the configuration that ovs-vswitchd has to reach."""
        from ovs.db.idl import Transaction

        while True:
            self._connect(deadline_s, timeout_s)
            before = self._idl.change_seqno
            transaction = Transaction(self._idl)
            try:
                raised = self._rows.fence(port_names)
                if not compose(transaction) and not raised:
                    transaction.abort()
                    return int(self._rows.top.next_cfg)
            except QueueError:
                transaction.abort()
                raise
            self._rows.top.increment("next_cfg")
            transaction.commit()
            if not self._run_until(partial(_is_over, transaction), deadline_s):
                raise DatabaseGone(self.remote, timeout_s)
            match transaction.commit():
                case transaction.SUCCESS:
                    _log.info("queues.written", remote=self.remote, cfg=transaction.get_increment_new_value())
                    return int(transaction.get_increment_new_value())
                case transaction.TRY_AGAIN:  # somebody else wrote meanwhile, or the connection broke
                    if not self._run_until(partial(self._has_moved, before), deadline_s):
                        raise DatabaseGone(self.remote, timeout_s)
                case _:
                    raise DatabaseRefused(self.remote, transaction.get_error())

    def _has_moved(self, seqno: int) -> bool:
        """Return whether our copy of the database has changed since ``seqno``."""
        return bool(self._idl.change_seqno != seqno)


def _is_over(transaction: Any) -> bool:
    """Return whether the server has answered."""
    return bool(transaction.commit() != transaction.INCOMPLETE)


def _deadline(timeout_s: float) -> float:
    """Return the instant ``timeout_s`` from now, of time.monotonic()."""
    return time.monotonic() + timeout_s
