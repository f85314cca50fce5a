"""What an agent knows of its lease: through a sleep, and when it calls a controller that knows nothing; of its host."""

import time
from ipaddress import IPv4Network, ip_address

from apps.tests.trusting import AgentsListener, agent_running, both_logged
from controller.southbound.agents.hosts import HostSessions
from hostagent.agent import agent as agent_module
from hostagent.doctor import survey
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.loopback import free_port
from topology.protocol import Allocation, Allocations, FlowClass, HostInterface

LEASE_MS, SLEPT_NS = 60_000, 600_000_000_000
HELD = Allocation("background/base20", FlowClass.BACKGROUND, IPv4Network("10.20.20.100/32"), 10**8, 1_500)


class GenerousListener(AgentsListener):
    """Grants for a minute, and keeps what agents say when they call."""

    def __init__(self):
        super().__init__()
        self.hellos = []

    def host_up(self, hello):
        self.hellos.append(hello)
        return Allocations(7, LEASE_MS, (HELD,))


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


def test_an_agent_that_calls_again_says_what_it_holds_and_for_how_long():
    port = free_port()
    said = []
    with agent_running(f"127.0.0.1:{port}"):
        for _ in range(2):
            listener = GenerousListener()
            sessions = HostSessions(listener, LEASE_MS)
            sessions.start(f"127.0.0.1:{port}")
            eventually(lambda it=listener: it.applied, within_s=20, what="the plan is applied")
            sessions.stop()
            said += listener.hellos[:1]
    first, second = said
    assert (first.epoch, first.lease_left_ms, first.entries) == (0, 0, ())
    assert (second.epoch, second.entries) == (7, (HELD,))
    assert LEASE_MS // 2 < second.lease_left_ms < LEASE_MS


def test_an_agent_whose_host_has_another_address_says_so_while_it_is_attached(monkeypatch):
    listener, address = GenerousListener(), f"127.0.0.1:{free_port()}"
    before, after = (HostInterface("eth0", (ip_address(text),)) for text in ("10.1.0.5", "10.2.0.5"))
    container = HostInterface("veth1", (ip_address("fe80::1"),))
    has = [before]
    monkeypatch.setattr(survey, "host_interfaces", lambda: tuple(has))
    monkeypatch.setattr(agent_module, "ADDRESSES_S", 0.0)
    sessions = HostSessions(listener, LEASE_MS)
    sessions.start(address)
    with agent_running(address) as agent:
        eventually(lambda: listener.applied, within_s=10, what="the plan is applied")
        has.append(container)
        agent.report()
        has[0] = after
        agent.report()
        agent.report()
        eventually(lambda: listener.again, within_s=10, what="it says hello again")
    sessions.stop()
    (said,) = listener.again
    assert (said.interfaces, said.epoch, said.entries) == ((after, container), 7, (HELD,))


def test_what_is_reported_while_an_agent_looks_at_its_interfaces_does_not_go_before_its_hello(monkeypatch):
    """A controller hangs up on who does not say hello first, and to look at many interfaces takes some time."""
    listener, address = GenerousListener(), f"127.0.0.1:{free_port()}"
    sessions = HostSessions(listener, LEASE_MS)
    with both_logged() as logs, agent_running(address) as agent:
        eventually(lambda: logs, within_s=20, what="a first call, which nobody takes")
        monkeypatch.setattr(survey, "host_interfaces", lambda: (agent.report(), ())[1])
        sessions.start(address)
        eventually(lambda: listener.applied, within_s=20, what="the plan is applied")
    sessions.stop()
    assert [entry["why"] for entry in logs if "expected hello" in entry.get("why", "")] == []
