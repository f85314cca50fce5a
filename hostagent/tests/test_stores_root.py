"""What a receiving host's agent tells of a slow reader and of a fast one: real sockets of unwitting programs."""

import os
import socket
import statistics

import pytest

from hostagent.tests.paced_reader import PacedReader
from hostagent.tests.rig import MBIT, RunningAgent
from mininet_tests.testing.eventually import eventually
from topology.protocol import StoreBrake, Telemetry

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF")]

READS_MBPS = 20
SO_MAX_PACING_RATE = 47  # linux/asm-generic/socket.h; Python has no name for it


def told_for(agent, seconds):
    """What is told of the store for some seconds from now, the first of them aside."""
    heard = len(agent.controller.all_of(Telemetry))
    eventually(
        lambda: len(agent.controller.all_of(Telemetry)) > heard + seconds, within_s=seconds + 10, what="telemetry"
    )
    return [one for message in agent.controller.all_of(Telemetry)[heard + 1 :] for one in message.stores]


@pytest.fixture
def receiving(hosts, tmp_path, cleanup):
    """An agent on the right host that has a store."""
    running = RunningAgent(hosts[1], tmp_path / "agent", stores=[{"path": str(tmp_path), "name": "data"}])
    cleanup.callback(running.close)
    return running


def test_a_slow_reader_is_told_with_its_rate_and_what_waits_for_it(hosts, receiving, cleanup):
    reader = PacedReader(*hosts, READS_MBPS, 1 << 20)
    cleanup.callback(reader.close)
    told_for(receiving, 2)
    seen = told_for(receiving, 5)
    assert all(one.is_waiting and one.name == "data" and one.brake is StoreBrake.READER for one in seen), seen
    rate_bps = statistics.median(one.drained_bps for one in seen)
    assert rate_bps == pytest.approx(READS_MBPS * MBIT, rel=0.1)
    assert all(one.unread_bytes > 100_000 for one in seen)


def test_a_fast_reader_is_never_said_to_be_waited_for(hosts, receiving, cleanup):
    reader = PacedReader(*hosts, None)
    reader.sender.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 10 * READS_MBPS * MBIT // 8)  # as a line would
    cleanup.callback(reader.close)
    told_for(receiving, 2)
    seen = told_for(receiving, 4)
    assert seen
    assert not any(one.is_waiting for one in seen), seen
    assert all(one.drained_bps > READS_MBPS * MBIT for one in seen)
