"""The coded tail where it cannot help, or was not to: TCP is told of what was lost, and goes on."""

import os
import time

import pytest

from hostagent.tests.coded_line import GROUPS, LONG_BYTES, SEGMENT_BYTES, SHORT_BYTES, CodedLine
from hostagent.tests.delayed_line import unsent_bytes
from mininet_tests.testing.eventually import eventually

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF"),
    pytest.mark.timeout(600),  # each takes seconds; the longest file of its kind begins first
]


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
