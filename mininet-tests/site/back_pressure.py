"""Interfaces that are stopped while the queue of a port is long, as Ethernet's PAUSE frames (IEEE 802.3x) stop them.

There is no wire here that frames could stop, so ``sch_plug`` does it: it is all that an interface sends by, and while
it is plugged nothing leaves. A thread watches the port; from its queue's upper mark on all interfaces are plugged, and
from the lower one on they go on. A frame on a wire does that within microseconds, the thread within a millisecond.
"""

import socket
import struct
import threading
import time
from collections.abc import Sequence
from functools import partial

from hostagent.tests.rig import NamespaceHost
from mininet_tests.site.netlink import Netlink, attribute, attributes
from mininet_tests.site.qdiscs import NETLINK_ROUTE, RTM_GETQDISC, RTM_NEWQDISC, TCA_KIND, TCA_OPTIONS, TCMSG

LOOK_S = 0.0005
ROOT = 0xFFFFFFFF  # linux/pkt_sched.h TC_H_ROOT
TCA_STATS2, TCA_STATS_QUEUE = 7, 3  # linux/rtnetlink.h, linux/gen_stats.h
PLUG, RELEASE, LIMIT = 0, 2, 3  # linux/pkt_sched.h TCQ_PLUG_BUFFER, TCQ_PLUG_RELEASE_INDEFINITE, TCQ_PLUG_LIMIT
UNDER, OWN = 0x1_0001, 0x20_0000  # class 1:1 of a TBF, which is below it; handle 20:
PLUG_LIMIT_BYTES = 100_000_000  # it never drops here


class PortQueue:
    """The queue of a port, read without starting a program."""

    def __init__(self, place: NamespaceHost, device: str) -> None:
        """Open what it is read by.

        Args:
            place: where the port is.
            device: its name.
        """
        self._netlink = place.inside(lambda: Netlink(NETLINK_ROUTE))
        self._index = place.inside(partial(socket.if_nametoindex, device))

    @property
    def size_bytes(self) -> int:
        """What waits in it now, in Ethernet frames."""
        found = 0
        for answer in self._netlink.dump(RTM_GETQDISC, TCMSG.pack(0, self._index, 0, 0, 0)):
            _, index, _, parent, _ = TCMSG.unpack_from(answer)
            if (index, parent) == (self._index, ROOT):
                statistics = attributes(attributes(answer[TCMSG.size :])[TCA_STATS2])
                _, found = struct.unpack_from("=II", statistics[TCA_STATS_QUEUE])  # struct gnet_stats_queue
        return found


class Plugs:
    """What interfaces send by, below the TBF that each of them has."""

    def __init__(self, place: NamespaceHost, devices: Sequence[str]) -> None:
        """Put it there, open.

        Args:
            place: where they are.
            devices: with a TBF of handle 1: as root.
        """
        self._netlink = place.inside(lambda: Netlink(NETLINK_ROUTE))
        self._indices = [place.inside(partial(socket.if_nametoindex, name)) for name in devices]
        self._tell(LIMIT, PLUG_LIMIT_BYTES, create=True)
        self.release()

    def stop(self) -> None:
        """Let nothing leave any more."""
        self._tell(PLUG)

    def release(self) -> None:
        """Let everything leave again."""
        self._tell(RELEASE)

    def _tell(self, action: int, limit_bytes: int = 0, *, create: bool = False) -> None:
        options = struct.pack("=iI", action, limit_bytes)  # struct tc_plug_qopt
        body = attribute(TCA_KIND, b"plug\0") + attribute(TCA_OPTIONS, options)
        for index in self._indices:
            self._netlink.change(RTM_NEWQDISC, TCMSG.pack(0, index, OWN, UNDER, 0) + body, create=create)


class PortWatch:
    """Watches a port's queue, in a thread of its own, and stops interfaces while it is long.

    Attributes:
        most_bytes: the longest that the queue was.
        stops: how often the interfaces were stopped.
        stopped_s: for how long in all.
    """

    def __init__(self, queue: PortQueue, plugs: Plugs | None, marks_bytes: tuple[int, int]) -> None:
        """Start.

        Args:
            queue: of the port.
            plugs: of the interfaces; None to only watch.
            marks_bytes: from which length on they are stopped, and until which one they stay so.
        """
        self._queue, self._plugs, (self._upper, self._lower) = queue, plugs, marks_bytes
        self.most_bytes, self.stops, self.stopped_s = 0, 0, 0.0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread; the interfaces go on."""
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        since_s: float | None = None
        while not self._ending.wait(LOOK_S):
            now_bytes = self._queue.size_bytes
            self.most_bytes = max(self.most_bytes, now_bytes)
            if self._plugs is None:
                continue
            if since_s is None and now_bytes >= self._upper:
                self._plugs.stop()
                self.stops, since_s = self.stops + 1, time.monotonic()
            elif since_s is not None and now_bytes <= self._lower:
                self._plugs.release()
                self.stopped_s, since_s = self.stopped_s + time.monotonic() - since_s, None
        if since_s is not None and self._plugs is not None:
            self._plugs.release()
            self.stopped_s += time.monotonic() - since_s
