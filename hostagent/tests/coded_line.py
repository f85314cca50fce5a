"""A long line with agents that code tails, for tests."""

import hashlib
import random
from ipaddress import ip_network

from hostagent.kernel.btf import Btf
from hostagent.kernel.coded import CodedCounts, counts_in
from hostagent.kernel.image import CODED_OBJECT_FILE, object_image
from hostagent.kernel.layout import SLOT, Demanded, layout_of
from hostagent.tests.delayed_line import DelayedLine, unconfirmed_bytes
from hostagent.tests.kernel_counts import counted, retransmitted
from hostagent.tests.kernel_maps import agents_map
from hostagent.tests.rig import MBIT, Draining, RunningAgent, connected
from mininet_tests.testing.eventually import eventually
from topology.protocol import Allocation, Allocations, FlowClass, Tail

RTT_S = 0.15
RATE_MBPS = 16
SEGMENT_BYTES = 1448
WINDOW_SEGMENTS = 220  # of rate and round trip, and some more
LONG_BYTES, SHORT_BYTES = 1_500 * SEGMENT_BYTES, 100 * SEGMENT_BYTES
GROUPS = 8  # of a tail of such a window: cells so far apart are of one group
TYPES = Btf(object_image(CODED_OBJECT_FILE))
REORDERINGS = ("TCPSACKReorder", "TCPTSReorder", "TCPDSACKRecv", "TCPDSACKOfoRecv", "TCPDSACKIgnoredOld")


def counts_of(agent: RunningAgent) -> CodedCounts:
    with agents_map(agent.process.pid, "hw_coded") as found:
        return counts_in(found)


def demanded_of(agent: RunningAgent) -> Demanded:
    with agents_map(agent.process.pid, "hw_demand") as found:
        return layout_of(object_image()).demanded(found.value(SLOT.pack(0)))


def ended_ns_of(agent: RunningAgent) -> int:
    """When the last of what was written left, by the kernel's clock; of a host's one connection."""
    with agents_map(agent.process.pid, "hw_sent") as found:
        (key,) = found.every_key()
        offset = TYPES.maps()["hw_sent"].value.offset_bytes("ended_ns")
        return int.from_bytes(found.value(key)[offset : offset + 8], "little")


class CodedLine:
    """A line with an agent at each end, and a connection of the left host that has sent something already."""

    def __init__(self, folder, cleanup, *, receiver_codes=True, tail=Tail.CODED, **more):
        self.line = DelayedLine(RTT_S)
        cleanup.callback(self.line.close)
        self.sending = RunningAgent(self.line.left, folder / "left", tail_coded=True)
        cleanup.callback(self.sending.close)
        self.receiving = RunningAgent(self.line.right, folder / "right", tail_coded=receiver_codes)
        cleanup.callback(self.receiving.close)
        self.receiving.obey(Allocations(1, 60_000, (), receive_window_bytes=4 * WINDOW_SEGMENTS * SEGMENT_BYTES))
        dest = ip_network(self.line.right.address)
        self.allocation = Allocation(
            "urgent/left", FlowClass.URGENT, dest, RATE_MBPS * MBIT, WINDOW_SEGMENTS, tail=tail, **more
        )
        self.sending.obey(Allocations(1, 60_000, (self.allocation,)))
        self.sender, self.receiver = connected(self.line.left, self.line.right)
        cleanup.callback(self.sender.close)
        cleanup.callback(self.receiver.close)
        self._seed = 0
        self.carry(LONG_BYTES)

    def carry(self, size_bytes, lost=(), meanwhile=lambda: None, before=None, first_bytes=0):
        """Send something, of which the segments with these bytes are lost; it must arrive as it was sent.

        ``first_bytes``: so many are written by a call of their own, and the kernel does not know yet that more follows.
        ``before``: sends ``size_bytes`` of zeros first, in which the bytes are counted.
        """
        self._seed += 1
        data = random.Random(self._seed).randbytes(size_bytes)  # noqa: S311 - repeatable, guards nothing
        if before is not None:
            data = bytes(size_bytes) + data
        draining = Draining(self.receiver, len(data))
        self.line.losses.lose(lost)
        if before is not None:
            before()
        self.sender.sendall(data[-size_bytes:][:first_bytes])
        self.sender.sendall(data[-size_bytes:][first_bytes:])
        meanwhile()
        assert draining.digest(30) == hashlib.sha256(data).digest()
        eventually(lambda: unconfirmed_bytes(self.sender) == 0, within_s=10, what="all is confirmed")
        assert len(self.line.losses.lost) == len(lost)

    @property
    def repeated(self):
        """Segments that the sender has sent again so far."""
        return retransmitted(self.sender)

    @property
    def probes(self):
        """Tail loss probes so far: a machine that stands still lets one go, and it may be a segment sent again."""
        return counted(self.line.left, "TCPLossProbes")

    @property
    def reorderings(self):
        return {name: count for name in REORDERINGS if (count := counted(self.line.left, name))}

    @property
    def came(self) -> CodedCounts:
        return counts_of(self.receiving)
