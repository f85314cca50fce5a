"""What an application chooses itself on a connection that is held, on this machine's kernel."""

import os
import socket
from dataclasses import replace

import pytest

from hostagent.tests.rates import LEASE_MS, assert_rate, ours, started
from hostagent.tests.rig import MBIT, Bulk, allocation, measured_bps
from mininet_tests.testing.eventually import eventually
from topology.protocol import Allocations

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF")]

SO_MAX_PACING_RATE = 47  # include/uapi/asm-generic/socket.h
PLAN = allocation("10.77.0.2/32", 80, 1000)


def test_a_pacing_rate_of_zero_bounds_nothing_and_the_plan_holds(hosts, agent, cleanup):
    agent.obey(Allocations(1, LEASE_MS, (PLAN,)))
    (bulk,) = started(cleanup, Bulk(*hosts))
    eventually(lambda: bulk.info.bytes_acked > 1_000_000, within_s=5, what="data flows")
    bulk.sender.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 0)
    assert_rate([bulk], 80 * MBIT)


def test_a_pacing_rate_that_was_asked_for_meanwhile_holds_after_the_plan(hosts, agent, cleanup):
    hosts[0].set({"net.ipv4.tcp_congestion_control": "reno"})  # which does not pace by itself
    agent.obey(Allocations(1, LEASE_MS, (PLAN,)))
    (bulk,) = started(cleanup, Bulk(*hosts))
    eventually(lambda: bulk.info.bytes_acked > 1_000_000, within_s=5, what="data flows")
    bulk.sender.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 20 * MBIT // 8)
    agent.obey(Allocations(2, LEASE_MS))
    assert not ours(bulk)
    assert 0 < measured_bps([bulk], 2) < 22 * MBIT


def test_a_connection_whose_application_takes_another_algorithm_is_held_again_within_a_second(hosts, agent, cleanup):
    agent.obey(Allocations(1, LEASE_MS, (PLAN,)))
    (bulk,) = started(cleanup, Bulk(*hosts))
    eventually(lambda: bulk.info.bytes_acked > 1_000_000, within_s=5, what="data flows")
    bulk.algorithm = "reno"
    eventually(lambda: ours(bulk), within_s=2.5, what="it is held again")
    assert_rate([bulk], 80 * MBIT)
    agent.obey(Allocations(2, LEASE_MS))
    assert bulk.algorithm == "reno"


def test_what_was_set_goes_with_the_plan_though_the_application_has_taken_another_algorithm(hosts, agent, cleanup):
    agent.obey(Allocations(1, LEASE_MS, (replace(PLAN, dscp=46),)))
    (bulk,) = started(cleanup, Bulk(*hosts))
    eventually(lambda: bulk.info.bytes_acked > 1_000_000, within_s=5, what="data flows")
    assert bulk.tos == 46 << 2
    bulk.algorithm = "reno"
    agent.obey(Allocations(2, LEASE_MS))
    assert (bulk.algorithm, bulk.tos) == ("reno", 0)
