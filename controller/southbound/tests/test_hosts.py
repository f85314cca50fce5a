"""The agents' gRPC server, spoken to by a real gRPC client."""

import queue
import socket

import grpc
import pytest
from eventually import eventually

from controller.southbound.hosts import HostSessions
from topology.protocol import ATTACH_METHOD, Allocations, Applied, Hello, Telemetry, parsed_allocations, to_bytes

LEASE_MS = 300


class Listener:
    """Records what it hears; knows one host."""

    def __init__(self):
        self.up, self.down, self.applied, self.telemetry = [], [], [], []

    def host_up(self, hello):
        """Let base20 in."""
        self.up.append(hello.host)
        return Allocations(7, LEASE_MS) if hello.host == "base20" else None

    def host_down(self, host):
        """Note it."""
        self.down.append(host)

    def host_applied(self, host, applied):
        """Note it."""
        self.applied.append((host, applied.epoch))

    def host_telemetry(self, host, telemetry):
        """Note it."""
        self.telemetry.append((host, telemetry.epoch))


@pytest.fixture
def served():
    """A server at a free port: (address, sessions, listener)."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    listener = Listener()
    sessions = HostSessions(listener, LEASE_MS)
    sessions.start(address)
    yield address, sessions, listener
    sessions.stop()


class FakeAgent:
    """One stream to the server."""

    def __init__(self, address):
        self._channel = grpc.insecure_channel(address)
        self.up: queue.SimpleQueue = queue.SimpleQueue()
        self.down = self._channel.stream_stream(ATTACH_METHOD)(iter(self.up.get, None))

    def say(self, message):
        """Send a message."""
        self.up.put(to_bytes(message))

    def hear(self):
        """Return the next message."""
        return parsed_allocations(next(self.down))

    def close(self):
        """End the stream."""
        self.up.put(None)
        self._channel.close()


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


def test_a_new_plan_is_sent_at_once_and_then_renewed_without_being_asked(served, agent):
    served[1].send("base20", Allocations(8, LEASE_MS))
    epochs = [agent.hear().epoch for _ in range(4)]
    assert epochs[-3:] == [8, 8, 8]


def test_a_host_that_leaves_is_noticed(served, agent):
    agent.close()
    eventually(lambda: served[2].down == ["base20"], within_s=5, what="the end of the stream")


def test_a_second_stream_of_a_host_ends_the_first(served, agent):
    second = FakeAgent(served[0])
    second.say(Hello("base20", "0", "6.12"))
    assert second.hear().epoch == 7
    with pytest.raises(StopIteration):
        while True:
            agent.hear()
    assert served[2].down == []
    second.close()


@pytest.mark.parametrize(
    ("first", "status"),
    [
        (to_bytes(Hello("base99", "0", "6.12")), "NOT_FOUND"),
        (to_bytes(Applied(1)), "INVALID_ARGUMENT"),
        (b"{}", "INVALID_ARGUMENT"),
    ],
    ids=["unknown host", "no hello", "nonsense"],
)
def test_a_stranger_is_told_why_it_is_refused(served, first, status):
    stranger = FakeAgent(served[0])
    stranger.up.put(first)
    with pytest.raises(grpc.RpcError) as refusal:
        stranger.hear()
    assert refusal.value.code().name == status
    stranger.close()


def test_a_port_that_is_taken_is_said_at_once(served):
    with pytest.raises(OSError, match="cannot listen for agents at"):
        HostSessions(Listener(), LEASE_MS).start(served[0])
