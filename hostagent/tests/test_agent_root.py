"""The agent on this machine's kernel: real sockets between two network namespaces, a fake controller."""

import os
import socket
import time
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from functools import partial
from ipaddress import ip_address, ip_network

import pytest

from hostagent.kernel.image import object_image
from hostagent.kernel.layout import SLOT, EntryCounters, layout_of
from hostagent.tests.kernel_maps import agents_map
from hostagent.tests.rig import MBIT, Bulk, NamespaceHost, RunningAgent, allocation, measured_bps
from mininet_tests.testing.eventually import eventually
from topology.protocol import Allocations, Applied, Hello
from topology.telemetry import Telemetry

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF")]

LEASE_MS = 1500
SLACK = 2  # SHARED_SLACK_SEGMENTS in bpf/headway.bpf.c
SO_MAX_PACING_RATE = 47  # include/uapi/asm-generic/socket.h
SETTLED_S = 0.003  # several turns of a connection
KEPT_BYTES = 90 * MBIT // 8 // 10  # a tenth of a second of what the slower one writes
LAYOUT = layout_of(object_image())
RATE_MARGIN = 0.02  # internal pacing keeps its rate within 0.8%; the rest is the measurement


def started(cleanup: ExitStack, *bulks: Bulk) -> list[Bulk]:
    for bulk in bulks:
        cleanup.callback(bulk.close)
        bulk.start()
    return list(bulks)


def assert_rate(bulks: list[Bulk], planned_bps: int, over_s: float = 2.0) -> None:
    """Granted by the kernel: the plan, to 2%. Measured: never more; at least half, as a busy machine is late.

    Rates are measured closely where time is virtual: scenarios/longpath.
    """
    rate_bps = measured_bps(bulks, over_s)
    granted_bps = sum(bulk.info.pacing_bytes_per_s for bulk in bulks) * 8
    seen = f"planned {planned_bps / MBIT:.1f} Mbit/s, granted {granted_bps / MBIT:.1f}, measured {rate_bps / MBIT:.1f}"
    assert abs(granted_bps - planned_bps) <= planned_bps * RATE_MARGIN, seen
    assert planned_bps / 2 <= rate_bps <= planned_bps * (1 + RATE_MARGIN), seen


def ours(bulk: Bulk) -> bool:
    return bulk.algorithm.startswith("headway")


def test_one_connection_has_the_planned_rate_and_window(hosts, agent, cleanup):
    agent.obey(Allocations(1, LEASE_MS, (allocation("10.77.0.2/32", 200),)))
    bulks = started(cleanup, Bulk(*hosts))
    eventually(lambda: bulks[0].info.bytes_acked > 10_000_000, within_s=5, what="data flows")
    assert_rate(bulks, 200 * MBIT)
    assert bulks[0].info.cwnd_segments == 400


def test_four_connections_share_the_aggregate(hosts, agent, cleanup):
    agent.obey(Allocations(1, LEASE_MS, (allocation("10.77.0.0/24", 200),)))
    idle = Bulk(*hosts)
    cleanup.callback(idle.close)
    bulks = started(cleanup, *(Bulk(*hosts) for _ in range(4)))
    eventually(
        lambda: all(b.info.cwnd_segments == 100 + SLACK for b in bulks), within_s=5, what="a quarter of the window each"
    )
    assert_rate(bulks, 200 * MBIT)
    entry = eventually(lambda: agent.controller.entry("10.77.0.0/24"), within_s=3, what="telemetry")
    assert (entry.connections, entry.active) == (5, 4), "the idle one is counted as open, not as active"


def test_connections_over_ipv4_and_ipv6_to_one_host_share_its_rate(hosts, agent, cleanup):
    agent.obey(Allocations(1, LEASE_MS, (allocation("10.77.0.2/32", 200, also=(ip_network("fd77::2/128"),)),)))
    bulks = started(cleanup, Bulk(*hosts), Bulk(*hosts, family=socket.AF_INET6))
    eventually(lambda: all(ours(bulk) for bulk in bulks), within_s=3, what="both are held")
    assert_rate(bulks, 200 * MBIT)
    entry = eventually(lambda: agent.controller.entry("10.77.0.2/32"), within_s=3, what="telemetry")
    assert (entry.connections, entry.active) == (2, 2)


def test_each_interface_of_a_host_has_its_own_rate_to_the_same_destination(hosts, agent, cleanup):
    sender, receiver = hosts
    second = copy(sender)
    second.address = "10.77.0.3"
    sender.ip("address", "add", f"{second.address}/24", "dev", sender.interface)
    cleanup.callback(sender.ip, "address", "delete", f"{second.address}/24", "dev", sender.interface)
    of_first, of_second = (
        replace(allocation("10.77.0.2/32", mbps, sources=(ip_network(at.address),)), name=at.address)
        for at, mbps in ((sender, 150), (second, 50))
    )
    agent.obey(Allocations(1, LEASE_MS, (of_first, of_second)))
    first, other = started(cleanup, *(Bulk(at, receiver, sender_connects=False) for at in (sender, second)))
    eventually(lambda: ours(first) and ours(other), within_s=3, what="both are held")
    assert_rate([first], 150 * MBIT)
    assert_rate([other], 50 * MBIT)
    agent.obey(Allocations(2, LEASE_MS, (of_first,)))
    eventually(lambda: ours(first) and not ours(other), within_s=3, what="nothing is planned from the second address")


def test_when_connections_end_the_rest_gets_their_share(hosts, agent, cleanup):
    agent.obey(Allocations(1, LEASE_MS, (allocation("10.77.0.0/24", 100),)))
    bulks = started(cleanup, *(Bulk(*hosts) for _ in range(2)))
    eventually(
        lambda: all(b.info.cwnd_segments == 200 + SLACK for b in bulks), within_s=5, what="half of the window each"
    )
    bulks[1].close()
    eventually(lambda: bulks[0].info.cwnd_segments == 400, within_s=3, what="the whole window")
    assert_rate(bulks[:1], 100 * MBIT)


@pytest.mark.parametrize(
    ("dest", "how"),
    [("10.77.0.0/24", {}), ("fd77::/64", {"family": socket.AF_INET6}), ("10.77.0.0/24", {"mapped": True})],
    ids=["IPv4", "IPv6", "IPv4 on an IPv6 socket"],
)
def test_an_accepted_connection_that_sends_is_matched_by_its_local_port(hosts, agent, cleanup, dest, how):
    waiting = Bulk(*hosts, sender_connects=False, **how)
    cleanup.callback(waiting.close)
    agent.obey(Allocations(1, LEASE_MS, (allocation(dest, 150, local_port=waiting.port),)))
    waiting.start()
    eventually(lambda: ours(waiting), within_s=2, what="taken over")
    assert_rate([waiting], 150 * MBIT)


def test_an_unmatched_destination_keeps_its_congestion_control(hosts, agent, cleanup):
    before, other_port = Bulk(*hosts), Bulk(*hosts)
    agent.obey(Allocations(1, LEASE_MS, (allocation("10.77.9.0/24", 50), allocation("10.77.0.2/32", 50, dest_port=9))))
    bulks = started(cleanup, before, other_port, Bulk(*hosts))
    default = hosts[0].sysctl("tcp_congestion_control")
    assert [bulk.algorithm for bulk in bulks] == [default] * 3
    assert measured_bps(bulks, 1) > 300 * MBIT


def test_an_open_connection_is_taken_over_and_handed_back_as_it_was(hosts, agent, cleanup):
    bulk = Bulk(*hosts)
    bulk.algorithm = "reno"
    bulk.sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 8)
    started(cleanup, bulk)
    agent.obey(Allocations(1, LEASE_MS, (allocation("10.77.0.2/32", 80, dscp=46),)))
    assert ours(bulk)
    assert bulk.tos == 46 << 2
    assert_rate([bulk], 80 * MBIT)
    agent.obey(Allocations(2, LEASE_MS, ()))
    assert (bulk.algorithm, bulk.tos) == ("reno", 8)
    assert measured_bps([bulk], 1) > 200 * MBIT, "and is paced no longer"


def test_a_connection_that_the_plan_does_not_mark_keeps_its_own_dscp(hosts, agent, cleanup):
    bulk = Bulk(*hosts)
    bulk.sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 8)
    started(cleanup, bulk)
    agent.obey(Allocations(1, LEASE_MS, (allocation("10.77.0.2/32", 80),)))
    assert (ours(bulk), bulk.tos) == (True, 8)
    agent.obey(Allocations(2, LEASE_MS, (allocation("10.77.0.2/32", 80, dscp=46),)))
    assert bulk.tos == 46 << 2
    bulk.sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 40)
    agent.obey(Allocations(3, LEASE_MS, ()))
    assert bulk.tos == 40, "what the application has set since stays"


def granted_too_much(agent: RunningAgent, greedy: Bulk, rate_bytes_per_s: int, looks: int) -> int:
    """In how many looks the greedy one of two has more than the rest, though all stood as it does, and it has sent."""
    seen = 0
    with agents_map(agent.process.pid, "hw_counters") as counters:
        until_s = time.monotonic() + 30
        while looks:
            assert time.monotonic() < until_s, f"{looks} looks more to go"
            before, sent = LAYOUT.counters(counters.value(SLOT.pack(0))), greedy.info.bytes_acked
            time.sleep(SETTLED_S)
            now, after = greedy.info, LAYOUT.counters(counters.value(SLOT.pack(0)))
            if now.bytes_acked == sent or shared(before) != shared(after):
                continue
            looks -= 1
            lesser = (after.lesser_bytes_per_s + after.lesser_bytes_per_s_before) // 2
            rest = (rate_bytes_per_s - lesser) // after.greedy if after.greedy else rate_bytes_per_s
            seen += now.pacing_bytes_per_s > 1.001 * max(rest, rate_bytes_per_s // 2)
    return seen


def shared(counters: EntryCounters) -> tuple[int, ...]:
    """What the parts of an allocation's connections are made of."""
    return counters.slice_start_ns, counters.greedy, counters.lesser, counters.connections


def test_a_slower_application_keeps_its_rate_and_the_other_gets_no_more_than_the_rest(hosts, agent, cleanup):
    agent.obey(Allocations(1, LEASE_MS, (allocation("10.77.0.0/24", 200, 4000),)))
    greedy, slower = Bulk(*hosts), Bulk(*hosts)
    started(cleanup, greedy)
    cleanup.callback(slower.close)
    slower.drip(11_250, every_s=0.001)
    eventually(lambda: slower.info.bytes_acked > 10_000_000, within_s=5, what="both send")
    # What is confirmed in a time tells nothing of that here: where the processor is wanted elsewhere, the application
    # stands still and then writes all that is due at once.
    assert granted_too_much(agent, greedy, 200 * MBIT // 8, looks=200) <= 10, "but for what changed meanwhile"
    assert measured_bps([greedy, slower], 2) > 0.85 * 200 * MBIT
    eventually(lambda: slower.written_bytes - slower.info.bytes_acked < KEPT_BYTES, within_s=2, what="all has gone")


def test_an_application_that_asks_for_less_gets_that_and_the_other_the_rest(hosts, agent, cleanup):
    agent.obey(Allocations(1, LEASE_MS, (allocation("10.77.0.0/24", 200, 4000),)))
    modest, greedy = started(cleanup, Bulk(*hosts), Bulk(*hosts))
    modest.sender.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 20 * MBIT // 8)
    eventually(lambda: measured_bps([modest], 0.5) < 22 * MBIT, within_s=5, what="its own rate")
    assert modest.info.pacing_bytes_per_s == 20 * MBIT // 8
    # What the modest one leaves is more than the plan says while the processor keeps it from sending.
    assert granted_too_much(agent, greedy, 200 * MBIT // 8, looks=200) <= 10, "but for what changed meanwhile"
    assert 100 * MBIT < measured_bps([modest, greedy], 2) <= 200 * MBIT * (1 + RATE_MARGIN)
    assert measured_bps([modest], 2) < 21 * MBIT


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


def test_a_new_rate_is_in_force_on_a_live_connection(hosts, agent, cleanup):
    agent.obey(Allocations(1, LEASE_MS, (allocation("10.77.0.2/32", 100),)))
    bulks = started(cleanup, Bulk(*hosts))
    assert_rate(bulks, 100 * MBIT)
    agent.obey(Allocations(2, LEASE_MS, (allocation("10.77.0.2/32", 250, window_segments=500),)))
    assert_rate(bulks, 250 * MBIT)
    assert bulks[0].info.cwnd_segments == 500


def lose_all_in_flight(receiver: NamespaceHost, bulk: Bulk, window_segments: int) -> None:
    """Let all that fills a window die, and TCP's one probe with it; the peer is there again afterwards."""
    eventually(lambda: bulk.info.bytes_acked > 10_000_000, within_s=5, what="data flows")
    receiver.ip("address", "delete", f"{receiver.address}/24", "dev", receiver.interface)
    eventually(lambda: bulk.info.unacked_segments >= window_segments, within_s=5, what="the window is full")
    assert measured_bps([bulk], 0.5) == 0
    receiver.ip("address", "add", f"{receiver.address}/24", "dev", receiver.interface)


def left_alone(sender: NamespaceHost, receiver: NamespaceHost) -> None:
    """Keep the retransmission timer from helping, and the receive window from hindering: a late reader's is small."""
    sender.ip("route", "change", "10.77.0.0/24", "dev", sender.interface, "rto_min", "30s")
    receiver.set({"net.ipv4.tcp_rmem": "4096 16777216 16777216"})


def test_what_died_on_the_way_before_does_not_keep_a_connection_from_sending_by_another(hosts, agent, cleanup):
    left_alone(*hosts)
    plan = partial(allocation, "10.77.0.2/32")
    agent.obey(Allocations(1, 30_000, (plan(200, circuits=("north",)),)))
    bulk = started(cleanup, Bulk(*hosts))[0]
    lose_all_in_flight(hosts[1], bulk, 400)
    agent.obey(Allocations(2, 30_000, (plan(100, 200, circuits=("north",)),)))
    assert measured_bps([bulk], 0.5) == 0
    agent.obey(Allocations(3, 30_000, (plan(100, 200, circuits=("south",)),)))
    assert_rate([bulk], 100 * MBIT)
    assert bulk.info.cwnd_segments == 200


def test_what_died_with_a_circuit_is_no_catastrophic_loss_of_a_slower_one(hosts, agent, cleanup):
    left_alone(*hosts)
    agent.obey(Allocations(1, 30_000, (allocation("10.77.0.2/32", 1_000, 1_500, circuits=("north",)),)))
    bulk = started(cleanup, Bulk(*hosts))[0]
    lose_all_in_flight(hosts[1], bulk, 1_500)
    agent.obey(Allocations(2, 30_000, (allocation("10.77.0.2/32", 4, 200, circuits=("south",)),)))
    assert measured_bps([bulk], 7.0) < 5 * MBIT  # two of the periods over which loss is judged
    assert ours(bulk)
    assert "agent.fallback" not in agent.log


def test_what_lives_on_the_way_before_widens_the_window_only_until_it_is_acknowledged(hosts, agent, cleanup):
    plans = [(allocation("10.77.0.2/32", 3_000, 2_000, circuits=(line,)),) for line in ("north", "south")]
    agent.obey(Allocations(1, LEASE_MS, plans[0]))
    bulk = started(cleanup, Bulk(*hosts))[0]
    for epoch in range(2, 8):
        acked = bulk.info.bytes_acked
        eventually(lambda a=acked: bulk.info.bytes_acked > a + 10_000_000, within_s=5, what="data flows")
        agent.obey(Allocations(epoch, LEASE_MS, plans[epoch % 2]))
        eventually(lambda: bulk.info.cwnd_segments == 2_000, within_s=2, what="the window is what is planned")


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


def test_the_agent_says_hello_applied_and_telemetry(hosts, agent, cleanup):
    agent.obey(Allocations(7, LEASE_MS, (allocation("10.77.0.2/32", 100),)))
    started(cleanup, Bulk(*hosts))
    hello = agent.controller.all_of(Hello)[0]
    assert hello.host == hosts[0].name
    assert ip_address("10.77.0.1") in hello.interfaces[0].addresses
    entry = eventually(
        lambda: (seen := agent.controller.entry("10.77.0.2/32")) and seen.delivered_bytes > 20_000_000 and seen,
        within_s=6,
        what="counters that grow",
    )
    assert (entry.connections, entry.active) == (1, 1)
    assert entry.rtt_us > 0
    assert 0 < entry.least_rtt_us <= 2 * entry.rtt_us
    assert entry.sent_segments * 1448 >= entry.delivered_bytes
    assert 0 < agent.controller.all_of(Telemetry)[-1].lease_left_ms <= LEASE_MS
    assert agent.controller.all_of(Applied) == [Applied(7)]
    took_ms = 1000 * (agent.controller.applied_at_s[7] - agent.controller.sent_at_s[7])
    print(f"allocations to applied: {took_ms:.2f} ms")


def test_the_buffers_are_opened_and_put_back(hosts, agent):
    before = hosts[0].sysctl("tcp_rmem"), hosts[0].sysctl("tcp_wmem")
    plan = Allocations(1, LEASE_MS, (allocation("10.77.0.2/32", 100, 10_000),), receive_window_bytes=40_000_000)
    agent.obey(plan)
    assert hosts[0].sysctl("tcp_rmem").split()[1:] == ["80000000", "80000000"]
    assert int(hosts[0].sysctl("tcp_wmem").split()[2]) >= 2 * 2304 * 10_000
    agent.kill()
    agent.restart()
    agent.obey(Allocations(2, LEASE_MS))
    assert (hosts[0].sysctl("tcp_rmem"), hosts[0].sysctl("tcp_wmem")) == before
    agent.obey(Allocations(3, LEASE_MS, receive_window_bytes=40_000_000))
    assert agent.terminate() == 0
    assert (hosts[0].sysctl("tcp_rmem"), hosts[0].sysctl("tcp_wmem")) == before
