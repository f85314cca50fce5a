"""The agent with two controllers, on this machine's kernel: one leads, one stands by, and then the other leads."""

import os
from collections.abc import Iterator

import pytest

from hostagent.tests.fake_controller import FakeController
from hostagent.tests.rig import RunningAgent, allocation
from mininet_tests.testing.eventually import eventually
from topology.protocol import Allocations, Declined, Hello
from topology.telemetry import Telemetry

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF")]

LEASE_MS = 1500
WITHIN_S = 20
PLAN = (allocation("10.77.0.2/32", 200),)
NO_PLAN = Allocations(0, LEASE_MS)  # what a controller that stands by says


@pytest.fixture
def other(tmp_path) -> Iterator[FakeController]:
    """The second controller, which stands by."""
    controller = FakeController(tmp_path / "other.sock")
    controller.send(NO_PLAN)
    yield controller
    controller.stop()


@pytest.fixture
def agent(hosts, tmp_path, cleanup, other) -> RunningAgent:
    """An agent of two controllers, the first of which leads."""
    addresses = [f"unix:{tmp_path / 'agent' / 'c.sock'}", other.address]
    running = RunningAgent(hosts[0], tmp_path / "agent", controllers=addresses)
    cleanup.callback(running.close)
    eventually(lambda: other.all_of(Hello), within_s=WITHIN_S, what="it calls both")
    return running


def held(controller: FakeController) -> tuple[int | None, int]:
    """The epoch that an agent said it holds, and how many entries."""
    said = controller.all_of(Hello)[-1]
    return said.epoch, len(said.entries)


def test_who_stands_by_hears_what_the_leader_has_granted_and_the_counters(agent, other):
    agent.obey(Allocations(10, LEASE_MS, PLAN))
    eventually(lambda: held(other) == (10, 1), within_s=WITHIN_S, what="the other one hears of the plan")
    eventually(lambda: [t for t in other.all_of(Telemetry) if t.entries], within_s=WITHIN_S, what="and of its counters")


def test_what_who_stands_by_says_takes_nothing_from_the_leaders_plan(agent, other):
    agent.obey(Allocations(10, LEASE_MS, PLAN))
    eventually(lambda: held(other) == (10, 1), within_s=WITHIN_S, what="the other one hears of the plan")
    before = len(other.all_of(Telemetry))
    eventually(lambda: len(other.all_of(Telemetry)) > before + 3, within_s=WITHIN_S, what="some seconds pass")
    assert all(told.lease_left_ms and told.entries for told in other.all_of(Telemetry)[before:])


def test_the_other_one_is_obeyed_as_soon_as_it_leads_and_the_first_no_more(agent, other):
    agent.obey(Allocations(10, LEASE_MS, PLAN))
    other.send(Allocations(20, LEASE_MS, PLAN))
    eventually(lambda: other.applied(20), within_s=WITHIN_S, what="the other one is obeyed")
    eventually(lambda: agent.controller.all_of(Declined), within_s=WITHIN_S, what="the first one is declined")
    assert agent.controller.all_of(Declined)[-1].in_force == 20
    eventually(lambda: [t for t in other.all_of(Telemetry) if t.epoch == 20], within_s=WITHIN_S, what="its plan stays")
    assert "agent.lease_over" not in agent.log


def test_a_leader_that_is_silent_is_followed_without_a_gap(agent, other):
    agent.obey(Allocations(10, LEASE_MS, PLAN))
    agent.controller.stop()
    other.send(Allocations(20, LEASE_MS, PLAN))
    eventually(lambda: other.applied(20), within_s=WITHIN_S, what="the other one is obeyed")
    assert "agent.lease_over" not in agent.log
