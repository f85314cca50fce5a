"""A cable with a delay, for a kernel without netem: two interfaces, and a thread for each direction.

It is for what servers say to each other, some Mbit/s; its times are as good as this machine is idle.
"""

import contextlib
import fcntl
import os
import select
import struct
import threading
import time
from collections import deque

TUNSETIFF = 0x400454CA  # linux/if_tun.h
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
FRAME_BYTES = 65536
LOOK_S = 0.2


class DelayedCable:
    """Two interfaces of this network namespace, which may be moved to others; what one sends the other has later.

    Args:
        names: of the two.
        rtt_s: there and back, seconds.
    """

    def __init__(self, names: tuple[str, str], rtt_s: float) -> None:
        self._delay_s = rtt_s / 2
        self._ended = threading.Event()
        self._ends = [_tap(name) for name in names]
        ways = (self._ends, self._ends[::-1])
        self._threads = [threading.Thread(target=self._carry, args=way, daemon=True) for way in ways]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Take it away, its interfaces with it."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        for end in self._ends:
            os.close(end)

    def _carry(self, come: int, go: int) -> None:
        waiting: deque[tuple[float, bytes]] = deque()
        with contextlib.suppress(OSError):  # an interface has gone, with the namespace that it was moved to
            while not self._ended.is_set():
                timeout_s = max(0.0, waiting[0][0] - time.monotonic()) if waiting else LOOK_S
                if select.select([come], [], [], timeout_s)[0]:
                    waiting.append((time.monotonic() + self._delay_s, os.read(come, FRAME_BYTES)))
                while waiting and waiting[0][0] <= time.monotonic():
                    os.write(go, waiting.popleft()[1])


def _tap(name: str) -> int:
    """Return the descriptor of a new interface: what it sends is read there."""
    end = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return end
