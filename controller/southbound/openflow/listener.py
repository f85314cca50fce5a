"""Who calls on the port for switches: let in, served in a thread of its own once it speaks, or turned away."""

import contextlib
import selectors
import socket
import ssl
import threading
import time
from dataclasses import dataclass

import structlog
from os_ken.lib import hub

from controller.security.connections import counted_as
from controller.security.listening import cannot_listen, listening_at
from controller.security.rates import Rates
from controller.security.said import SaidSeldom
from controller.security.tls import Credentials, ServerTls, shown_end, shown_serial
from controller.southbound.openflow.osken_datapath import Datapath
from controller.southbound.openflow.visitors import (
    BURST_US,
    PER_S,
    SWITCH_WITHIN_S,
    Visitor,
    Visitors,
    certified_dpid,
    why_no_switch,
)
from topology.addresses import shown_peer
from topology.certificates import ENDING_AGAIN_S, ending_days
from topology.protocol import SAID_AGAIN_S

BACKLOG = 128  # switches that call at once
_LOOK_EVERY_S = 1.0  # whether the files of TLS have changed, and who is late
_LATE = f"no switch within {SWITCH_WITHIN_S:g} s"

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Address:
    """Where we listen for switches.

    Attributes:
        host: IPv4 or IPv6 address; ``::`` for all.
        port: TCP port; 0 lets the system choose one.
        tls: mutual TLS, in which a switch's certificate has its datapath id; or None for plain TCP.
        echo_interval_s: time between two echo requests to a switch, seconds; a switch that leaves two unanswered is
            gone. A closed connection is noticed at once and needs no echo.
    """

    host: str = "127.0.0.1"
    port: int = 6653  # IANA: openflow
    tls: ServerTls | None = None
    echo_interval_s: float = 1.0


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
        self._credentials = Credentials(address.tls, ssl.TLSVersion.TLSv1_2) if address.tls else None
        self._visitors = Visitors()
        self._rates = Rates.monotonic(PER_S, BURST_US)
        self._said = SaidSeldom(SAID_AGAIN_S)
        self._looked_s = time.monotonic()
        self._endings_s = self._looked_s + ENDING_AGAIN_S
        self._closing = threading.Event()
        self._waiting = selectors.DefaultSelector()
        try:
            self._server = listening_at(address.host, address.port, BACKLOG)
        except OSError as error:
            where = f"{address.host}:{address.port}"
            raise cannot_listen("switches, listen.openflow,", where, error) from error
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
        visitor = Visitor(connected, peer, counted_as(str(peer[0])), time.monotonic())
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
            _log.warning("openflow.connection_failed", peer=shown_peer(visitor.peer), error=why)

    def _look(self) -> None:
        """Cut off who is no switch in time, say what was not said, and use the files of TLS as they are now.

        Once a day it is said of which switches the certificates end soon.
        """
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
        if now_s >= self._endings_s:
            self._endings_s = now_s + ENDING_AGAIN_S
            for datapath in (visitor.datapath for visitor in self._visitors.served() if visitor.is_switch):
                _note_ending(datapath)
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
        dpid = certificate = None
        try:
            if self._credentials is not None:
                visitor.connected.settimeout(SWITCH_WITHIN_S)
                secured = self._credentials.context.wrap_socket(visitor.connected, server_side=True)
                visitor.connected = secured
                shown = secured.getpeercert()
                visitor.serial = shown_serial(shown)
                dpid = certified_dpid(shown, self._credentials.revoked)  # which may have grown since the handshake
                certificate = shown_end(shown, time.monotonic())
            with contextlib.closing(Datapath(visitor.connected, visitor.peer, dpid, certificate)) as datapath:
                visitor.datapath = datapath
                _note_ending(datapath)
                datapath.serve()
        except OSError as error:  # includes ssl.SSLError: a stranger, or a handshake that took too long
            self._say(visitor, str(error))
        except Exception as error:  # noqa: BLE001 - os-ken's parsers raise anything at bytes that are no OpenFlow
            self._say(visitor, f"no OpenFlow 1.3: {error!r}"[:300])
        finally:
            self._visitors.went(visitor)
            visitor.connected.close()


def _note_ending(datapath: Datapath) -> None:
    """Say that the certificate that a switch has shown ends soon, if it does."""
    if datapath.certificate is None:
        return
    days_left = ending_days(datapath.certificate.end_s, time.time())
    if days_left is not None:
        _log.warning("switch.certificate_ending", dpid=f"{datapath.certified_dpid:#018x}", days_left=days_left)
