"""Demand on this machine's kernel: when a flow takes its rate, and that it gives it back by itself."""

import os
import socket
import subprocess
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from ipaddress import ip_network

import pytest

from hostagent.tests.delayed_line import DelayedLine
from hostagent.tests.rig import MBIT, Bulk, NamespaceHost, RunningAgent, tcp_info
from mininet_tests.testing.eventually import eventually
from topology.protocol import Allocation, Allocations, Applied, Demand, FlowClass

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF")]

LEASE_MS = 1500
NAME = "urgent/left"
STANDBY_BPS = 20 * MBIT
RATE_BPS = 400 * MBIT
WINDOW_SEGMENTS = 2000
SO_SNDBUFFORCE = 32  # linux/asm-generic/socket.h; Python has no name for it
SENT_MEANWHILE_BYTES = 200_000_000  # in 4 s
WANTS, WANTS_AGAIN, ENDED = (True, False), (True, True), (False, True)  # wants, standing_by


@pytest.fixture
def hosts(hosts: tuple[NamespaceHost, NamespaceHost]) -> tuple[NamespaceHost, NamespaceHost]:
    # departures as on a long path: here they would be of 64 kB at any rate, because the round trip is so short
    hosts[0].set({"net.ipv4.tcp_tso_rtt_log": "0"})
    return hosts


def plan(epoch: int, rate_bps: int, size_bytes: int = 0) -> Allocations:
    dest = ip_network("10.77.0.2/32")
    rest = {"standby_bps": STANDBY_BPS, "size_bytes": size_bytes}
    return Allocations(epoch, LEASE_MS, (Allocation(NAME, FlowClass.URGENT, dest, rate_bps, WINDOW_SEGMENTS, **rest),))


def opened(cleanup: ExitStack, *hosts: NamespaceHost, **how) -> Bulk:
    bulk = Bulk(*hosts, **how)
    cleanup.callback(bulk.close)
    return bulk


def said(agent: RunningAgent, epoch: int, state: tuple[bool, bool], within_s: float = 3) -> float:
    """Wait until the agent says this of its entry, last; return when it was heard first."""
    demand = Demand(epoch, NAME, *state)

    def is_last() -> bool:
        return agent.controller.demand(NAME) == demand

    eventually(is_last, within_s=within_s, what=f"{demand}; {agent.controller.all_of(Demand)}")
    return agent.controller.demand_at_s[demand]


def said_never(agent: RunningAgent, state: tuple[bool, bool], over_s: float) -> None:
    until_s = time.monotonic() + over_s

    def over() -> bool:
        assert not any((d.wants, d.standing_by) == state for d in agent.controller.all_of(Demand))
        return time.monotonic() > until_s

    eventually(over, within_s=over_s + 1, what="the time is over")


def sent_bps(bulk: Bulk, count: int) -> float:
    """Send so much, and return at what rate it was confirmed, bit/s."""
    before, began_s = bulk.info.bytes_acked, time.monotonic()
    bulk.sender.sendall(bytes(count))
    eventually(lambda: bulk.info.bytes_acked >= before + count, within_s=20, what="all confirmed")
    return count * 8 / (time.monotonic() - began_s)


def warm(agent: RunningAgent, hosts: tuple[NamespaceHost, NamespaceHost], cleanup: ExitStack, **how) -> Bulk:
    """A connection that waits at the standby rate, as epoch 1 has it, its window open."""
    agent.obey(plan(1, STANDBY_BPS))
    said(agent, 1, ENDED)
    bulk = opened(cleanup, *hosts, **how)
    bulk.sender.sendall(bytes(3000))
    eventually(lambda: bulk.info.bytes_acked > 3000, within_s=3, what="the first data confirmed")
    return bulk


def no_more_arrives(host: NamespaceHost, than_kbytes: int) -> None:
    """Let all that comes to a host after so much be lost."""
    rule = f"meta length > 100 quota over {than_kbytes} kbytes drop"
    rules = f"table inet lost {{ chain data {{ type filter hook prerouting priority -300; {rule}; }}; }}"
    host.inside(lambda: subprocess.run(["nft", "-f", "-"], input=rules, text=True, check=True))


def all_arrives(host: NamespaceHost) -> None:
    """Let none be lost any more."""
    host.inside(lambda: subprocess.run(["nft", "delete", "table", "inet", "lost"], check=True))


def test_a_warm_connection_takes_its_rate_by_a_newer_epoch_and_gives_it_back_by_itself(hosts, agent, cleanup):
    bulk = warm(agent, hosts, cleanup)
    bulk.sender.sendall(bytes(2_000_000))
    said(agent, 1, WANTS_AGAIN)
    agent.obey(plan(2, RATE_BPS))
    said(agent, 2, ENDED)
    assert Demand(2, NAME, *WANTS) in agent.controller.all_of(Demand)
    renewals = 3 * 0.3
    said_never(agent, (False, False), over_s=renewals)
    slow_bps = sent_bps(bulk, 1_000_000)
    assert slow_bps <= 1.1 * STANDBY_BPS, "stands by although the epoch is renewed and there is data"
    assert Demand(2, NAME, *WANTS_AGAIN) in agent.controller.all_of(Demand)


def test_under_a_newer_epoch_it_has_the_whole_rate_while_it_wants_it(hosts, agent, cleanup):
    bulk = warm(agent, hosts, cleanup)
    # all that can be sent meanwhile, in the kernel: a writer that waits for the processor ends no flight
    bulk.sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, SENT_MEANWHILE_BYTES)
    bulk.start()
    said(agent, 1, WANTS_AGAIN)
    agent.obey(plan(2, RATE_BPS))
    said(agent, 2, WANTS)
    before, began_s = bulk.info.bytes_acked, time.monotonic()
    said_never(agent, (False, False), over_s=1.5)
    rate_bps = (bulk.info.bytes_acked - before) * 8 / (time.monotonic() - began_s)
    assert rate_bps <= 1.02 * RATE_BPS
    # That it is no less is the kernel's to say: what is confirmed is also less where others have the processor.
    assert bulk.info.pacing_bytes_per_s * 8 == pytest.approx(RATE_BPS, rel=0.02)
    assert agent.controller.demand(NAME) == Demand(2, NAME, *WANTS)
    entry = agent.controller.entry(NAME)
    assert entry is not None
    assert (entry.wants, entry.standing_by) == WANTS, "telemetry says it too"


@pytest.mark.parametrize("sender_connects", [True, False])
def test_a_fresh_connection_wants_its_rate_whoever_connects(hosts, agent, cleanup, sender_connects):
    agent.obey(plan(1, STANDBY_BPS))
    bulk = opened(cleanup, *hosts, sender_connects=sender_connects)
    said_never(agent, WANTS_AGAIN, over_s=0.3)
    bulk.start()
    said(agent, 1, WANTS_AGAIN)


def test_a_small_request_is_no_demand_but_the_last_of_a_transfer_is(hosts, agent, cleanup):
    bulk = warm(agent, hosts, cleanup)
    bulk.sender.sendall(bytes(20_000))
    said_never(agent, WANTS_AGAIN, over_s=0.3)
    bulk.sender.sendall(bytes(20_000))
    bulk.sender.shutdown(socket.SHUT_WR)
    eventually(
        lambda: Demand(1, NAME, *WANTS_AGAIN) in agent.controller.all_of(Demand), within_s=10, what="the last of it"
    )


def mptcp_connected(cleanup: ExitStack, host: NamespaceHost, peer: NamespaceHost) -> socket.socket:
    """Return a host's end of a new connection of Multipath TCP, with one subflow."""

    def made() -> socket.socket:
        end = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP)
        cleanup.callback(end.close)
        return end

    listener, end = peer.inside(made), host.inside(made)
    listener.bind((peer.address, 0))
    listener.listen()
    end.connect(listener.getsockname())
    accepted, _ = listener.accept()
    cleanup.callback(accepted.close)
    return end


def test_the_least_of_an_mptcp_subflow_is_a_demand(hosts, agent, cleanup):
    # one that stands by is given little, however much the program has written
    agent.obey(plan(1, STANDBY_BPS))
    said(agent, 1, ENDED)
    sender = mptcp_connected(cleanup, *hosts)
    said_never(agent, WANTS_AGAIN, over_s=0.3)
    sender.sendall(bytes(3_000))
    eventually(lambda: Demand(1, NAME, *WANTS_AGAIN) in agent.controller.all_of(Demand), within_s=10, what="demand")
    said(agent, 1, ENDED)


def test_an_mptcp_subflow_leaves_room_on_the_circuit_for_its_mappings(hosts, agent, cleanup):
    (entry,) = plan(1, RATE_BPS).entries
    agent.obey(Allocations(1, LEASE_MS, (replace(entry, standby_bps=None),)))
    sender = mptcp_connected(cleanup, *hosts)
    sender.sendall(bytes(20_000))  # what the first window takes
    eventually(lambda: tcp_info(sender).bytes_acked > 20_000, within_s=5, what="it has sent")
    segment_bytes, mapping_bytes = 1448, 28  # RFC 8684, section 3.3
    held_bps = RATE_BPS * (segment_bytes - mapping_bytes) / segment_bytes
    assert tcp_info(sender).pacing_bytes_per_s * 8 == pytest.approx(held_bps, rel=0.002)
    assert tcp_info(sender).cwnd_segments == pytest.approx(WINDOW_SEGMENTS * 9 / 8, rel=0.01), (
        "more of them are as much"
    )


def test_an_mptcp_subflow_pauses_for_a_round_trip_before_its_flight_ends(tmp_path, cleanup):
    rtt_s = 0.4
    line = DelayedLine(rtt_s)
    cleanup.callback(line.close)
    agent = RunningAgent(line.left, tmp_path / "agent")
    cleanup.callback(agent.close)
    agent.obey(plan(1, STANDBY_BPS))
    said(agent, 1, ENDED)
    sender = mptcp_connected(cleanup, line.left, line.right)
    wants, ended = Demand(1, NAME, *WANTS_AGAIN), Demand(1, NAME, *ENDED)

    def has_ended() -> bool:
        heard = agent.controller.all_of(Demand)
        return wants in heard and ended in heard[heard.index(wants) :]

    sent_s = time.monotonic()
    sender.sendall(bytes(3_000))
    eventually(has_ended, within_s=10, what="a flight, and its end")
    assert time.monotonic() - sent_s > rtt_s / 2, "a pause of 10 ms alone is over much sooner"


def test_what_was_announced_is_a_demand_whatever_its_size(hosts, agent, cleanup):
    bulk = warm(agent, hosts, cleanup)
    agent.obey(plan(2, STANDBY_BPS, size_bytes=20_000))
    bulk.sender.sendall(bytes(20_000))
    eventually(lambda: Demand(2, NAME, *WANTS_AGAIN) in agent.controller.all_of(Demand), within_s=10, what="demand")


@pytest.mark.parametrize("pauses", [True, False])
def test_a_flight_ends_when_the_announced_size_is_sent_and_also_in_a_pause(hosts, agent, cleanup, pauses):
    size_bytes = 1_000_000
    bulk = warm(agent, hosts, cleanup)
    agent.obey(plan(2, RATE_BPS, size_bytes=2 * size_bytes if pauses else size_bytes))
    said(agent, 2, ENDED)
    bulk.sender.sendall(bytes(size_bytes))
    eventually(lambda: Demand(2, NAME, *WANTS_AGAIN) in agent.controller.all_of(Demand), within_s=3, what="demand")
    said(agent, 2, ENDED)


def test_two_connections_make_one_flight(hosts, agent, cleanup):
    first, second = warm(agent, hosts, cleanup), opened(cleanup, *hosts)
    first.start()
    said(agent, 1, WANTS_AGAIN)
    agent.obey(plan(2, RATE_BPS))
    second.sender.sendall(bytes(1_000_000))
    second.sender.shutdown(socket.SHUT_WR)
    said_never(agent, (False, False), over_s=0.5)
    assert agent.controller.demand(NAME) == Demand(2, NAME, *WANTS), "the other one goes on"


def test_an_epoch_that_comes_after_the_flight_leaves_the_entry_standing_by(hosts, agent, cleanup):
    bulk = warm(agent, hosts, cleanup)
    agent.obey(plan(2, RATE_BPS))
    said(agent, 2, ENDED)
    assert sent_bps(bulk, 1_000_000) <= 1.1 * STANDBY_BPS


def test_what_was_lost_of_a_flight_that_has_ended_is_a_demand_again(hosts, tmp_path, cleanup):
    # the kernel's own least timeout: with the agent's of 20 ms the loss may be seen before the pause ends the flight
    agent = RunningAgent(hosts[0], tmp_path / "agent", rto_min="200 ms")
    cleanup.callback(agent.close)
    bulk = warm(agent, hosts, cleanup)
    no_more_arrives(hosts[1], than_kbytes=1600)
    bulk.sender.sendall(bytes(2_000_000))
    said(agent, 1, WANTS_AGAIN)
    agent.obey(plan(2, RATE_BPS))
    said(agent, 2, WANTS_AGAIN)
    assert Demand(2, NAME, *ENDED) in agent.controller.all_of(Demand)
    assert bulk.info.bytes_acked < 1_700_000
    all_arrives(hosts[1])
    agent.obey(plan(3, RATE_BPS))
    eventually(lambda: bulk.info.bytes_acked > 2_000_000, within_s=5, what="what was lost has arrived")
    said(agent, 3, ENDED)


def test_the_kernel_part_steps_down_also_while_the_agent_hangs(hosts, agent, cleanup):
    bulk = warm(agent, hosts, cleanup)
    threading.Thread(target=bulk.sender.sendall, args=(bytes(20_000_000),)).start()
    said(agent, 1, WANTS_AGAIN)
    agent.obey(replace(plan(2, RATE_BPS), lease_ms=20_000))
    agent.hang()
    try:
        assert bulk.info.bytes_acked < 20_000_000
        eventually(lambda: bulk.info.bytes_acked > 20_000_000, within_s=5, what="the flight has ended")
        until_s = time.monotonic() + 0.05
        eventually(lambda: time.monotonic() > until_s, within_s=1, what="a pause")
        assert sent_bps(bulk, 1_000_000) <= 1.1 * STANDBY_BPS
    finally:
        agent.go_on()
    said(agent, 2, ENDED)


def test_an_aborted_connection_ends_its_flight(hosts, agent, cleanup):
    bulk = warm(agent, hosts, cleanup)
    bulk.start()
    said(agent, 1, WANTS_AGAIN)
    agent.obey(plan(2, RATE_BPS))
    said(agent, 2, WANTS)
    bulk.receiver.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    bulk.close()
    said(agent, 2, ENDED)


def test_an_entry_that_is_watched_no_more_has_its_rate(hosts, agent, cleanup):
    bulk = warm(agent, hosts, cleanup)
    (entry,) = plan(1, RATE_BPS).entries
    agent.obey(Allocations(2, LEASE_MS, (replace(entry, standby_bps=None),)))
    sent_bps(bulk, 10_000_000)  # the kernel says at what rate: that of what was confirmed is lower where others compute
    assert bulk.info.pacing_bytes_per_s * 8 == pytest.approx(RATE_BPS, rel=0.02)
    assert not [demand for demand in agent.controller.all_of(Demand) if demand.epoch == 2]


def test_an_agent_that_hung_acts_on_nothing_that_is_over(hosts, agent, cleanup):
    agent.obey(plan(1, RATE_BPS))
    bulk = opened(cleanup, *hosts)
    agent.hang()
    agent.controller.send(plan(2, STANDBY_BPS))
    until_s = time.monotonic() + LEASE_MS / 1000 + 0.5
    eventually(lambda: time.monotonic() > until_s, within_s=5, what="a lease and more")
    agent.controller.send(plan(3, STANDBY_BPS))
    eventually(lambda: 3 in agent.controller.sent_at_s, within_s=2, what="sent")
    agent.go_on()
    eventually(lambda: agent.controller.applied(3), within_s=3, what="the newest, once it is renewed")
    assert Applied(2) not in agent.controller.heard
    assert "agent.stale" in agent.log
    assert bulk.info.bytes_acked <= 1
