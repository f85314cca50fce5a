"""What agents do while no lease runs: they let a dial take its time, and say why they are without a controller."""

import contextlib
import socket
import threading
import time

import pytest
from websockets.sync.server import serve

from apps.tests.trusting import LEASE_MS, AgentsListener, agent_running, both_logged, controlled
from hostagent.agent.agent import REPORT_S, Agent
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.loopback import free_port
from topology.protocol import Allocations, to_bytes

DIAL_WITHIN_S = 1.5 * REPORT_S  # in place of the agent's
NAME = "ctl.example.org"


@pytest.fixture
def impatient(monkeypatch):
    """Agents whose dials may take less time; more than one report is from the next all the same."""
    monkeypatch.setattr("hostagent.agent.stream.DIAL_WITHIN_S", DIAL_WITHIN_S)


@contextlib.contextmanager
def dropped(address, port):
    """A port whose kernel drops the SYN of every caller, as a firewall does."""
    with (
        socket.create_server((address, port), backlog=0) as full,
        socket.create_connection(full.getsockname()),
    ):
        yield


def whys(logs):
    return [entry["why"] for entry in logs if entry["event"] == "agent.lost"]


def without_a_lease(agent):
    """Let the agent report, as it does each second, until its lease is over and it has said so."""
    eventually(lambda: not agent.report().telemetry.lease_left_ms, within_s=5, what="the end of the lease")


@pytest.mark.usefixtures("impatient")
def test_a_second_address_is_tried_after_a_first_that_drops_everything_though_the_lease_is_over(monkeypatch):
    port, first, returned = free_port(), AgentsListener(), AgentsListener()
    resolver = socket.getaddrinfo

    def found(host, *asked, **more):
        addresses = ("127.0.0.2", "127.0.0.1") if host == NAME else (host,)
        return [each for address in addresses for each in resolver(address, *asked, **more)]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    with dropped("127.0.0.2", port), agent_running(f"{NAME}:{port}") as agent:
        with controlled(None, first, port):
            eventually(lambda: first.applied, within_s=DIAL_WITHIN_S + 5, what="a lease")
        without_a_lease(agent)
        with controlled(None, returned, port):
            eventually(lambda: agent.report() and returned.applied, within_s=3 * DIAL_WITHIN_S + 5, what="its return")


class Busy(AgentsListener):
    """One that says its first word late."""

    is_asked = False

    def host_up(self, hello):
        self.is_asked = True
        time.sleep(1.5 * REPORT_S)
        return super().host_up(hello)


def test_a_controller_that_is_slow_to_say_its_first_word_is_waited_for_though_the_lease_is_over():
    port, first, busy = free_port(), AgentsListener(), Busy()
    with agent_running(f"127.0.0.1:{port}") as agent:
        with controlled(None, first, port):
            eventually(lambda: first.applied, within_s=5, what="a lease")
        without_a_lease(agent)
        with controlled(None, busy, port):
            eventually(lambda: agent.report() and busy.applied, within_s=10, what="it is attached")
    assert busy.up == ["base20"], "it has called more than once"


def test_a_first_word_that_comes_while_counters_are_read_is_no_silence(monkeypatch):
    port, first, busy, read = free_port(), AgentsListener(), Busy(), Agent._telemetry

    def read_late(agent):
        telemetry = read(agent)
        if not telemetry.lease_left_ms and busy.is_asked:
            eventually(lambda: any(one.attached_s for one in agent._streams), within_s=5, what="its first word")
        return telemetry

    with agent_running(f"127.0.0.1:{port}") as agent:
        with controlled(None, first, port):
            eventually(lambda: first.applied, within_s=5, what="a lease")
        without_a_lease(agent)
        monkeypatch.setattr(Agent, "_telemetry", read_late)
        with controlled(None, busy, port):
            eventually(lambda: agent.report() and busy.applied, within_s=10, what="it is attached")
    assert busy.up == ["base20"], "it has called more than once"


@pytest.mark.usefixtures("impatient")
def test_an_agent_whose_controller_falls_silent_says_so_and_then_why_it_cannot_be_reached():
    over, port = threading.Event(), free_port()

    def controller(connection):
        connection.recv()
        connection.send(to_bytes(Allocations(7, LEASE_MS)).decode())
        over.wait(20)

    with both_logged() as logs, serve(controller, "127.0.0.1", port, compression=None, close_timeout=1) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with agent_running(f"127.0.0.1:{port}") as agent:
            eventually(lambda: "agent.attached" in [e["event"] for e in logs], within_s=5, what="a lease")
            server.socket.close()
            with dropped("127.0.0.1", port):
                eventually(lambda: agent.report() and len(whys(logs)) > 1, within_s=10, what="both are said")
        over.set()
    assert whys(logs) == [
        "no renewal came before the lease ended",
        f"no answer within {DIAL_WITHIN_S:g} s: connecting",
    ]
