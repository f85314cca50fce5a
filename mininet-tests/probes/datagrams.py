"""Datagrams at a constant rate, whatever becomes of them."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

from topology.wire import IPV4_HEADER_BYTES, Framing

UDP_HEADER_BYTES = 8  # RFC 768
BURST_EVERY_S = 0.002  # what is due by then is sent at once


def datagram_bytes(framing: Framing) -> int:
    """Return the UDP payload that fills a frame as a full TCP segment does."""
    return framing.mtu_bytes - IPV4_HEADER_BYTES - UDP_HEADER_BYTES


@contextlib.contextmanager
def at_rate(sender: socket.socket, datagram: bytes, datagrams_per_s: float) -> Iterator[None]:
    """Send a datagram again and again by a connected socket, from a thread, while a ``with`` block runs."""
    ended = threading.Event()

    def send() -> None:
        began_s, sent = time.monotonic(), 0
        while not ended.wait(BURST_EVERY_S):
            due = int((time.monotonic() - began_s) * datagrams_per_s)
            while sent < due:
                sender.send(datagram)
                sent += 1

    sending = threading.Thread(target=send, name="datagrams", daemon=True)
    sending.start()
    try:
        yield
    finally:
        ended.set()
        sending.join()
