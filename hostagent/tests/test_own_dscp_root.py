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
