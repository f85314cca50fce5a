"""A host that sleeps: its lease goes on, by the clock that does."""

import time

from apps.tests.trusting import AgentsListener, agent_running, free_port
from controller.southbound.agents.hosts import HostSessions
from mininet_tests.testing.eventually import eventually
from topology.protocol import Allocations

LEASE_MS, SLEPT_NS = 60_000, 600_000_000_000


class GenerousListener(AgentsListener):
    """Grants for a minute."""

    def host_up(self, hello):
        self.up.append(hello.host)
        return Allocations(7, LEASE_MS)


def test_a_host_that_wakes_finds_its_lease_over_although_its_monotonic_clock_has_stood_still(monkeypatch):
    listener, address = GenerousListener(), f"127.0.0.1:{free_port()}"
    sessions = HostSessions(listener, LEASE_MS)
    sessions.start(address)
    read = time.clock_gettime_ns
    with agent_running(address) as agent:
        eventually(lambda: listener.applied, within_s=10, what="the plan is applied")
        assert agent.report().telemetry.lease_left_ms > LEASE_MS // 2
        monkeypatch.setattr(time, "clock_gettime_ns", lambda c: read(c) + SLEPT_NS * (c == time.CLOCK_BOOTTIME))
        assert agent.report().telemetry.lease_left_ms == 0
    sessions.stop()
