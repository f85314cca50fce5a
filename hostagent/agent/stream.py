"""The connection to one controller: a WebSocket, over TLS or plain.

One thread dials, reads and writes, for OpenSSL's connections are not to be used by two at once; the others leave what
they want sent and wake it. The WebSocket itself is the ``websockets`` package's (its part without I/O).
"""

import contextlib
import os
import selectors
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidStatus
from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from hostagent import trust
from hostagent.errors import AttachmentRefused, GaveWay, Lost, NotAttached
from hostagent.lease_clock import lease_now_ns
from hostagent.trust import ClientTls
from topology.certificates import uri_kind
from topology.protocol import ATTACH_PATH, LONGEST_BYTES, PING_S, SILENT_S

DIAL_WITHIN_S = 5.0  # for each address, and again for the handshakes
CLOSE_WITHIN_S = 1.0
LOOK_S = 0.2  # the socket is looked at so often, or when something comes
MOST_UNSENT_BYTES = 1 << 20
NOT_A_CONTROLLERS = "the controller's certificate is of another kind: somebody else's, who plays the controller?"
ENDS = "the agent ends"
_READ_BYTES = 1 << 16
_AGAIN = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


@dataclass(frozen=True, slots=True)
class Bell:
    """Something else that the reading thread waits for: a descriptor, and what it calls when that can be read."""

    fd: int
    answer: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Received:
    """The newest of the messages that have come, and since when it may have waited to be read, CLOCK_BOOTTIME."""

    data: bytes
    since_ns: int


class ControllerStream:
    """A connection to a controller, from before it is dialled until it is over.

    Each part of a dial has a deadline of its own (``DIAL_WITHIN_S``); name lookup has the resolver's.

    Attributes:
        controller: its address.
        opened_ns: since when its WebSocket is open, CLOCK_MONOTONIC; 0 before.
        attached_s: since when the controller has told us something, Unix seconds; 0 if it has not yet.
        attached_ns: the same, CLOCK_MONOTONIC.
        ends_s: when each of the two certificates expires, by whose it is, Unix seconds; empty without TLS.
        serial: the number of the controller's certificate; 0 without TLS.
    """

    def __init__(self, controller: str, tls: ClientTls | None, bell: Bell | None = None) -> None:
        self.controller = controller
        self._bell = bell
        self.opened_ns = 0
        self.attached_s = self.attached_ns = 0
        self.ends_s: dict[str, int] = {}
        self.serial = 0
        self._tls = tls
        self._outbox: deque[bytes] = deque()
        self._cancelled = False
        self._why = ""  # it was cancelled; empty if there is nothing to say of it
        self._woken, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._waking = threading.Lock()  # so that nobody writes into a descriptor that is another's by now
        self._over = False
        self._sock = socket.socket()
        self._unsent = bytearray()
        scheme = "ws" if tls is None or controller.startswith("unix:") else "wss"
        where = "localhost" if controller.startswith("unix:") else controller
        self._protocol = ClientProtocol(parse_uri(f"{scheme}://{where}{ATTACH_PATH}"), max_size=LONGEST_BYTES)
        self._heard_s = self._asked_s = 0.0
        self._empty_ns = 0  # when the socket was last seen empty: what is in it now has come since

    @property
    def silent_s(self) -> float:
        """For how long nothing has come, seconds; since it was opened if nothing ever has."""
        return time.monotonic() - self._heard_s

    def send(self, message: bytes) -> None:
        """Have a message sent; from any thread, and before the connection is made."""
        self._outbox.append(message)
        self._rouse()

    def cancel(self, why: str = "") -> None:
        """End it as soon as possible, from any thread; who reads hears why, if it is said."""
        self._why = why
        self._cancelled = True
        self._rouse()

    def _rouse(self) -> None:
        with self._waking, contextlib.suppress(BlockingIOError):  # full: it is awake already
            if not self._over:
                os.write(self._wake, b"x")

    def messages(self) -> Iterator[Received]:
        """Dial, and yield what the controller says until the stream is over or cancelled.

        Each message replaces the one before, so of several that have come only the newest is yielded.

        Raises:
            AttachmentRefused: one end does not trust the other, or the controller does not want this host.
            Lost: it could not be reached, or the stream broke off, or was cancelled for a reason.
        """
        try:
            self._dial()
            self._attach()
            yield from self._conversation()
        except OSError as error:
            raise self._failure(error) from error
        finally:
            self._sock.close()
            with self._waking:
                self._over = True
                os.close(self._wake)
                os.close(self._woken)

    def close(self, reason: str) -> None:
        """Say goodbye and why, after what is to be sent; by the thread that reads, which then ends."""
        if self._protocol.state is State.OPEN:
            self._take_outbox()
            self._protocol.send_close(CloseCode.NORMAL_CLOSURE, reason[:120])
        self._cancelled = True

    def _dial(self) -> None:
        """Connect, and shake hands by TLS.

        Raises:
            OSError: it did not work at any of the controller's addresses.
            NotAttached: neither did TLS.
        """
        if self.controller.startswith("unix:"):
            self._connect(socket.AF_UNIX, self.controller.removeprefix("unix:"))
            return
        host, _, port = self.controller.rpartition(":")
        host = host.strip("[]")
        context = None
        if self._tls is not None:
            # In this order: of a file that is written now, what is shown may be newer than what is known of it.
            self.ends_s["host"], context = self._tls.ends_s(), self._tls.context()
        found = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
        for i, (family, _, _, _, address) in enumerate(found):
            try:
                self._connect(family, address)
                break
            except OSError:
                if self._cancelled or i == len(found) - 1:
                    raise
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            tls = context.wrap_socket(self._sock, server_hostname=host, do_handshake_on_connect=False)
            self._sock = tls
            deadline_s = time.monotonic() + DIAL_WITHIN_S
            while not self._shaken(tls):
                self._wait(deadline_s, "the TLS handshake")
            shown: Any = tls.getpeercert() or {}
            if any(kind == "URI" and uri_kind(name) is not None for kind, name in shown.get("subjectAltName", ())):
                raise AttachmentRefused(NOT_A_CONTROLLERS)
            self.serial = int(shown["serialNumber"], 16)
            self.ends_s["controller"] = ssl.cert_time_to_seconds(str(shown["notAfter"]))

    def _connect(self, family: int, address: object) -> None:
        self._sock.close()
        self._sock = socket.socket(family, socket.SOCK_STREAM)
        self._sock.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            self._sock.connect(address)  # type: ignore[arg-type]
        deadline_s = time.monotonic() + DIAL_WITHIN_S
        while not self._wait(deadline_s, "connecting", selectors.EVENT_WRITE):
            pass  # it was woken by what is to be sent once it is connected
        failed = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failed:
            raise OSError(failed, os.strerror(failed))

    def _shaken(self, tls: ssl.SSLSocket) -> bool:
        try:
            tls.do_handshake()
        except _AGAIN:
            return False
        return True

    def _attach(self) -> None:
        """Ask for the WebSocket.

        Raises:
            OSError: the connection broke.
            NotAttached: the controller wants none.
        """
        self._protocol.send_request(self._protocol.connect())
        deadline_s = time.monotonic() + DIAL_WITHIN_S
        while self._protocol.state is State.CONNECTING and self._protocol.handshake_exc is None:
            self._write()
            self._wait(deadline_s, "the answer")
            for _ in self._read():
                pass  # nothing but the answer comes before our first message
        failure = self._protocol.handshake_exc
        if isinstance(failure, InvalidStatus):
            raise AttachmentRefused(
                f"the controller answers {failure.response.status_code}: is it a Headway controller?"
            )
        if failure is not None and isinstance(failure.__cause__, EOFError):
            hint = "" if self._tls is not None else "; if it speaks TLS, say tls in the configuration"
            raise Lost(f"the controller hung up without an answer{hint}")
        if failure is not None:
            raise AttachmentRefused(
                "answers, but not as a controller: does it speak TLS? then say tls in the configuration"
            )

    def _conversation(self) -> Iterator[Received]:
        """Send what is left for it, and yield the newest of what comes."""
        self._heard_s = self._asked_s = time.monotonic()
        self._empty_ns = lease_now_ns()
        self.opened_ns = time.monotonic_ns()
        while True:
            if self._cancelled:
                self._goodbye()
                if self._why:
                    raise Lost(self._why)
                return
            if len(self._unsent) > MOST_UNSENT_BYTES:
                raise Lost("the controller does not read what it is sent")
            self._take_outbox()
            self._write()
            if self._protocol.state is not State.OPEN:
                raise self._ended()
            self._wait(time.monotonic() + LOOK_S, "")
            since_ns, heard = self._empty_ns, tuple(self._read())
            if heard:
                yield Received(heard[-1], since_ns)
            self._ask()

    def _take_outbox(self) -> None:
        while self._outbox and self._protocol.state is State.OPEN:  # a goodbye may have come with the last message
            self._protocol.send_text(self._outbox.popleft())

    def _goodbye(self) -> None:
        """Send what there is to send, if the other end reads."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(CloseCode.GOING_AWAY, self._why or ENDS)
        self._sock.settimeout(CLOSE_WITHIN_S)
        with contextlib.suppress(OSError):
            self._write()

    def _ask(self) -> None:
        """Ask the controller for a sign of life, in time.

        Raises:
            Lost: there was none.
        """
        now_s = time.monotonic()
        if now_s >= self._heard_s + SILENT_S:
            raise Lost(f"the controller has been silent for {SILENT_S:g} s")
        if now_s >= self._asked_s + PING_S and self._protocol.state is State.OPEN:
            self._asked_s = now_s
            self._protocol.send_ping(b"")

    def _read(self) -> Iterator[bytes]:
        """Yield the messages that have come."""
        while True:
            looked_ns = lease_now_ns()
            try:
                data = self._sock.recv(_READ_BYTES)
            except _AGAIN:
                self._empty_ns = looked_ns
                return
            self._heard_s = time.monotonic()
            if data:
                self._protocol.receive_data(data)
            else:
                self._protocol.receive_eof()
            for event in self._protocol.events_received():
                if isinstance(event, Frame) and event.opcode in {Opcode.TEXT, Opcode.BINARY}:
                    if not self.attached_s:
                        self.attached_ns, self.attached_s = time.monotonic_ns(), int(time.time())
                    yield bytes(event.data)
            if not data or self._cancelled:
                return

    def _write(self) -> None:
        """Send as much as the other end takes."""
        for data in self._protocol.data_to_send():
            self._unsent += data
        try:
            while self._unsent:
                del self._unsent[: self._sock.send(self._unsent)]
        except _AGAIN:
            return

    def _wait(self, deadline_s: float, what: str, events: int = selectors.EVENT_READ) -> bool:
        """Return whether the socket can be used, once it can, somebody has woken us, or the time is over.

        Raises:
            TimeoutError: it is over, and something was waited for.
            Lost: somebody has cancelled it meanwhile.
        """
        with selectors.DefaultSelector() as selector:
            wanted = events | (selectors.EVENT_WRITE if self._unsent else 0)
            selector.register(self._sock, wanted)
            selector.register(self._woken, selectors.EVENT_READ)
            if self._bell is not None and not what:
                selector.register(self._bell.fd, selectors.EVENT_READ)
            ready = selector.select(max(0.0, deadline_s - time.monotonic()))
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, _READ_BYTES)
        if self._bell is not None and any(key.fd == self._bell.fd for key, _ in ready):
            self._bell.answer()
        if what and self._cancelled:
            raise Lost(self._why or ENDS)
        if what and not ready:
            raise TimeoutError(f"no answer within {DIAL_WITHIN_S:g} s: {what}")
        return any(key.fileobj is self._sock for key, _ in ready)

    def _ended(self) -> NotAttached:
        """Return how the controller has ended the stream."""
        said = self._protocol.close_rcvd
        if said is None or not said.reason:
            return Lost("the controller hung up")
        why = f"the controller says: {said.reason}"
        if said.code == CloseCode.NORMAL_CLOSURE:
            return GaveWay(why)
        return AttachmentRefused(why) if said.code == CloseCode.POLICY_VIOLATION else Lost(why)

    def _failure(self, error: OSError) -> NotAttached:
        host = self.controller.rpartition(":")[0].strip("[]")
        words = trust.tls_failure(error, host)
        return AttachmentRefused(words) if words else Lost(error.strerror or str(error))
