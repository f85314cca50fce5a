"""One connection of a switch as os-ken has it, repaired; ``osken_hub.py`` says what a repair is."""

import itertools
import select
import ssl
import threading
from collections.abc import Iterable
from typing import Any

from os_ken.base import app_manager  # noqa: F401  before os_ken.controller: they import each other
from os_ken.controller import controller

from controller.security.tls import ShownEnd

PIECE_BYTES = 1 << 15  # sent at once: some hundreds of messages, and in a moment


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

    def __init__(
        self, connected: Any, address: Any, certified_dpid: int | None = None, certificate: ShownEnd | None = None
    ) -> None:
        """Take what os-ken's ``Datapath`` takes, and what its certificate says; None without TLS.

        Args:
            connected: the socket.
            address: its other end.
            certified_dpid: the datapath id that the certificate is for.
            certificate: when that ends.
        """
        self.certified_dpid = certified_dpid
        self.certificate = certificate
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

    def send_together(self, messages: Iterable[Any]) -> bool:
        """Queue numbered messages in few pieces; return whether the connection still took all.

        One by one, each would wait for its turn of Python twice: for hundreds of meters longer than the switch takes.
        """
        piece = bytearray()
        for msg in messages:
            msg.serialize()
            piece += msg.buf
            if len(piece) >= PIECE_BYTES:
                if not self.send(bytes(piece)):
                    return False
                piece.clear()
        return not piece or self.send(bytes(piece))

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
