"""os-ken without its command line, and the repairs of its native hub that a controller cannot run without.

Each repair replaces one name of os-ken by a small class of ours, says which defect it mends, and has one test in
``tests/test_osken_hub.py`` that fails without it. ``docs/decisions/0001-os-ken-native-hub.md`` has the reasons.
"""

import contextlib
import itertools
import select
import selectors
import socket
import ssl
import threading
import time
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import structlog
from os_ken import cfg
from os_ken.base import app_manager  # must come before os_ken.controller.controller: they import each other
from os_ken.controller import controller, ofp_handler
from os_ken.lib import hub
from os_ken.ofproto import ofproto_parser

from controller.security.connections import network_of
from controller.security.rates import Rates
from controller.security.said import SaidSeldom
from controller.security.tls import Credentials, ServerTls, shown_serial
from controller.southbound.errors import FrameworkUnknown
from controller.southbound.openflow.lengths import Checked
from controller.southbound.openflow.visitors import (
    BURST_US,
    PER_S,
    SWITCH_WITHIN_S,
    Visitor,
    Visitors,
    certified_dpid,
    why_no_switch,
)
from topology.protocol import SAID_AGAIN_S

KNOWN_VERSIONS = ("4.2.0", "4.2.1", "4.2.2")  # the repair tests have passed on these
_LOOK_EVERY_S = 1.0  # whether the files of TLS have changed, and who is late
_LATE = f"no switch within {SWITCH_WITHIN_S:g} s"

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Address:
    """Where we listen for switches.

    Attributes:
        host: IPv4 or IPv6 address; empty for all.
        port: TCP port; 0 lets the system choose one.
        tls: mutual TLS, in which a switch's certificate has its datapath id; or None for plain TCP.
        echo_interval_s: time between two echo requests to a switch, seconds; a switch that leaves two unanswered is
            gone. A closed connection is noticed at once and needs no echo.
    """

    host: str = "127.0.0.1"
    port: int = 6653  # IANA: openflow
    tls: ServerTls | None = None
    echo_interval_s: float = 1.0


class TaskExit(BaseException):
    """Repair 1. ``hub.TaskExit`` was ``Exception``, so any exception in a handler ended the event loop in silence."""


class DaemonThread(hub.HubThread):  # type: ignore[misc]
    """Repair 2. Threads of the hub were not daemons and ``hub.kill`` does nothing: the process never ended."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take what ``HubThread`` takes."""
        super().__init__(*args, **kwargs)
        self.daemon = True


class LockedTls:
    """Repair 3. A TLS socket whose read and write never overlap.

    os-ken reads in one thread and writes in another. CPython before 3.13.1 has no lock in an SSL object, and OpenSSL
    breaks the connection. The socket underneath never blocks, so the lock is never held while waiting.
    """

    def __init__(self, wrapped: ssl.SSLSocket) -> None:
        """Take over a connected TLS socket."""
        self._wrapped = wrapped
        self._lock = threading.Lock()
        self._timeout_s: float | None = None
        wrapped.setblocking(False)

    def __getattr__(self, name: str) -> Any:
        """Leave all else to the socket."""
        return getattr(self._wrapped, name)

    def settimeout(self, timeout_s: float | None) -> None:
        """Set how long ``recv`` and ``sendall`` wait, seconds; None is for ever."""
        self._timeout_s = timeout_s

    def recv(self, size_bytes: int) -> bytes:
        """Return what has arrived, at most ``size_bytes``; nothing at the end of the stream.

        Raises:
            TimeoutError: nothing arrived in time.
            ConnectionError: TLS is broken; os-ken would try again for ever on an SSLError.
        """
        while True:
            try:
                with self._lock:
                    return self._wrapped.recv(size_bytes)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as want:
                self._wait(want)
            except ssl.SSLError as broken:
                raise ConnectionError(str(broken)) from broken

    def sendall(self, data: bytes) -> None:
        """Send all of ``data``.

        Raises:
            TimeoutError: the other end took nothing in time.
        """
        rest = memoryview(data)
        while rest:
            try:
                with self._lock:
                    rest = rest[self._wrapped.send(rest) :]
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as want:
                self._wait(want)

    def _wait(self, want: ssl.SSLError) -> None:
        """Wait, outside the lock, for what TLS wants."""
        poll = select.poll()
        poll.register(self._wrapped, select.POLLIN if isinstance(want, ssl.SSLWantReadError) else select.POLLOUT)
        if not poll.poll(None if self._timeout_s is None else self._timeout_s * 1000):
            raise TimeoutError("timed out")


class Datapath(controller.Datapath):  # type: ignore[misc]
    """A connection that ends when it ends.

    Repair 4. The send loop slept for ever on its queue after the switch had gone, so nobody was told that it had, and
    a thread was lost each time. Repair 5. Two threads could draw the same transaction id, by which we match errors.
    """

    def __init__(self, connected: Any, address: Any, certified_dpid: int | None = None) -> None:
        """Take what os-ken's ``Datapath`` takes, and the datapath id that its certificate has; None without TLS."""
        self.certified_dpid = certified_dpid
        self._xids = itertools.count(1)  # next() on it is atomic
        super().__init__(LockedTls(connected) if isinstance(connected, ssl.SSLSocket) else connected, address)

    def set_xid(self, msg: Any) -> int:
        """Give ``msg`` a transaction id of its own."""
        xid: int = next(self._xids) & self.ofproto.MAX_XID
        msg.set_xid(xid)
        return xid

    def send(self, buf: bytes, close_socket: bool = False) -> bool:
        """Queue ``buf``; return whether the connection still took it."""
        self._send_q_sem.acquire()
        send_queue = self.send_q  # read once: the send loop sets it to None when it ends
        if send_queue is None:
            self._send_q_sem.release()
            return False
        send_queue.put((buf, close_socket))
        return True

    def close(self) -> None:
        """Announce the end, and wake the send loop so that its thread ends too."""
        super().close()
        send_queue = self.send_q
        if send_queue is not None and self._send_q_sem.acquire(blocking=False):  # a full queue wakes it by itself
            send_queue.put((b"", True))

    def _recv_loop(self) -> None:
        try:
            super()._recv_loop()
        finally:
            self.close()


class Listener:
    """Repair 7. Our own listening socket in place of os-ken's ``OpenFlowController``.

    os-ken binds in a thread, so a port in use leaves a deaf controller that looks healthy; it cannot stop listening;
    it takes whoever comes; and it also opens the old port 6633. This one binds before it returns, and closes.
    """

    def __init__(self, address: Address) -> None:
        """Bind.

        Raises:
            OSError: the address is in use, or not ours.
        """
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        self._credentials = Credentials(address.tls, ssl.TLSVersion.TLSv1_2) if address.tls else None
        self._visitors = Visitors()
        self._rates = Rates.monotonic(PER_S, BURST_US)
        self._said = SaidSeldom(SAID_AGAIN_S)
        self._looked_s = time.monotonic()
        self._closing = threading.Event()
        self._waiting = selectors.DefaultSelector()
        self._server = socket.create_server((address.host, address.port), family=family, backlog=128)
        self._server.setblocking(False)
        self._waiting.register(self._server, selectors.EVENT_READ)
        self.host, self.port = self._server.getsockname()[:2]

    def __call__(self) -> None:
        """Serve each switch in a thread of its own, until closed; who says nothing has none."""
        while not self._closing.is_set():
            for key, _ in self._waiting.select(_LOOK_EVERY_S):
                if key.data is None:
                    self._accept()
                elif key.fd in self._waiting.get_map():  # it has not had to leave a moment ago
                    self._begin(key.data)
            self._look()
        for key in list(self._waiting.get_map().values()):
            if key.data is not None:
                key.data.connected.close()
        self._waiting.close()

    def close(self) -> None:
        """Stop listening and end all connections."""
        self._closing.set()
        self._server.shutdown(socket.SHUT_RDWR)  # wakes who waits for it, which close() alone does not
        self._server.close()
        for visitor in self._visitors.served():
            visitor.end()

    def _accept(self) -> None:
        """Let somebody in, who has said nothing yet."""
        try:
            connected, peer = self._server.accept()
        except BlockingIOError:
            return
        except OSError as error:
            if not self._closing.is_set():  # such as no file descriptor left: the next may succeed
                _log.error("openflow.accept_failed", error=str(error))
                self._closing.wait(0.1)
            return
        visitor = Visitor(connected, peer, network_of(str(peer[0])), time.monotonic())
        if self._rates.wait_us(visitor.network):
            self._say(visitor, "connects too often")
            connected.close()
            return
        connected.setblocking(False)
        self._waiting.register(connected, selectors.EVENT_READ, visitor)
        leaves = self._visitors.came(visitor)
        if leaves is not None:
            self._dismiss(leaves, "too many connections that say nothing")

    def _begin(self, visitor: Visitor) -> None:
        """Serve somebody who has said something, if it may be a switch and there is a place."""
        try:
            first = visitor.connected.recv(2, socket.MSG_PEEK)
        except OSError:
            first = b""
        why = why_no_switch(first, by_tls=self._credentials is not None) if first else "it hung up"
        if not why and not self._visitors.begins(visitor):
            why = "too many connections"
        if why:
            self._dismiss(visitor, why)
            return
        self._waiting.unregister(visitor.connected)
        visitor.connected.setblocking(True)
        self._look_at_files()
        hub.spawn(self._serve, visitor)

    def _dismiss(self, visitor: Visitor, why: str) -> None:
        """End a connection that nobody serves."""
        self._say(visitor, why)
        self._waiting.unregister(visitor.connected)
        self._visitors.went(visitor)
        visitor.connected.close()

    def _say(self, visitor: Visitor, why: str) -> None:
        """Say why somebody was not let in; the same of the same network once a minute."""
        if self._said.is_first(visitor.network, why, time.monotonic()):
            _log.warning("openflow.connection_failed", peer=visitor.peer, error=why)

    def _look(self) -> None:
        """Cut off who is no switch in time, say what was not said, and use the files of TLS as they are now."""
        now_s = time.monotonic()
        if now_s - self._looked_s < _LOOK_EVERY_S:
            return
        self._looked_s = now_s
        for key in list(self._waiting.get_map().values()):
            if key.data is not None and now_s - key.data.since_s > SWITCH_WITHIN_S:
                self._dismiss(key.data, _LATE)
        for visitor in self._visitors.late(now_s):
            self._say(visitor, _LATE)
            visitor.end()
        for again in self._said.over(now_s):
            _log.warning("openflow.connection_failed", peer=again.network, error=again.why, again=again.times)
        self._look_at_files()

    def _look_at_files(self) -> None:
        """Use the files of TLS as they are now, and end the connections of certificates revoked meanwhile."""
        try:
            if self._credentials is None or not self._credentials.refreshed():
                return
        except OSError as error:
            _log.error("tls.unusable", port="openflow", error=str(error))
            return
        _log.info("tls.read", port="openflow")
        for visitor in self._visitors.served():
            if visitor.serial in self._credentials.revoked:
                _log.warning("openflow.revoked", serial=f"{visitor.serial:x}")
                visitor.end()

    def _serve(self, visitor: Visitor) -> None:
        """Serve one connection to its end."""
        dpid = None
        try:
            if self._credentials is not None:
                visitor.connected.settimeout(SWITCH_WITHIN_S)
                secured = self._credentials.context.wrap_socket(visitor.connected, server_side=True)
                visitor.connected = secured
                shown = secured.getpeercert()
                visitor.serial = shown_serial(shown)
                dpid = certified_dpid(shown, self._credentials.revoked)  # which may have grown since the handshake
            with contextlib.closing(Datapath(visitor.connected, visitor.peer, dpid)) as datapath:
                visitor.datapath = datapath
                datapath.serve()
        except OSError as error:  # includes ssl.SSLError: a stranger, or a handshake that took too long
            self._say(visitor, str(error))
        except Exception as error:  # noqa: BLE001 - os-ken's parsers raise anything at bytes that are no OpenFlow
            self._say(visitor, f"no OpenFlow 1.3: {error!r}"[:300])
        finally:
            self._visitors.went(visitor)
            visitor.connected.close()


def repair() -> None:
    """Put the repairs in place; twice does no harm.

    Raises:
        FrameworkUnknown: os-ken, or its hub, is not one that the repairs were tried on.
    """
    found = version("os-ken")
    if found not in KNOWN_VERSIONS:
        raise FrameworkUnknown(f"os-ken {found}", f"os-ken {' or '.join(KNOWN_VERSIONS)}")
    if hub.HUB_TYPE != "native":
        raise FrameworkUnknown(f"os-ken with its {hub.HUB_TYPE} hub", "OSKEN_HUB_TYPE=native")
    hub.TaskExit = TaskExit
    hub.HubThread = DaemonThread
    hub.Event = threading.Event  # repair 6: wait(timeout) of the hub's own never timed out
    ofproto_parser.msg = Checked.of(ofproto_parser.msg)  # repair 8
    hub.getcurrent = threading.current_thread  # it was one thread, not the function


class Framework:
    """A running os-ken: the listening socket and one application."""

    def __init__(self, listener: Listener, manager: Any) -> None:
        """Made by :func:`start`."""
        self._listener = listener
        self._manager = manager
        self.port = listener.port

    def run(self, handler: type[Any], app: type[Any], **context: Any) -> None:
        """Start os-ken's own handler of OpenFlow and the application."""
        running = [self._manager.instantiate(handler), self._manager.instantiate(app, **context)]
        for each in reversed(running):  # the one that listens last: no event finds nobody
            each.start()

    def stop(self) -> None:
        """Stop listening, end all connections and all threads."""
        self._listener.close()
        self._manager.close()


def start(app: type[Any], address: Address, **context: Any) -> Framework:
    """Start os-ken with one application; return once it listens.

    Args:
        app: the application's class.
        address: where to listen.
        context: handed to the application's ``__init__``.

    Raises:
        FrameworkUnknown: os-ken is not one that the repairs were tried on.
        OSError: the address cannot be listened on.
    """
    repair()
    cfg.CONF(args=[], project="headway", default_config_files=[], default_config_dirs=[])
    cfg.CONF.set_override("echo_request_interval", address.echo_interval_s)
    cfg.CONF.set_override("maximum_unreplied_echo_requests", 1)
    listener = Listener(address)
    ofp_handler.OpenFlowController = lambda: listener
    framework = Framework(listener, app_manager.AppManager())
    try:
        framework.run(ofp_handler.OFPHandler, app, **context)
    except BaseException:
        framework.stop()
        raise
    _log.info("openflow.listening", host=listener.host, port=listener.port, tls=address.tls is not None)
    return framework
