"""Two hosts on this kernel with a delay between them: the test hands what one sends to the other, later.

A kernel without netem has no other delay. It is for tens of Mbit/s; times by it are as good as this machine is idle.
"""

import fcntl
import os
import socket
import struct
from collections.abc import Iterable
from itertools import count

from hostagent.tests.rig import NamespaceHost
from mininet_tests.testing.delayed_cable import DelayedCable, tap

SIOCOUTQ, SIOCOUTQNSD = 0x5411, 0x894B
ETHERNET_BYTES = 14
TCP = 6
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
        left, right = (host.inside(lambda host=host: tap(host.interface)) for host in (self.left, self.right))
        for host in (self.left, self.right):
            host.set_up()
        self._cable = DelayedCable((left, right), rtt_s, self.losses)
        self._cable.begin()

    def close(self) -> None:
        """Take it down."""
        self._cable.close()
        self.left.remove()
        self.right.remove()


def unconfirmed_bytes(sender: socket.socket) -> int:
    """Return what a connection has been given and has no confirmation of."""
    return int(struct.unpack("=i", fcntl.ioctl(sender, SIOCOUTQ, bytes(4)))[0])


def unsent_bytes(sender: socket.socket) -> int:
    """Return what a connection has been given and has not sent yet."""
    return int(struct.unpack("=i", fcntl.ioctl(sender, SIOCOUTQNSD, bytes(4)))[0])
