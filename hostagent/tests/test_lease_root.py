"""Agents and controllers that end, hang and come back, on this machine's kernel: what sockets do meanwhile."""

import os

import pytest

from hostagent.tests.rates import LEASE_MS, assert_rate, ours, started
from hostagent.tests.rig import MBIT, Bulk, RunningAgent, allocation, measured_bps
from mininet_tests.testing.eventually import eventually
from topology.protocol import Allocations

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF")]


def test_a_stopped_agents_sockets_fall_back_and_return_when_it_goes_on(hosts, agent, cleanup):
    agent.obey(Allocations(1, LEASE_MS, (allocation("10.77.0.2/32", 60),)))
    bulks = started(cleanup, Bulk(*hosts))
    agent.hang()
    try:
        eventually(lambda: not ours(bulks[0]), within_s=LEASE_MS / 1000 + 1, what="the lease ends")
    finally:
        agent.go_on()
    # What came meanwhile counts from when it can have come, so it may hold for a moment only; then the next one does.
    eventually(lambda: 59 < measured_bps(bulks, 0.5) / MBIT < 61, within_s=10, what="the plan holds again")
    assert_rate(bulks, 60 * MBIT)


def test_an_older_epoch_is_not_obeyed(hosts, agent, cleanup):
    agent.obey(Allocations(5, LEASE_MS, (allocation("10.77.0.2/32", 100),)))
    bulks = started(cleanup, Bulk(*hosts))
    agent.controller.send(Allocations(4, LEASE_MS, (allocation("10.77.0.2/32", 30),)))
    eventually(lambda: "agent.old_epoch" in agent.log, within_s=5, what="a log line")
    agent.controller.send(Allocations(5, LEASE_MS, (allocation("10.77.0.2/32", 100),)))
    assert_rate(bulks, 100 * MBIT)
    assert not agent.controller.applied(4)


def test_a_killed_agents_sockets_fall_back_and_the_next_agent_cleans_up(hosts, agent, cleanup):
    plan = Allocations(1, LEASE_MS, (allocation("10.77.0.2/32", 60),))
    bulk = Bulk(*hosts)
    bulk.algorithm = "reno"
    started(cleanup, bulk)
    agent.obey(plan)
    assert ours(bulk)
    agent.kill()
    assert ours(bulk), "the lease still runs"
    eventually(lambda: bulk.algorithm == "reno", within_s=LEASE_MS / 1000 + 1, what="back on its own algorithm")
    agent.controller.heard.clear()
    agent.restart()
    eventually(lambda: agent.controller.applied(1), within_s=10, what="the new agent obeys")
    assert "agent.leftover_removed" in agent.log
    assert ours(bulk)
    assert_rate([bulk], 60 * MBIT)
    assert agent.terminate() == 0
    assert bulk.algorithm == "reno"


def test_a_new_agent_knows_what_a_killed_agents_sockets_had(hosts, agent, cleanup):
    bulk = Bulk(*hosts)
    bulk.algorithm = "reno"
    started(cleanup, bulk)
    plan = Allocations(1, 60_000, (allocation("10.77.0.2/32", 60),))
    agent.obey(plan)
    agent.kill()
    agent.controller.heard.clear()
    agent.restart()
    eventually(lambda: agent.controller.applied(1), within_s=10, what="the new agent obeys")
    assert ours(bulk)
    agent.obey(Allocations(2, LEASE_MS, ()))
    assert bulk.algorithm == "reno"


def test_a_new_agent_counts_a_killed_agents_connection_once_in_another_order_of_the_plan(hosts, agent, cleanup):
    first, other = allocation("10.77.9.0/24", 30), allocation("10.77.0.2/32", 60)
    started(cleanup, Bulk(*hosts))
    agent.obey(Allocations(1, 60_000, (first,)))
    agent.obey(Allocations(2, 60_000, (first, other)))
    agent.kill()
    agent.controller.heard.clear()
    agent.controller.send(Allocations(3, 60_000, (other, first)))
    agent.restart()
    eventually(lambda: agent.controller.applied(3), within_s=10, what="the new agent obeys")
    told = eventually(
        lambda: all(told := [agent.controller.entry(one.name) for one in (other, first)]) and told,
        within_s=5,
        what="telemetry",
    )
    assert [one.connections for one in told] == [1, 0]


def test_a_lost_controller_ends_the_lease_and_its_return_brings_the_plan_back(hosts, agent, cleanup):
    agent.obey(Allocations(1, LEASE_MS, (allocation("10.77.0.2/32", 60),)))
    bulks = started(cleanup, Bulk(*hosts))
    assert ours(bulks[0])
    agent.controller.stop()
    eventually(lambda: not ours(bulks[0]), within_s=LEASE_MS / 1000 + 1, what="the lease ends")
    agent.controller.heard.clear()
    agent.controller.start()
    eventually(lambda: agent.controller.applied(1), within_s=10, what="applied again, on the new stream")
    assert ours(bulks[0])
    assert_rate(bulks, 60 * MBIT)


def test_two_agents_on_one_kernel_leave_each_others_sockets_alone(hosts, agent, tmp_path, cleanup):
    left, right = hosts
    other = RunningAgent(right, tmp_path / "other")
    cleanup.callback(other.close)
    agent.obey(Allocations(1, LEASE_MS, (allocation("10.77.0.0/24", 100),)))
    rightwards = Bulk(left, right)
    leftwards = Bulk(right, left)
    assert (ours(rightwards), ours(leftwards)) == (True, False)
    other.obey(Allocations(1, LEASE_MS, (allocation("10.77.0.0/24", 40),)))
    started(cleanup, rightwards, leftwards)
    assert rightwards.algorithm != leftwards.algorithm
    assert_rate([rightwards], 100 * MBIT)
    assert_rate([leftwards], 40 * MBIT)
    assert other.terminate() == 0
    assert (ours(rightwards), ours(leftwards)) == (True, False)


def test_a_second_agent_in_the_same_namespace_refuses(hosts, agent, tmp_path):
    with pytest.raises(AssertionError, match="another agent runs in this network namespace"):
        RunningAgent(hosts[0], tmp_path / "second")
