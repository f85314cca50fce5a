"""What the agent says, without a kernel part; what that does is in ``test_agent_root`` and its neighbours."""

import time
from types import SimpleNamespace

import pytest

from hostagent.agent import agent as agents
from hostagent.agent.agent import Agent
from hostagent.agent.stream import Received
from hostagent.errors import GaveWay, Lost
from hostagent.lease_clock import lease_now_ns
from hostagent.log import log
from hostagent.settings import AgentSettings
from mininet_tests.testing.eventually import eventually
from topology.protocol import Allocations, to_bytes


class KernelWithoutEntries:
    """Holds what it is given, which here are no entries."""

    codes_tails = False
    flips = SimpleNamespace(fd=-1)

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


class FakeStream:
    """Says a plan, and ends."""

    def __init__(self, end):
        self._end, self.ends_s = end, {}

    def send(self, message):
        """Take it."""

    def messages(self):
        """Yield the plan."""
        yield Received(to_bytes(Allocations(7, 3000)), lease_now_ns())
        raise self._end


@pytest.mark.parametrize(("end", "is_success"), [(Lost("it ends"), True), (GaveWay("base20 has called again"), False)])
def test_a_stream_that_gave_way_to_another_is_no_success_after_which_it_is_dialled_at_once(
    agent, monkeypatch, end, is_success
):
    """A controller that is listed by two addresses would be dialled by both, for ever, several times a second."""
    monkeypatch.setattr(agents, "ControllerStream", lambda *_: FakeStream(end))
    with log.captured():
        assert agent._attach("127.0.0.1:1") is is_success
