"""Two promises of one pair of hosts, told apart by what the application has marked, on this machine's kernel."""

import os
import socket
from dataclasses import replace

import pytest

from hostagent.tests.rates import assert_rate
from hostagent.tests.rig import MBIT, Bulk, allocation
from mininet_tests.testing.eventually import eventually
from topology.protocol import Allocations

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF")]

LEASE_MS = 1500
LE_TOS = 1 << 2
DSCP_BITS = 0xFC  # of a traffic class; the other two are ECN's
ECT_0 = 2


def marked(bulk: Bulk, tos: int) -> Bulk:
    bulk.sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
    return bulk


def test_what_the_application_has_marked_has_its_own_allocation(hosts, agent, cleanup):
    """Open and new connections; the rest is marked 0, so that a switch tells both apart; then one promise ends."""
    rest = replace(allocation("10.77.0.2/32", 80, dscp=0), name="urgent")
    background = replace(allocation("10.77.0.2/32", 20, 100, dscp=1, own_dscp=1), name="background")
    other, before = marked(Bulk(*hosts), 8), marked(Bulk(*hosts), LE_TOS)
    agent.obey(Allocations(1, LEASE_MS, (rest, background)))
    bulks = [other, before, marked(Bulk(*hosts), LE_TOS)]
    for bulk in bulks:
        cleanup.callback(bulk.close)
        bulk.start()
    eventually(lambda: all(b.info.bytes_acked > 1_000_000 for b in bulks), within_s=5, what="data flows")
    assert [bulk.tos for bulk in bulks] == [0, LE_TOS, LE_TOS]
    assert_rate(bulks[:1], 80 * MBIT, 1.5)
    assert_rate(bulks[1:], 20 * MBIT, 1.5)
    agent.obey(Allocations(2, LEASE_MS, (replace(rest, dscp=None),)))
    assert [bulk.tos for bulk in bulks] == [8, LE_TOS, LE_TOS], "as the applications had it"
    assert_rate(bulks, 80 * MBIT, 1.5)
    agent.obey(Allocations(3, LEASE_MS, (rest, background)))
    assert_rate(bulks[1:], 20 * MBIT, 1.5)


def test_an_ipv6_connection_is_told_by_its_traffic_class(hosts, agent, cleanup):
    rest = replace(allocation("fd77::/64", 80, dscp=0), name="urgent")
    background = replace(allocation("fd77::/64", 20, 100, dscp=1, own_dscp=1), name="background")
    bulk = Bulk(*hosts, family=socket.AF_INET6)
    cleanup.callback(bulk.close)
    bulk.sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, LE_TOS)
    agent.obey(Allocations(1, LEASE_MS, (rest, background)))
    bulk.start()
    eventually(lambda: bulk.info.bytes_acked > 1_000_000, within_s=5, what="data flows")
    assert_rate([bulk], 20 * MBIT, 1.5)


def traffic_class(bulk: Bulk) -> int:
    if bulk.sender.family == socket.AF_INET6:
        return bulk.sender.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS)
    return bulk.tos


@pytest.mark.parametrize(
    ("dest", "family"), [("10.77.0.2/32", socket.AF_INET), ("fd77::/64", socket.AF_INET6)], ids=["IPv4", "IPv6"]
)
def test_ecn_does_not_pass_for_a_mark_of_the_application(hosts, agent, cleanup, dest, family):
    """TCP that has agreed on ECN sets its own two bits of the socket's traffic class, anew as it sends."""
    for host in hosts:
        host.set({"net.ipv4.tcp_ecn": "1"})
    rest = replace(allocation(dest, 80, dscp=46), name="urgent")
    others = replace(allocation(dest, 20, 100, dscp=1, own_dscp=46), name="others")
    bulk = Bulk(*hosts, family=family)
    cleanup.callback(bulk.close)
    bulk.start()
    eventually(lambda: traffic_class(bulk) & ECT_0, within_s=5, what="ECN is agreed on")
    for epoch in (1, 3):
        agent.obey(Allocations(epoch, LEASE_MS, (rest,)))
        assert_rate([bulk], 80 * MBIT, 1.0)
        agent.obey(Allocations(epoch + 1, LEASE_MS, (rest, others)))
        assert traffic_class(bulk) & DSCP_BITS == 46 << 2
        assert_rate([bulk], 80 * MBIT, 1.0)
    agent.obey(Allocations(5, LEASE_MS))
    assert traffic_class(bulk) & DSCP_BITS == 0, "as the application had it"


OPTIONS = {
    socket.AF_INET: (socket.IPPROTO_IP, socket.IP_TOS),
    socket.AF_INET6: (socket.IPPROTO_IPV6, socket.IPV6_TCLASS),
}


@pytest.mark.parametrize(
    ("dest", "family"), [("10.77.0.2/32", socket.AF_INET), ("fd77::/64", socket.AF_INET6)], ids=["IPv4", "IPv6"]
)
def test_a_connection_that_its_program_marks_later_is_marked_as_planned_again(hosts, agent, cleanup, dest, family):
    """As OpenSSH does, which marks what is open already; what it has chosen is what it has when the plan is over."""
    bulk = Bulk(*hosts, family=family)
    cleanup.callback(bulk.close)
    agent.obey(Allocations(1, 30_000, (replace(allocation(dest, 80, dscp=3), dest_port=bulk.port),)))
    bulk.start()
    assert traffic_class(bulk) == 3 << 2
    for chosen in (0x08, 0x10):
        bulk.sender.setsockopt(*OPTIONS[family], chosen)
        eventually(lambda: traffic_class(bulk) == 3 << 2, within_s=5, what="it is marked as planned")
    agent.obey(Allocations(2, 30_000))
    assert traffic_class(bulk) == 0x10
