"""Two hosts on this kernel with a delay between them: the test hands what one sends to the other, later.

A kernel without netem has no other delay. It is for tens of Mbit/s; times by it are as good as this machine is idle.
"""

import fcntl
import os
import select
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from itertools import count

from hostagent.tests.rig import NamespaceHost

TUNSETIFF = 0x400454CA
SIOCOUTQ, SIOCOUTQNSD = 0x5411, 0x894B
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
FRAME_BYTES = 65536
ETHERNET_BYTES = 14
TCP = 6
LOOK_S = 0.2
_numbers = count()


class Segment:
    """A frame with TCP's data over IPv4, as far as tests look at it."""

    def __init__(self, frame: bytes) -> None:
        ip = ETHERNET_BYTES
        self.is_tcp = frame[12:14] == b"\x08\x00" and frame[ip + 9] == TCP
        tcp = ip + 20
        self.seq = struct.unpack_from("!I", frame, tcp + 4)[0] if self.is_tcp else 0
        self.flags = frame[tcp + 13] if self.is_tcp else 0
        header_bytes = (frame[tcp + 12] >> 4) * 4 if self.is_tcp else 0
        self.data_bytes = struct.unpack_from("!H", frame, ip + 2)[0] - 20 - header_bytes if self.is_tcp else 0


class Losses:
    """What is lost of one direction: given bytes of the next transfer, once each; and all segments without a flag."""

    def __init__(self) -> None:
        self.without_flags = False
        self.lost: list[int] = []
        self._wanted: set[int] = set()
        self._base: int | None = None

    def lose(self, bytes_: Iterable[int]) -> None:
        """Lose the segments that have these bytes, counted from the first that comes after this."""
        self._wanted, self._base, self.lost = set(bytes_), None, []

    def __call__(self, frame: bytes) -> bool:
        """Whether a frame is lost."""
        segment = Segment(frame)
        if segment.data_bytes <= 0:
            return False
        if not segment.flags:
            return self.without_flags
        if self._base is None:
            self._base = segment.seq
        first = (segment.seq - self._base) % (1 << 32)
        hit = {byte for byte in self._wanted if first <= byte < first + segment.data_bytes}
        self._wanted -= hit
        self.lost += sorted(hit)
        return bool(hit)


class DelayedLine:
    """Two hosts, and the delay between them; ``losses`` is of what the left one sends."""

    def __init__(self, rtt_s: float) -> None:
        number = next(_numbers)
        self.left = NamespaceHost(f"hw{os.getpid()}dl{number}", 1)
        self.right = NamespaceHost(f"hw{os.getpid()}dr{number}", 2)
        self.losses = Losses()
        self._delay_s = rtt_s / 2
        self._ended = threading.Event()
        ends = [host.inside(lambda host=host: _tap(host.interface)) for host in (self.left, self.right)]
        for host in (self.left, self.right):
            host.set_up()
        self._ends = ends
        self._threads = [
            threading.Thread(target=self._carry, args=(ends[0], ends[1], self.losses)),
            threading.Thread(target=self._carry, args=(ends[1], ends[0], lambda _frame: False)),
        ]
        for thread in self._threads:
            thread.start()

    def _carry(self, come: int, go: int, is_lost: Callable[[bytes], bool]) -> None:
        waiting: deque[tuple[float, bytes]] = deque()
        while not self._ended.is_set():
            timeout_s = max(0.0, waiting[0][0] - time.monotonic()) if waiting else LOOK_S
            if select.select([come], [], [], timeout_s)[0]:
                frame = os.read(come, FRAME_BYTES)
                if not is_lost(frame):
                    waiting.append((time.monotonic() + self._delay_s, frame))
            while waiting and waiting[0][0] <= time.monotonic():
                os.write(go, waiting.popleft()[1])

    def close(self) -> None:
        """Take it down."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        for end in self._ends:
            os.close(end)
        self.left.remove()
        self.right.remove()


def _tap(name: str) -> int:
    """Return the descriptor of a new interface of this thread's namespace: what it sends is read there."""
    end = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return end


def unconfirmed_bytes(sender: socket.socket) -> int:
    """Return what a connection has been given and has no confirmation of."""
    return int(struct.unpack("=i", fcntl.ioctl(sender, SIOCOUTQ, bytes(4)))[0])


def unsent_bytes(sender: socket.socket) -> int:
    """Return what a connection has been given and has not sent yet."""
    return int(struct.unpack("=i", fcntl.ioctl(sender, SIOCOUTQNSD, bytes(4)))[0])
