"""What a sender's kernel says of a receiver that reads slowly, before its rate follows the reader and after."""

import os
import statistics
from itertools import pairwise

import pytest

from hostagent.tests.paced_reader import PacedReader
from hostagent.tests.rig import MBIT, allocation
from mininet_tests.testing.eventually import eventually
from topology.protocol import Allocations, Telemetry

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF")]

LEASE_MS = 3000
DEST = "10.77.0.2/32"
READS_MBPS = 20


def told_for(agent, seconds):
    """What is told of the entry for some seconds from now, the first and the last of them aside."""
    heard = len(agent.controller.all_of(Telemetry))
    eventually(
        lambda: len(agent.controller.all_of(Telemetry)) >= heard + seconds, within_s=seconds + 10, what="telemetry"
    )
    told = agent.controller.all_of(Telemetry)[heard + 1 :]
    return [one for message in told for one in message.entries if one.name == DEST]


def rates_and_shares(seen):
    """Between each two looks: what was delivered, Mbit/s, and the share of the time that the window was closed."""
    return [
        ((b.delivered_bytes - a.delivered_bytes) * 8 / MBIT, b.receiver_limited_ms / max(1, b.busy_ms))
        for a, b in pairwise(seen)
    ]


def test_a_closed_window_says_that_the_reader_is_slow_also_when_the_rate_is_a_little_more_than_it_reads(
    hosts, agent, cleanup
):
    agent.obey(Allocations(1, LEASE_MS, (allocation(DEST, 100),)))
    reader = PacedReader(*hosts, READS_MBPS, 1 << 20)
    cleanup.callback(reader.close)
    told_for(agent, 2)  # until the buffer is full
    free = rates_and_shares(told_for(agent, 5))
    assert all(share > 0.5 for _, share in free), free
    assert statistics.median(rate for rate, _ in free) == pytest.approx(READS_MBPS, rel=0.05)
    agent.obey(Allocations(2, LEASE_MS, (allocation(DEST, READS_MBPS * 17 // 16),)))
    held = rates_and_shares(told_for(agent, 8))
    quiet = [share < 0.02 for _, share in held]
    assert not any(one and other for one, other in pairwise(quiet)), held
    assert statistics.mean(rate for rate, _ in held) == pytest.approx(READS_MBPS, rel=0.05)
    reader.mbps = None
    told_for(agent, 2)  # until it has read what waited
    freed = rates_and_shares(told_for(agent, 4))
    assert all(share < 0.02 for _, share in freed), freed
    assert reader.read_bytes
