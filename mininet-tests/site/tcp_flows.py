"""Connections over the long line: many in one process, fed by one thread, drained by another, watched by a third."""

import ctypes
import fcntl
import select
import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

from mininet_tests.testing.eventually import eventually

T = TypeVar("T")

BLOCK = bytes(1 << 18)
SWITCH_S = 0.0005  # between threads of an experiment: the feeding one must not wait 5 ms for the one that measures
DRAIN_EVERY_S, DRAIN_EACH_S = 0.02, 0.001  # at least so often; so seldom for each connection, which costs a call
CONNECT_WITHIN_S = 20.0
# A receiver that waits for more than there is confirms every second segment at once; another one, only as fast as it
# is read (__tcp_ack_snd_check). So the sender is measured, and not the drain, which is woken by more than that.
RECEIVE_AT_LEAST_BYTES = 1 << 22
BACKLOG_BYTES, LEAST_BACKLOG_BYTES = 1 << 21, 1 << 14  # of all that are fed together: 40 ms at 400 Mbit/s; of each
TCP_NOTSENT_LOWAT = 25  # linux/tcp.h
SIOCOUTQ = 0x5411  # linux/sockios.h: bytes not yet confirmed
SO_MAX_PACING_RATE = 47  # asm-generic/socket.h
TCP_CONGESTION = 13


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """What the kernel tells of a connection: ``struct tcp_info`` (linux/tcp.h)."""

    at_s: float
    rto_us: int
    unacked_segments: int
    sacked_segments: int
    lost_segments: int
    rtt_us: int
    cwnd_segments: int
    pacing_bytes_per_s: int
    acked_bytes: int
    received_bytes: int
    notsent_bytes: int
    arrived_segments: int
    sent_segments: int
    retransmitted_segments: int
    reorderings: int
    receive_window_limited_us: int
    send_buffer_limited_us: int

    @classmethod
    def of(cls, end: socket.socket) -> Self:
        """Return what is told of one end now."""
        data = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
        words: tuple[int, ...] = struct.unpack_from("=24I", data, 8)
        pacing, _, acked, received = struct.unpack_from("=4Q", data, 104)
        window_us, buffer_us = struct.unpack_from("=2Q", data, 176)
        notsent, _, arrived_segments, sent = struct.unpack_from("=4I", data, 144)
        (reorderings,) = struct.unpack_from("=I", data, 220)
        return cls(
            time.monotonic(),
            words[0],
            words[4],
            words[5],
            words[6],
            words[15],
            words[18],
            pacing,
            acked,
            received,
            notsent,
            arrived_segments,
            sent,
            words[23],
            reorderings,
            window_us,
            buffer_us,
        )


@dataclass(slots=True)
class TcpStream:
    """One connection; ``left_bytes`` still to be written, ``None`` for no end."""

    sender: socket.socket
    receiver: socket.socket
    left_bytes: int | None = 0

    @property
    def told(self) -> StreamInfo:
        """What the sender's kernel tells."""
        return StreamInfo.of(self.sender)

    @property
    def received_bytes(self) -> int:
        """What has arrived in order."""
        return StreamInfo.of(self.receiver).received_bytes

    @property
    def algorithm(self) -> str:
        """The sender's congestion control."""
        return self.sender.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16).split(b"\0")[0].decode()

    @property
    def unconfirmed_bytes(self) -> int:
        """What was written, or is still to be, and is not confirmed."""
        unconfirmed: int = struct.unpack("=i", fcntl.ioctl(self.sender, SIOCOUTQ, b"\0" * 4))[0]
        return unconfirmed + (self.left_bytes or 0)

    def ask_for(self, rate_bytes_per_s: int) -> None:
        """Let the application ask for no more than a rate."""
        self.sender.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, struct.pack("=Q", rate_bytes_per_s))

    def close(self) -> None:
        """Close both ends, in order."""
        self.sender.close()
        self.receiver.close()


class Reachable(Protocol):
    """A host as the opener of connections sees it: its addresses, and a way into its network namespace."""

    @property
    def address(self) -> str:
        """Its IPv4 address."""

    @property
    def address6(self) -> str:
        """Its IPv6 address; empty if it has none."""

    def inside(self, act: Callable[[], T]) -> T:
        """Return what ``act`` returns there."""


def opened(
    ends: tuple[Reachable, Reachable],
    port: int,
    count: int,
    *,
    address: str = "",
    ipv6: bool = False,
    sender_connects: bool = True,
) -> list[TcpStream]:
    """Return new connections from a sender to a receiver, their ends not blocking; the listener has ``port``.

    They are from the address that the connecting host is known by: of several interfaces, from that one.

    Raises:
        TimeoutError: one was not established within many round trips.
    """
    family = socket.AF_INET6 if ipv6 else socket.AF_INET
    connecting, listening = ends if sender_connects else ends[::-1]
    address = address or (listening.address6 if ipv6 else listening.address)
    listener = listening.inside(lambda: socket.create_server((address, port), family=family, backlog=512))
    connected = connecting.inside(lambda: [socket.socket(family) for _ in range(count)])
    listener.settimeout(CONNECT_WITHIN_S)
    for end in connected:
        end.setblocking(False)
        end.bind((connecting.address6 if ipv6 else connecting.address, 0))
        end.connect_ex((address, port))
    accepted: dict[int, socket.socket] = {}
    for _ in range(count):
        end, peer = listener.accept()
        end.setblocking(False)
        accepted[peer[1]] = end
    listener.close()
    for end in connected if not sender_connects else accepted.values():
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, RECEIVE_AT_LEAST_BYTES)
    pairs = [(end, accepted[end.getsockname()[1]]) for end in connected]
    return [TcpStream(*(pair if sender_connects else pair[::-1])) for pair in pairs]


class Feeder:
    """Writes, in a thread of its own, whatever the streams have left to write."""

    def __init__(self) -> None:
        self._selector = selectors.EpollSelector()
        self._woken, self._waker = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._asked: list[tuple[TcpStream, int | None]] = []
        self._done: list[threading.Event] = []
        self._lock = threading.Lock()
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)
        self._thread.start()

    def feed(self, streams: list[TcpStream], size_bytes: int | None = None) -> None:
        """Write ``size_bytes`` more to each, or without end; 0 stops."""
        backlog_bytes = max(LEAST_BACKLOG_BYTES, BACKLOG_BYTES // max(1, len(streams)))
        for stream in streams:
            stream.left_bytes = size_bytes
            if size_bytes is None:  # so that it soon stops when it shall
                stream.sender.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, backlog_bytes)
        with self._lock:
            self._asked += [(stream, size_bytes) for stream in streams]
        self._waker.send(b"x")

    def forget(self, streams: list[TcpStream]) -> None:
        """Write nothing more to these; they may be closed then."""
        self.feed(streams, 0)
        done = threading.Event()
        with self._lock:
            self._done.append(done)
        self._waker.send(b"x")
        done.wait()

    def close(self) -> None:
        """End the thread."""
        self._ending = True
        self._waker.send(b"x")
        self._thread.join()

    def _run(self) -> None:
        while not self._ending:
            for key, _ in self._selector.select():
                if key.data is None:
                    self._woken.recv(4096)
                    self._begin()
                else:
                    self._write(key.data)

    def _begin(self) -> None:
        with self._lock:
            asked, self._asked = self._asked, []
            done, self._done = self._done, []
        registered = self._selector.get_map()
        for stream, _ in asked:
            if stream.left_bytes == 0:
                if stream.sender in registered:
                    self._selector.unregister(stream.sender)
            else:
                if stream.sender not in registered:
                    self._selector.register(stream.sender, selectors.EVENT_WRITE, stream)
                self._write(stream)
        for event in done:
            event.set()

    def _write(self, stream: TcpStream) -> None:
        left = stream.left_bytes
        if left == 0:
            return
        try:
            written = stream.sender.send(BLOCK if left is None else memoryview(BLOCK)[:left])
        except BlockingIOError:
            return
        if left is not None:
            stream.left_bytes = left - written
            if not stream.left_bytes:
                self._selector.unregister(stream.sender)


class Drain:
    """Takes what arrives, in a thread of its own, without looking at it.

    It is woken by much that has come at once, as when a hole is filled: a receiver that leaves it lying confirms
    nothing until it is read, and the sender's window stands still. A last segment that comes alone does not wake it,
    and is confirmed when it is read, so there is a look each millisecond, or as often as that costs little.

    Args:
        each_s: between two looks, for each connection.
    """

    def __init__(self, each_s: float = DRAIN_EACH_S) -> None:
        self._each_s = each_s
        self._receivers: list[int] = []
        self._much = select.epoll()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="drain", daemon=True)
        self._thread.start()

    def add(self, streams: list[TcpStream]) -> None:
        """Drain these too."""
        with self._lock:
            for stream in streams:
                self._receivers.append(stream.receiver.fileno())
                self._much.register(stream.receiver, select.EPOLLIN | select.EPOLLET)

    def remove(self, streams: list[TcpStream]) -> None:
        """Drain these no more."""
        with self._lock:
            for stream in streams:
                self._receivers.remove(stream.receiver.fileno())
                self._much.unregister(stream.receiver)

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join()
        self._much.close()

    def _run(self) -> None:
        take, all_of_it = ctypes.CDLL(None).recv, ctypes.c_size_t(1 << 30)
        flags = socket.MSG_TRUNC | socket.MSG_DONTWAIT  # tcp(7): MSG_TRUNC discards
        while not self._stop.is_set():
            self._much.poll(min(DRAIN_EVERY_S, self._each_s * max(len(self._receivers), 1)))
            with self._lock:
                for fd in self._receivers:
                    take(fd, None, all_of_it, flags)


def until(when_s: float) -> None:
    """Wait for a time of CLOCK_MONOTONIC."""
    eventually(lambda: time.monotonic() >= when_s, within_s=when_s - time.monotonic() + 60, what="a time")
