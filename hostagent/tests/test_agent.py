"""What the agent says, without a kernel part; what that does is in ``test_agent_root`` and its neighbours."""

import time

import pytest

from hostagent.agent.agent import Agent
from hostagent.agent.stream import Received
from hostagent.lease_clock import lease_now_ns
from hostagent.log import log
from hostagent.settings import AgentSettings
from mininet_tests.testing.eventually import eventually
from topology.protocol import Allocations, to_bytes


class KernelWithoutEntries:
    """Holds what it is given, which here are no entries."""

    def apply(self, change, expires_ns, epoch):
        """Take it."""

    def counters(self, slots):
        """Return none: there are no entries."""
        return ()

    def demand(self):
        """Return none."""
        return {}


@pytest.fixture
def agent():
    """An agent that nobody has told anything."""
    return Agent(AgentSettings("base20", ("127.0.0.1:1",)), KernelWithoutEntries(), None)


def told(agent, epoch, lease_ms):
    """Let a controller without entries for it tell an agent its plan."""
    agent._answer(Received(to_bytes(Allocations(epoch, lease_ms)), lease_now_ns()))


def test_a_lease_that_is_over_is_said_though_a_controller_that_has_no_plan_comes_before_the_next_look(agent):
    with log.captured() as events:
        told(agent, 7, 50)
        eventually(lambda: not agent._in_force.lease_left_ms(lease_now_ns()), within_s=5, what="its lease is over")
        told(agent, 0, 3000)
    said = [(one["event"], one["epoch"]) for one in events]
    assert said == [("agent.applied", 7), ("agent.lease_over", 7), ("agent.applied", 0)]


def test_it_is_told_when_the_counters_were_read(agent):
    before_us = time.monotonic_ns() // 1000
    assert before_us <= agent._telemetry().at_us <= time.monotonic_ns() // 1000
