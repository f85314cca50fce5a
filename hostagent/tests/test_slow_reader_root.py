"""What a sender's kernel says of a receiver that reads slowly, before its rate follows the reader and after."""

import os
from itertools import pairwise

import pytest

from hostagent.tests.paced_reader import PacedReader
from hostagent.tests.rig import allocation
from mininet_tests.testing.eventually import eventually
from topology.protocol import Allocations
from topology.telemetry import Telemetry

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF")]

LEASE_MS = 3000
DEST = "10.77.0.2/32"
READS_MBPS = 20


def told_for(agent, reader, seconds):
    """What is told of the entry for some seconds from now, the first of them aside, each with what was read by then."""
    before, heard = len(agent.controller.all_of(Telemetry)), []

    def over():
        new = agent.controller.all_of(Telemetry)[before + len(heard) :]
        heard.extend((message, reader.read_bytes) for message in new)
        return len(heard) >= seconds

    eventually(over, within_s=3 * seconds + 10, what="telemetry")
    return [(one, read) for message, read in heard[1:] for one in message.entries if one.name == DEST]


def shares(seen):
    """Before each look but the first, the share of the time that the window was closed."""
    return [one.receiver_limited_ms / max(1, one.busy_ms) for one, _ in seen[1:]]


def delivered_of_read(seen):
    """How much was delivered in all that time, of what was read: a reader that waits for a processor reads less."""
    (first, read_before), (last, read) = seen[0], seen[-1]
    return (last.delivered_bytes - first.delivered_bytes) / (read - read_before)


def test_a_closed_window_says_that_the_reader_is_slow_also_when_the_rate_is_a_little_more_than_it_reads(
    hosts, agent, cleanup
):
    agent.obey(Allocations(1, LEASE_MS, (allocation(DEST, 100),)))
    reader = PacedReader(*hosts, READS_MBPS, 1 << 20)
    cleanup.callback(reader.close)
    told_for(agent, reader, 2)  # until the buffer is full
    free = told_for(agent, reader, 6)
    assert all(share > 0.5 for share in shares(free)), free
    assert delivered_of_read(free) == pytest.approx(1, rel=0.05)
    agent.obey(Allocations(2, LEASE_MS, (allocation(DEST, READS_MBPS * 17 // 16),)))
    held = told_for(agent, reader, 9)
    quiet = [share < 0.02 for share in shares(held)]
    assert not any(one and other for one, other in pairwise(quiet)), held
    assert delivered_of_read(held) == pytest.approx(1, rel=0.05)
    reader.mbps = None
    told_for(agent, reader, 2)  # until it has read what waited
    freed = told_for(agent, reader, 5)
    assert all(share < 0.02 for share in shares(freed)), freed
    assert reader.read_bytes
