"""The port that agents dial, spoken to by a real WebSocket client; who is let in is tried in ``test_trust``."""

import asyncio
import socket
import threading
from functools import partial
from ipaddress import ip_network

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect, unix_connect

from controller.southbound.agents.hosts import HostSessions
from mininet_tests.testing.eventually import eventually
from topology.protocol import (
    ATTACH_PATH,
    Allocation,
    Allocations,
    Applied,
    Declined,
    Demand,
    Fault,
    FlowClass,
    Hello,
    Repaired,
    parsed_allocations,
    to_bytes,
)
from topology.telemetry import Telemetry

LEASE_MS = 300


class RecordingListener:
    """Records what it hears; knows one host."""

    def __init__(self):
        self.up, self.down, self.applied, self.telemetry, self.declined = [], [], [], [], []
        self.demand, self.repaired, self.again = [], [], []
        self.withheld = set()  # hosts that are told nothing

    def host_up(self, hello):
        """Let base20 in."""
        self.up.append(hello.host)
        return Allocations(7, LEASE_MS) if hello.host == "base20" else None

    def host_again(self, hello):
        """Note it."""
        self.again.append(hello)

    def host_down(self, host):
        """Note it."""
        self.down.append(host)

    def hosts_applied(self, said):
        """Note it."""
        self.applied += [(host, applied.epoch) for host, applied in said]

    def host_telemetry(self, host, telemetry):
        """Note it."""
        self.telemetry.append((host, telemetry.epoch))

    def host_declined(self, host, declined):
        """Note it."""
        self.declined.append((host, declined))

    def host_demand(self, host, demand):
        """Note it."""
        self.demand.append((host, demand))

    def host_repaired(self, host, repaired):
        """Note it."""
        self.repaired.append((host, repaired))


@pytest.fixture
def served():
    """A server at a free port: (address, sessions, listener)."""
    listener = RecordingListener()
    sessions = HostSessions(listener, LEASE_MS, None, lambda host: host not in listener.withheld)
    sessions.start("127.0.0.1:0")
    yield "{}:{}".format(*sessions._socket.getsockname()), sessions, listener
    sessions.stop()


class FakeAgent:
    """One stream to the server."""

    def __init__(self, address):
        more = {"proxy": None, "compression": None, "legacy": True, "close_timeout": 1}
        if address.startswith("unix:"):
            uri = f"ws://localhost{ATTACH_PATH}"
            self._stream = unix_connect(address.removeprefix("unix:"), uri, compression=None, legacy=True)
        else:
            self._stream = connect(f"ws://{address}{ATTACH_PATH}", **more)

    def say(self, message):
        """Send a message."""
        self._stream.send(message if isinstance(message, bytes) else to_bytes(message))

    def hear(self, timeout_s=5):
        """Return the next message."""
        return parsed_allocations(self._stream.recv(timeout=timeout_s, decode=False))

    def close(self):
        """End the stream."""
        self._stream.close()


@pytest.fixture
def agent(served):
    """An agent that has said hello and was answered."""
    one = FakeAgent(served[0])
    one.say(Hello("base20", "0", "6.12"))
    assert one.hear().epoch == 7
    yield one
    one.close()


def test_confirmations_and_counters_reach_the_listener(served, agent):
    agent.say(Applied(7))
    agent.say(Telemetry(7, 100))
    listener = served[2]
    eventually(lambda: listener.applied == [("base20", 7)], within_s=5, what="the confirmation")
    eventually(lambda: listener.telemetry == [("base20", 7)], within_s=5, what="the counters")


def test_confirmations_that_have_come_together_are_handed_over_together_and_before_what_was_said_after_them(
    served, agent
):
    _, sessions, listener = served
    heard, busy = [], threading.Event()
    listener.hosts_applied = lambda said: heard.append([applied.epoch for _, applied in said])
    listener.host_telemetry = lambda _, telemetry: heard.append(telemetry.epoch)
    sessions._loop.call_soon_threadsafe(busy.wait)  # while all of it comes
    for said in (Applied(7), Applied(8), Telemetry(8, 100), Applied(9)):
        agent.say(said)
    busy.set()
    eventually(lambda: heard[-1:] == [[9]], within_s=5, what="the last confirmation")
    assert heard == [[7, 8], 8, [9]]


def test_a_new_plan_is_sent_at_once_and_then_renewed_without_being_asked(served, agent):
    served[1].send("base20", Allocations(8, LEASE_MS))
    eventually(lambda: agent.hear().epoch == 8, within_s=5, what="the new plan")  # renewals of the old one come first
    assert [agent.hear().epoch for _ in range(2)] == [8, 8]


def test_a_host_that_may_not_be_told_hears_nothing_until_it_may(served, agent):
    served[2].withheld.add("base20")
    with pytest.raises(TimeoutError):
        while True:  # what was on its way
            agent.hear(timeout_s=5 * LEASE_MS / 1000)
    served[1].send("base20", Allocations(8, LEASE_MS))
    eventually(lambda: served[1]._sessions["base20"].epoch == 8, within_s=5, what="it waits to be told")
    served[2].withheld.clear()
    assert agent.hear().epoch == 8


def test_a_host_that_might_not_be_told_for_a_moment_has_its_lease_renewed_as_soon_as_it_may(served):
    """Its next renewal would come when that lease is nearly over."""
    _, sessions, listener = served
    sessions._renewal_s, listener.withheld = 60.0, {"base20"}
    agent = FakeAgent(served[0])
    agent.say(Hello("base20", "0", "6.12"))
    with pytest.raises(TimeoutError):
        agent.hear(timeout_s=0.5)
    listener.withheld.clear()
    assert agent.hear(timeout_s=5).epoch == 7
    agent.close()


def test_a_host_that_leaves_is_noticed(served, agent):
    agent.close()
    eventually(lambda: served[2].down == ["base20"], within_s=5, what="the end of the stream")


def test_a_second_stream_of_a_host_ends_the_first_and_says_why(served, agent):
    second = FakeAgent(served[0])
    second.say(Hello("base20", "0", "6.12"))
    assert second.hear().epoch == 7
    with pytest.raises(ConnectionClosed, match="base20 has called again"):
        while True:
            agent.hear()
    assert served[2].down == []
    second.close()


@pytest.mark.parametrize(
    ("first", "code", "why"),
    [
        (Hello("base99", "0", "6.12"), 1008, '"base99" is not a host of this network'),
        (Applied(1), 1002, "expected hello, got applied"),
        (b"{}", 1002, "not understood"),
    ],
    ids=["unknown host", "no hello", "nonsense"],
)
def test_a_stranger_is_told_why_it_is_refused(served, first, code, why):
    stranger = FakeAgent(served[0])
    stranger.say(first)
    with pytest.raises(ConnectionClosed, match=why) as refusal:
        stranger.hear()
    assert refusal.value.rcvd.code == code
    stranger.close()


def test_a_port_that_is_taken_is_said_at_once(served):
    with pytest.raises(OSError, match="cannot listen for agents at"):
        HostSessions(RecordingListener(), LEASE_MS).start(served[0])


def test_what_an_agent_declines_reaches_the_listener(served, agent):
    declined = Declined(5, 7, "older")
    agent.say(declined)
    eventually(lambda: served[2].declined == [("base20", declined)], within_s=5, what="what it declined")
    demand, repaired = Demand(7, "urgent/base20", True, False), Repaired(7, "urgent/base20", Fault.MISSING, "entry")
    agent.say(demand)
    agent.say(repaired)
    eventually(lambda: served[2].repaired == [("base20", repaired)], within_s=5, what="what it repaired")
    assert served[2].demand == [("base20", demand)]


def test_a_host_that_is_lost_while_it_is_told_is_told_nothing_more(served, agent):
    _, sessions, listener = served
    session = sessions._sessions["base20"]
    session.connection.send = lambda _: session.connection.abort("reset")
    eventually(lambda: listener.down == ["base20"], within_s=5, what="it is lost at its next renewal")

    async def is_over():  # in the server's thread, when what it did then is done
        return session.renewal.cancelled()

    assert asyncio.run_coroutine_threadsafe(is_over(), sessions._loop).result(20)


def test_nothing_is_kept_for_a_host_that_is_gone(served, agent):
    _, sessions, listener = served
    gone = sessions._sessions["base20"].connection
    sessions._loop.call_soon_threadsafe(gone.abort, "reset")
    eventually(lambda: listener.down == ["base20"], within_s=5, what="it is gone")
    gone.send(bytes(1000))
    assert not gone._unsent


def test_an_older_plan_that_was_under_way_is_not_sent_after_the_newer_one(served, agent):
    served[1].send("base20", Allocations(6, LEASE_MS))
    served[1].send("base20", Allocations(9, LEASE_MS))
    assert {agent.hear().epoch for _ in range(3)} <= {7, 9}


def test_agents_that_were_told_at_once_are_not_renewed_at_once(served):
    hosts = [FakeAgent(served[0]) for _ in range(20)]
    served[2].host_up = lambda hello: Allocations(7, 3_000)
    served[1]._renewal_s = 1.0
    for i, host in enumerate(hosts):
        host.say(Hello(f"h{i}", "0", "6.12"))
    for host in hosts:
        host.hear()
    sessions = served[1]

    async def due_s():  # in the server's thread, between two of its callbacks
        return [one.renewal.when() - sessions._loop.time() for one in sessions._sessions.values()]

    due = asyncio.run_coroutine_threadsafe(due_s(), sessions._loop).result(20)
    assert len(due) == len(hosts)
    assert max(due) <= 1.0, "the lease is 3 s"
    assert max(due) - min(due) > 0.1
    for host in hosts:
        host.hear()  # and it comes
        host.close()


def test_the_same_machine_may_call_at_a_path_that_only_its_owner_may_open(tmp_path):
    path = tmp_path / "agents.sock"
    for _ in range(2):  # what a dead controller left there is no hindrance
        sessions = HostSessions(RecordingListener(), LEASE_MS)
        sessions.start(f"unix:{path}")
        assert path.stat().st_mode & 0o777 == 0o600
        agent = FakeAgent(f"unix:{path}")
        agent.say(Hello("base20", "0", "6.12"))
        assert agent.hear().epoch == 7
        sessions.stop()


def test_an_agent_that_does_not_read_delays_nobody_and_is_given_up(served):
    with socket.create_connection(served[0].rsplit(":", 1)) as deaf:
        request = f"GET {ATTACH_PATH} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        deaf.sendall(f"{request}Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {'A' * 22}==\r\n\r\n".encode())
        said, mask = to_bytes(Hello("base20", "0", "6.12")), bytes(4)
        deaf.sendall(bytes([0x81, 0x80 | len(said)]) + mask + said)
        eventually(lambda: served[2].up == ["base20"], within_s=5, what="its hello")
        entries = tuple(
            Allocation(f"{i}" * 100, FlowClass.URGENT, ip_network(f"10.0.{i % 250}.0/24"), 10**9, 100)
            for i in range(900)
        )
        for epoch in range(8, 60):
            served[1].send("base20", Allocations(epoch, LEASE_MS, entries))
        eventually(lambda: served[2].down == ["base20"], within_s=5, what="it is given up")


def test_who_begins_to_lead_greets_all_agents_anew_with_what_they_said_they_act_on_last(served):
    address, sessions, listener = served
    kept = []
    listener.host_up = lambda hello: kept.append(hello) or Allocations(7 * len(kept), LEASE_MS)
    with connect(f"ws://{address}{ATTACH_PATH}", compression=None) as stream:
        stream.send(to_bytes(Hello("base20", "0", "6.12", epoch=0)))
        assert parsed_allocations(stream.recv(timeout=5, decode=False)).epoch == 7
        stream.send(to_bytes(Hello("base20", "0", "6.12", epoch=40, lease_left_ms=100)))
        stream.send(to_bytes(Hello("arch", "0", "6.12", epoch=50)))  # somebody else's is nobody's
        stream.send(to_bytes(Telemetry(40, 100)))
        eventually(lambda: listener.telemetry, within_s=5, what="all of it is heard")
        sessions.lead()
        told = partial(stream.recv, timeout=5, decode=False)
        eventually(lambda: parsed_allocations(told()).epoch == 14, within_s=5, what="it is greeted anew")
        assert sessions.greeted.wait(5)
    assert [(one.host, one.epoch, one.lease_left_ms) for one in kept] == [("base20", 0, 0), ("base20", 40, LEASE_MS)]
    assert [(one.host, one.epoch) for one in listener.again] == [("base20", 40)]
