"""One agent's connection: a WebSocket, over TLS or plain, on a socket that never blocks.

All of it runs in the event loop's thread: OpenSSL's connections are not to be read and written by two threads at once.
The WebSocket itself is the ``websockets`` package's (its part without I/O). What is refused in the TLS handshake is
told to both: to the owner in words, to the agent by the alert; the socket waits until it has read it and hung up.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import Any, Protocol

from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from controller.security.tls import why_agent_failed
from topology.protocol import ATTACH_PATH, LONGEST_BYTES

MOST_UNSENT_BYTES = 1 << 20  # an agent that has not read this much does not read at all
CLOSE_WITHIN_S = 2.0  # for the other end's part of ending
LONGEST_REASON_BYTES = 123  # RFC 6455 section 5.5: 125 in a control frame, 2 for the code
_READ_BYTES = 1 << 16  # more than a TLS record has (RFC 8446 section 5.1): none is left half read, unseen by the loop
_NO_REQUEST = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_AGAIN = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Owner(Protocol):
    """Who hears of a connection."""

    def heard(self, connection: "AgentConnection", message: bytes) -> None:
        """The agent has sent a message."""

    def ended(self, connection: "AgentConnection", why: str) -> None:
        """The connection is over; said once."""

    def untrusted(self, connection: "AgentConnection", why: str) -> None:
        """The agent did not get as far as a message; ``ended`` follows."""


class AgentConnection:
    """A connection that was accepted.

    Attributes:
        peer: its other end, for people.
        heard_s: when something was received last, in the loop's time.
        names: what the agent's certificate is for; empty without TLS.
        serial: of that certificate; 0 without TLS.
        ends_s: when it expires, Unix seconds; 0 without TLS.
        gives_way: whether it may be ended for another, which is counted until it has said hello.
    """

    gives_way = True

    def __init__(self, loop: asyncio.AbstractEventLoop, sock: socket.socket, peer: str, owner: Owner) -> None:
        self.peer = peer
        self.heard_s = loop.time()
        self.names: tuple[str, ...] = ()
        self.serial = 0
        self.ends_s = 0
        self._loop = loop
        self._sock = sock
        self._fd = sock.fileno()  # for the loop: it would say a socket's addresses each time that it does not know it
        self._owner = owner
        self._protocol = ServerProtocol(max_size=LONGEST_BYTES)
        self._unsent = bytearray()
        self._over = self._last = self._refused = False
        self._writer = False
        self._on_readable: Callable[[], None] = self._receive
        self._sock.setblocking(False)

    def start(self, context: ssl.SSLContext | None) -> None:
        """Begin: with the TLS handshake if there is a context for it."""
        if self._sock.family != socket.AF_UNIX:
            self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            try:
                self._sock = context.wrap_socket(self._sock, server_side=True, do_handshake_on_connect=False)
            except OSError as error:  # it is gone already
                self._gone(why_agent_failed(error))
                return
            self._on_readable = self._shake_hands
        self._loop.add_reader(self._fd, self._ready)

    def _ready(self) -> None:
        self._on_readable()

    def send(self, message: bytes) -> None:
        """Send a message; nothing if the connection is not open any more."""
        if self._protocol.state is State.OPEN and not self._over:
            self._protocol.send_text(message)
            self._flush()

    def close(self, code: CloseCode, reason: str) -> None:
        """Say why, and end; at once if the other end does not do its part."""
        if self._protocol.state is not State.OPEN:
            self._gone(reason)
            return
        self._protocol.send_close(code, reason.encode()[:LONGEST_REASON_BYTES].decode(errors="ignore"))
        self._flush()
        self._loop.call_later(CLOSE_WITHIN_S, self._gone, reason)

    def abort(self, reason: str) -> None:
        """End at once."""
        self._gone(reason)

    def end(self) -> None:
        """End at once, for another."""
        self._gone("too many connections that have not said hello")

    def _shake_hands(self) -> None:
        """Go on with the TLS handshake."""
        assert isinstance(self._sock, ssl.SSLSocket)  # noqa: S101 (for mypy)
        try:
            self._sock.do_handshake()
        except _AGAIN:
            return  # what it has to send is little, and the socket is empty
        except OSError as error:
            self._refuse(why_agent_failed(error))
            return
        shown = self._sock.getpeercert() or {}
        alternative: Any = shown.get("subjectAltName", ())  # pairs; typeshed has them with all that is no pair
        self.names = tuple(name for kind, name in alternative if kind == "DNS")
        self.serial = int(str(shown["serialNumber"]), 16)
        self.ends_s = ssl.cert_time_to_seconds(str(shown["notAfter"]))
        self._on_readable = self._receive
        self._receive()

    def _refuse(self, reason: str) -> None:
        """Let the other end read why, and hang up."""
        self._owner.untrusted(self, reason)
        # Closed at once, what it is still sending would be answered by a reset, and the alert be lost.
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)
        self._on_readable = lambda: self._drain(reason)
        self._loop.call_later(CLOSE_WITHIN_S, self._gone, reason)

    def _drain(self, reason: str) -> None:
        try:
            while self._sock.recv(_READ_BYTES):
                pass
        except _AGAIN:
            return
        except OSError:
            pass  # reset: it is gone as well
        self._gone(reason)

    def _receive(self) -> None:
        """Take in what has come."""
        try:
            data = self._sock.recv(_READ_BYTES)
        except _AGAIN:
            return
        except OSError as error:
            self._gone(why_agent_failed(error))
            return
        if data:
            self._take(data)
        else:
            self._protocol.receive_eof()
            self._gone(self._said())

    def _take(self, data: bytes) -> None:
        self.heard_s = self._loop.time()
        first = self._protocol.state is State.CONNECTING
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, Request):
                self._answer(event)
            elif isinstance(event, Frame):
                self._frame(event)
        if first and self._protocol.handshake_exc is not None and not self._refused:
            self._refused = True
            self._unsent += _NO_REQUEST
            speaks_tls = data[:2] == b"\x16\x03"  # RFC 8446 section 5.1: a handshake record
            self._owner.untrusted(self, "the agent speaks TLS, this port does not" if speaks_tls else "is no agent")
        self._flush()

    def _answer(self, request: Request) -> None:
        if self._protocol.eof_sent:
            return  # what came behind the request was no frame, and has ended it
        wrong = request.path != ATTACH_PATH
        answer = self._protocol.reject(404, "no such path\n") if wrong else self._protocol.accept(request)
        self._protocol.send_response(answer)

    def _frame(self, frame: Frame) -> None:
        if frame.opcode in {Opcode.TEXT, Opcode.BINARY} and frame.fin:
            self._owner.heard(self, bytes(frame.data))
        elif frame.opcode in {Opcode.TEXT, Opcode.BINARY, Opcode.CONT}:
            self._protocol.fail(CloseCode.UNSUPPORTED_DATA, "a message must be one frame")

    def _said(self) -> str:
        """Return why the other end has hung up."""
        said = self._protocol.close_rcvd
        return said.reason or "ended in order" if said is not None else "hung up"

    def _flush(self) -> None:
        """Send what the protocol has to send."""
        for data in self._protocol.data_to_send():
            self._unsent += data
            self._last |= not data  # an empty one means: and then the end
        self._write()

    def _write(self) -> None:
        try:
            while self._unsent and not self._over:
                del self._unsent[: self._sock.send(self._unsent)]
        except _AGAIN:
            self._wait_to_write()
            return
        except OSError as error:
            self._gone(why_agent_failed(error))
            return
        if self._writer:
            self._loop.remove_writer(self._fd)
            self._writer = False
        if self._last:
            self._gone(self._said())

    def _wait_to_write(self) -> None:
        if len(self._unsent) > MOST_UNSENT_BYTES:
            self._gone("does not read what it is sent")
        elif not self._writer:
            self._writer = True
            self._loop.add_writer(self._fd, self._write)

    def _gone(self, reason: str) -> None:
        """Free everything, and say so; once."""
        if self._over:
            return
        self._over = True
        if self._sock.fileno() != -1:
            self._loop.remove_reader(self._fd)
            self._loop.remove_writer(self._fd)
        self._sock.close()
        self._owner.ended(self, reason)
