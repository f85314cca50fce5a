"""What arrives of a flood, or of a paced connection: payload over time."""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from statistics import linear_regression

from mininet_tests.probes.datagrams import UDP_HEADER_BYTES, at_rate, datagram_bytes
from mininet_tests.scenarios.layers.site import RECEIVER, SENDER, LayersSite
from mininet_tests.testing.eventually import eventually
from topology.uncollected import uncollected
from topology.wire import ETHERNET_HEADER_BYTES, IPV4_HEADER_BYTES, Framing, Layer

UDP_SEGMENT = 103  # linux/udp.h: what is written at once leaves as one super-packet of segments of this size
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33  # asm-generic/socket.h
SUPER_PACKET_BYTES = 59_000  # of UDP; the kernel takes 65,507 at most, and 64 segments
WINDOW_BYTES = 1 << 19  # a connection's, many times rate x delay: what it is too much stands before the bottleneck
PORT = 5400
TAKE_BYTES = 1 << 18
LEAST_ARRIVALS = 30
AT_LEAST_BYTES = 1 << 15  # taken of a connection at once: to wake up for each packet is a load of its own


class ArrivalLog:
    """The payload that has come in so far, with the time of each arrival; taken in by a thread."""

    def __init__(self, receiver: socket.socket) -> None:
        """Start to take in."""
        self._receiver = receiver
        self._log: list[tuple[float, int]] = []
        self._thread = threading.Thread(target=self._take, name="arrivals", daemon=True)
        self._thread.start()

    def _take(self) -> None:
        block, total = bytearray(TAKE_BYTES), 0
        with contextlib.suppress(OSError):
            while count := self._receiver.recv_into(block):
                total += count
                self._log.append((time.monotonic(), total))

    def rate_bps(self, warm_up_s: float, over_s: float) -> float:
        """Return the mean rate over ``over_s`` after the warm-up, bit/s; waits for both.

        The slope of the line through all arrivals (least squares): a super-packet more or less at one of the two edges
        would be an error of a percent. A stop of sender and receiver near an edge still weighs as much, so the garbage
        waits.

        Raises:
            RuntimeError: hardly anything arrived.
        """
        with uncollected():
            start_s = time.monotonic() + warm_up_s
            _until(start_s + over_s)
        seen = [one for one in self._log if start_s <= one[0] < start_s + over_s]
        if len(seen) < LEAST_ARRIVALS:
            raise RuntimeError(f"{len(seen)} arrivals in {over_s} s")
        at_s, total_bytes = zip(*seen, strict=True)
        return 8 * linear_regression([s - start_s for s in at_s], total_bytes).slope


@contextlib.contextmanager
def connection(site: LayersSite) -> Iterator[ArrivalLog]:
    """Send over one TCP connection as fast as the layers let it."""
    near, far = site.seats[SENDER], site.seats[RECEIVER]
    listener = far.inside(lambda: socket.create_server((far.address, PORT)))
    listener.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, WINDOW_BYTES)
    sender = near.inside(lambda: socket.create_connection((far.address, PORT), timeout=20))
    receiver, _ = listener.accept()
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, AT_LEAST_BYTES)
    listener.close()
    sender.settimeout(None)

    def fill() -> None:
        block = bytes(TAKE_BYTES)
        with contextlib.suppress(OSError):
            while True:
                sender.sendall(block)

    filling = threading.Thread(target=fill, name="fill", daemon=True)
    filling.start()
    try:
        yield ArrivalLog(receiver)
    finally:
        for end in (sender, receiver):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        filling.join()
        sender.close()
        receiver.close()


def segments_at_once(framing: Framing, *, single_packets: bool) -> int:
    """Return how many datagrams the flood has in a packet."""
    return 1 if single_packets else SUPER_PACKET_BYTES // datagram_bytes(framing)


def charged_bytes(framing: Framing, segments: int) -> int:
    """Return what a meter charges for a packet of the flood: a super-packet has the headers of one."""
    return segments * datagram_bytes(framing) + UDP_HEADER_BYTES + IPV4_HEADER_BYTES + ETHERNET_HEADER_BYTES


@contextlib.contextmanager
def flood(site: LayersSite, frame_bps: int, *, single_packets: bool) -> Iterator[ArrivalLog]:
    """Send UDP at a constant rate of full frames, whatever becomes of them."""
    near, far = site.seats[SENDER], site.seats[RECEIVER]
    framing, size_bytes = site.network.framing, datagram_bytes(site.network.framing)
    at_once = segments_at_once(framing, single_packets=single_packets)
    receiver = far.inside(lambda: socket.socket(type=socket.SOCK_DGRAM))
    receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 23)
    receiver.bind((far.address, PORT))
    receiver.settimeout(1)
    sender = near.inside(lambda: socket.socket(type=socket.SOCK_DGRAM))
    sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 23)
    sender.connect((far.address, PORT))
    if at_once > 1:
        sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("=i", size_bytes))
    packets_per_s = frame_bps / 8 / framing.segment_bytes(Layer.FRAME) / at_once
    try:
        with at_rate(sender, bytes(size_bytes * at_once), packets_per_s):
            yield ArrivalLog(receiver)
    finally:
        sender.close()
        receiver.close()


def _until(when_s: float) -> None:
    eventually(lambda: time.monotonic() >= when_s, within_s=when_s - time.monotonic() + 60, what="a time")
