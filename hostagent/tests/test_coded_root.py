"""The coded tail on a long line: what is lost is made good, TCP repeats only that, and sees no reordering."""

import os
from dataclasses import replace

import pytest

from hostagent.kernel.coded import SHARED
from hostagent.tests.coded_line import (
    GROUPS,
    LONG_BYTES,
    RATE_MBPS,
    SEGMENT_BYTES,
    SHORT_BYTES,
    TYPES,
    CodedLine,
    counts_of,
    demanded_of,
    ended_ns_of,
)
from hostagent.tests.kernel_counts import programs_at
from hostagent.tests.rig import MBIT, RunningAgent
from mininet_tests.testing.eventually import eventually
from topology.protocol import Allocations, Tail

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF"),
    pytest.mark.timeout(600),  # each takes seconds; the longest file of its kind begins first
]

MOST_BYTES = 8_000_000


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
