"""A cable with a delay, for a kernel without netem: two interfaces, and a thread for each direction.

It is for some tens of Mbit/s; its times are as good as this machine is idle.
"""

import fcntl
import os
import select
import struct
import threading
import time
from collections import deque
from collections.abc import Callable

TUNSETIFF = 0x400454CA  # linux/if_tun.h
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
FRAME_BYTES = 65536
LOOK_S = 0.2

IsLost = Callable[[bytes], bool]


def none_is_lost(_frame: bytes) -> bool:
    """Lose nothing."""
    return False


class DelayedCable:
    """Carries what is sent at either of two interfaces to the other one, later.

    Args:
        ends: of both, as :func:`tap` returns them.
        rtt_s: there and back, seconds.
        is_lost: whether a frame of the first one's is lost.
    """

    def __init__(self, ends: tuple[int, int], rtt_s: float, is_lost: IsLost = none_is_lost) -> None:
        self._delay_s = rtt_s / 2
        self._ended = threading.Event()
        self._ends = ends
        ways = ((*ends, is_lost), (*ends[::-1], none_is_lost))
        self._threads = [threading.Thread(target=self._carry, args=way) for way in ways]

    def begin(self) -> None:
        """Carry frames, now that both interfaces are up."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Take it away, its interfaces with it."""
        self._ended.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        for end in self._ends:
            os.close(end)

    def _carry(self, come: int, go: int, is_lost: IsLost) -> None:
        waiting: deque[tuple[float, bytes]] = deque()
        while not self._ended.is_set():
            timeout_s = max(0.0, waiting[0][0] - time.monotonic()) if waiting else LOOK_S
            if select.select([come], [], [], timeout_s)[0]:
                frame = os.read(come, FRAME_BYTES)
                if not is_lost(frame):
                    waiting.append((time.monotonic() + self._delay_s, frame))
            while waiting and waiting[0][0] <= time.monotonic():
                os.write(go, waiting.popleft()[1])


def tap(name: str) -> int:
    """Return the descriptor of a new interface of this thread's namespace, which may be moved to another.

    What the interface sends is read there.
    """
    end = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return end
