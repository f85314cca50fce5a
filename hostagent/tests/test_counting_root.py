"""What the agent says was delivered, to the byte; and what it says is in the way of more."""

import os
import socket
import struct
import time
from ipaddress import ip_network

import pytest

from hostagent.kernel.image import object_image
from hostagent.kernel.layout import SLOT, layout_of
from hostagent.tests.kernel_maps import agents_map
from hostagent.tests.rig import MBIT, Bulk, allocation, connected
from mininet_tests.testing.eventually import eventually
from topology.protocol import Allocations

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF")]

LEASE_MS = 1500
DEST = "10.77.0.2/32"
LAYOUT = layout_of(object_image())


def sent(bulk: Bulk, count: int) -> None:
    """Send so many bytes, and wait until all are confirmed."""
    before = bulk.info.bytes_acked
    bulk.sender.sendall(bytes(count))
    eventually(lambda: bulk.info.bytes_acked - before == count, within_s=10, what="all is confirmed")


def test_what_an_entry_has_delivered_when_it_ends_is_told_at_once_to_the_byte(hosts, agent, cleanup):
    agent.obey(Allocations(1, LEASE_MS, (allocation(DEST, 400),)))
    stays, ends = Bulk(*hosts), Bulk(*hosts)
    cleanup.callback(stays.close)
    sent(ends, 3_000_001)
    ends.close()
    sent(stays, 5_000_003)
    agent.obey(Allocations(2, LEASE_MS))
    last = eventually(lambda: agent.controller.ended(DEST), within_s=0.5, what="the last count")
    assert (last.delivered_bytes, last.is_least, last.connections) == (8_000_004, False, 0)
    assert last.delivered_ago_ms is not None
    assert last.delivered_ago_ms < 2_000


def test_a_sender_that_aborts_leaves_the_counts_as_they_are(hosts, agent, cleanup):
    agent.obey(Allocations(1, LEASE_MS, (allocation(DEST, 400),)))
    bulk = Bulk(*hosts)
    cleanup.callback(bulk.close)
    sent(bulk, 1_000_000)
    with agents_map(agent.process.pid, "hw_counters") as counters:
        before = LAYOUT.counters(counters.value(SLOT.pack(0)))
        bulk.sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        bulk.sender.close()
        after = LAYOUT.counters(counters.value(SLOT.pack(0)))
    assert (before.connections, after.connections) == (1, 0)
    assert before.delivered_segments > 0
    for name in ("delivered_bytes", "delivered_segments", "sent_segments", "retransmitted_segments", "rtt_us"):
        assert getattr(after, name) == getattr(before, name), name


def test_the_last_count_is_told_to_a_controller_that_comes_back(hosts, agent, cleanup):
    agent.obey(Allocations(1, LEASE_MS, (allocation(DEST, 400),)))
    bulk = Bulk(*hosts)
    cleanup.callback(bulk.close)
    sent(bulk, 1_000_000)
    agent.obey(Allocations(2, LEASE_MS))
    agent.controller.stop()
    agent.controller.heard.clear()
    agent.controller.start()
    last = eventually(lambda: agent.controller.ended(DEST), within_s=15, what="the last count once more")
    assert last.delivered_bytes == 1_000_000


def test_a_count_begins_anew_with_each_agent_and_says_so(hosts, agent, cleanup):
    plan = Allocations(1, LEASE_MS, (allocation(DEST, 400),))
    agent.obey(plan)
    bulk = Bulk(*hosts)
    cleanup.callback(bulk.close)
    sent(bulk, 1_000_000)
    first = eventually(
        lambda: (one := agent.controller.entry(DEST)) and one.delivered_bytes == 1_000_000 and one,
        within_s=5,
        what="the count of the first agent",
    )
    agent.kill()
    agent.controller.heard.clear()
    agent.restart()
    agent.obey(Allocations(2, LEASE_MS, plan.entries))
    sent(bulk, 500_000)
    second = eventually(
        lambda: (one := agent.controller.entry(DEST)) and one.delivered_bytes == 500_000 and one,
        within_s=5,
        what="the count of the second agent",
    )
    assert second.counted_since_ns > first.counted_since_ns > 0


def test_what_ran_while_no_lease_held_is_not_counted_and_the_count_is_called_the_least(hosts, agent, cleanup):
    agent.obey(Allocations(1, 400, (allocation(DEST, 400),)))
    bulk = Bulk(*hosts)
    cleanup.callback(bulk.close)
    agent.controller.stop()
    eventually(lambda: not bulk.algorithm.startswith("headway") or bulk.sender.send(b"x") < 0, within_s=5, what="lapse")
    agent.controller.start()
    seen = eventually(
        lambda: (one := agent.controller.entry(DEST)) and one.is_least and one, within_s=15, what="the least"
    )
    assert seen.delivered_bytes <= bulk.info.bytes_acked


@pytest.mark.parametrize("sources", [(), (ip_network("10.77.0.1/32"),)], ids=["one interface", "several interfaces"])
def test_a_receiver_that_does_not_read_is_what_is_in_the_way(hosts, agent, cleanup, sources):
    agent.obey(Allocations(1, LEASE_MS, (allocation(DEST, 400, sources=sources),)))
    sender, receiver = connected(*hosts)
    cleanup.callback(receiver.close)
    cleanup.callback(sender.close)
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    sender.setblocking(False)
    until_s = time.monotonic() + 1
    while time.monotonic() < until_s:
        try:
            sender.send(bytes(1 << 16))
        except BlockingIOError:
            time.sleep(0.01)
    seen = eventually(
        lambda: (one := agent.controller.entry(DEST)) and one.receiver_limited_ms > 500 and one,
        within_s=6,
        what="the receiver's window",
    )
    assert seen.receiver_limited_ms <= seen.busy_ms <= 1_500


def test_nothing_is_in_the_way_of_who_has_the_rate_or_nothing_to_send(hosts, agent, cleanup):
    agent.obey(Allocations(1, LEASE_MS, (allocation(DEST, 50),)))
    bulk = Bulk(*hosts)
    cleanup.callback(bulk.close)
    idle = eventually(
        lambda: (one := agent.controller.entry(DEST)) and one.connections == 1 and one, within_s=5, what="telemetry"
    )
    assert (idle.busy_ms, idle.receiver_limited_ms, idle.buffer_limited_ms) == (0, 0, 0)
    bulk.start()
    busy = eventually(
        lambda: (one := agent.controller.entry(DEST)) and one.delivered_bytes > 3 * 50 * MBIT // 8 and one,
        within_s=10,
        what="three seconds at the rate",
    )
    assert busy.receiver_limited_ms == 0
