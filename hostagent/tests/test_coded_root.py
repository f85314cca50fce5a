"""The coded tail on a long line: what is lost is made good, TCP repeats only that, and sees no reordering."""

import hashlib
import os
import random
import time
from dataclasses import replace
from ipaddress import ip_network

import pytest

from hostagent.kernel.btf import Btf
from hostagent.kernel.coded import SHARED, CodedCounts, counts_in
from hostagent.kernel.image import CODED_OBJECT_FILE, object_image
from hostagent.kernel.layout import SLOT, Demanded, layout_of
from hostagent.tests.delayed_line import DelayedLine, unconfirmed_bytes, unsent_bytes
from hostagent.tests.kernel_maps import agents_map
from hostagent.tests.rig import MBIT, Draining, RunningAgent, connected
from hostagent.tests.test_tail_root import counted, programs_at, retransmitted
from mininet_tests.testing.eventually import eventually
from topology.protocol import Allocation, Allocations, FlowClass, Tail

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF"),
    pytest.mark.timeout(600),  # each takes seconds; the longest file of its kind begins first
]

RTT_S = 0.15
RATE_MBPS = 16
SEGMENT_BYTES = 1448
WINDOW_SEGMENTS = 220  # of rate and round trip, and some more
LONG_BYTES, SHORT_BYTES = 1_500 * SEGMENT_BYTES, 100 * SEGMENT_BYTES
GROUPS = 8  # of a tail of such a window: cells so far apart are of one group
MOST_BYTES = 8_000_000
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
        return retransmitted(self)

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


@pytest.mark.parametrize("size_bytes", [LONG_BYTES, SHORT_BYTES], ids=["many windows", "less than a window"])
@pytest.mark.parametrize("before_end", [90, 3], ids=["90th before the last", "3rd before the last"])
def test_a_loss_in_the_last_window_is_made_good_and_is_no_reordering(tmp_path, cleanup, size_bytes, before_end):
    line = CodedLine(tmp_path, cleanup)
    repeated, rebuilt, probes = line.repeated, line.came.rebuilt, line.probes
    line.carry(size_bytes, [size_bytes - before_end * SEGMENT_BYTES])
    assert line.came.rebuilt == rebuilt + 1
    assert line.repeated <= repeated + 1 + line.probes - probes
    assert line.reorderings == {}


def test_of_a_short_transfer_a_loss_in_a_block_that_is_full_is_made_good_too(tmp_path, cleanup):
    line = CodedLine(tmp_path, cleanup)
    repeated, rebuilt, blocks, probes = line.repeated, line.came.rebuilt, line.came.anchors, line.probes
    # the first block is for 20 segments, of 2 groups, and full after 128
    line.carry(150 * SEGMENT_BYTES, [50 * SEGMENT_BYTES], first_bytes=20 * SEGMENT_BYTES)
    assert line.came.anchors == blocks + 2
    assert line.came.rebuilt == rebuilt + 1
    assert line.repeated <= repeated + 1 + line.probes - probes
    assert line.reorderings == {}


def test_losses_of_several_groups_are_made_good_and_are_no_reordering(tmp_path, cleanup):
    line = CodedLine(tmp_path, cleanup)
    # far from the end: TCP has repeated them before they close, also where a busy machine hands confirmations on late
    lost = [LONG_BYTES - before_end * SEGMENT_BYTES for before_end in (170, 151, 132, 113)]
    repeated, rebuilt, probes = line.repeated, line.came.rebuilt, line.probes
    line.carry(LONG_BYTES, lost)
    assert line.came.rebuilt == rebuilt + len(lost)
    assert line.repeated <= repeated + len(lost) + line.probes - probes
    assert line.reorderings == {}


def test_two_losses_in_one_group_are_repeated_and_are_no_reordering(tmp_path, cleanup):
    line = CodedLine(tmp_path, cleanup)
    first = LONG_BYTES - 100 * SEGMENT_BYTES
    repeated, too_many = line.repeated, line.came.too_many
    line.carry(LONG_BYTES, [first, first + GROUPS * SEGMENT_BYTES])
    assert line.came.too_many > too_many
    assert repeated < line.repeated <= repeated + 4
    assert line.reorderings == {}


def test_only_what_was_lost_is_repeated_where_much_was_missing(tmp_path, cleanup):
    line = CodedLine(tmp_path, cleanup)
    cells = (0, GROUPS, 20, 30, 45, 59, 71)  # the first two are of one group
    lost = [LONG_BYTES - (100 - cell) * SEGMENT_BYTES for cell in cells]
    repeated, rebuilt = line.repeated, line.came.rebuilt
    line.carry(LONG_BYTES, lost)
    assert line.came.rebuilt == rebuilt + 5
    assert line.repeated <= repeated + len(lost)
    assert line.reorderings == {}


def test_what_is_sent_again_while_the_last_window_goes_makes_nothing_else_lost(tmp_path, cleanup):
    line = CodedLine(tmp_path, cleanup)
    # the second is lost before the first is sent again, and the first is confirmed before any parity is
    lost = [LONG_BYTES - before_end * SEGMENT_BYTES for before_end in (300, 200)]
    repeated, probes = line.repeated, line.probes
    line.carry(LONG_BYTES, lost)
    assert line.repeated <= repeated + len(lost) + line.probes - probes
    assert line.reorderings == {}


@pytest.mark.parametrize("pause_s", [0.08, 0.11, 0.14])  # some confirmations of what was lost have come by then, or all
@pytest.mark.parametrize(
    "cells",
    [range(0, 80, GROUPS), (0, 20, 30, 45)],
    ids=["more of one group than a receiver remembers", "all of which are made good"],
)
def test_where_it_was_no_end_only_what_was_lost_is_repeated(tmp_path, cleanup, pause_s, cells):
    line = CodedLine(tmp_path, cleanup)
    lost = [LONG_BYTES - (100 - cell) * SEGMENT_BYTES for cell in cells]
    repeated = line.repeated

    def begin():
        line.sender.sendall(bytes(LONG_BYTES))
        eventually(lambda: unsent_bytes(line.sender) == 0, within_s=10, what="nothing is left to be sent")
        until_s = time.monotonic() + pause_s
        eventually(lambda: time.monotonic() > until_s, within_s=1, what="the pause")

    line.carry(LONG_BYTES, lost, before=begin)
    assert line.repeated <= repeated + len(lost) + 1
    assert line.reorderings == {}


@pytest.mark.parametrize("what", ["no receiver of ours", "what has no flag is dropped on the way"])
def test_where_nothing_is_rebuilt_tcp_is_told_of_each_loss(tmp_path, cleanup, what):
    line = CodedLine(tmp_path, cleanup, receiver_codes=what != "no receiver of ours")
    line.line.losses.without_flags = what != "no receiver of ours"
    repeated = line.repeated
    line.carry(LONG_BYTES, [LONG_BYTES - 80 * SEGMENT_BYTES])
    assert line.repeated > repeated


@pytest.mark.parametrize("end", ["left", "right", "both"])
def test_agents_that_are_killed_midway_leave_tcp_going(tmp_path, cleanup, end):
    line = CodedLine(tmp_path, cleanup)

    def kill():
        for name, agent in (("left", line.sending), ("right", line.receiving)):
            if end in (name, "both"):
                agent.kill()

    line.carry(LONG_BYTES, [LONG_BYTES - 80 * SEGMENT_BYTES], meanwhile=kill)
    line.carry(SHORT_BYTES, [SHORT_BYTES - 3 * SEGMENT_BYTES])


def test_an_allocation_has_parities_only_while_it_says_so(tmp_path, cleanup):
    line = CodedLine(tmp_path, cleanup, tail=Tail.PLAIN)
    line.carry(LONG_BYTES)
    assert counts_of(line.sending).blocks == line.came.anchors == 0
    line.sending.obey(Allocations(2, 60_000, (replace(line.allocation, tail=Tail.CODED),)))
    line.carry(LONG_BYTES)
    blocks, parities = counts_of(line.sending).blocks, line.came.needless
    assert blocks > 0
    assert parities > 0
    line.sending.obey(Allocations(3, 60_000, (line.allocation,)))
    line.carry(LONG_BYTES)
    assert (counts_of(line.sending).blocks, line.came.needless) == (blocks, parities)


def test_a_flight_is_over_once_its_parities_have_gone_too(tmp_path, cleanup):
    line = CodedLine(tmp_path, cleanup, standby_bps=RATE_MBPS * MBIT, size_bytes=LONG_BYTES)
    eventually(lambda: not demanded_of(line.sending).wants, within_s=10, what="the flight is over")
    parities_ns = GROUPS * SEGMENT_BYTES * 8 * 1000 // RATE_MBPS
    assert demanded_of(line.sending).due_ns >= ended_ns_of(line.sending) + parities_ns


def test_only_an_agent_that_is_asked_to_has_it(hosts, tmp_path, cleanup):
    agent = RunningAgent(hosts[0], tmp_path / "agent")
    cleanup.callback(agent.close)
    with pytest.raises(LookupError):
        counts_of(agent)
    assert hosts[0].inside(lambda: programs_at(hosts[0].interface)) == 1


def test_interfaces_have_it_while_there_is_such_an_agent(hosts, tmp_path, cleanup):
    left = hosts[0]
    agent = RunningAgent(left, tmp_path / "agent", tail_coded=True)
    cleanup.callback(agent.close)
    assert left.inside(lambda: programs_at(left.interface)) == 2
    left.ip("link", "add", "late0", "type", "veth", "peer", "name", "late1")
    eventually(lambda: left.inside(lambda: programs_at("late0")) == 2, within_s=3, what="a new interface has it too")
    agent.kill()
    eventually(lambda: left.inside(lambda: programs_at(left.interface)) == 0, within_s=3, what="it is gone")


def test_its_maps_take_less_than_eight_megabytes():
    maps = [one for name, one in TYPES.maps().items() if name not in SHARED]
    assert sum((one.key.size_bytes + one.value.size_bytes) * one.max_entries for one in maps) < MOST_BYTES
