"""What the kernel tells of connections between two namespaces: their window scales, both ends and marks."""

import os
import socket
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from hostagent.doctor.connections import established, sending
from hostagent.tests.rig import Bulk, two_hosts

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces")]


RECEIVE_BUFFERS = Path("/proc/sys/net/ipv4/tcp_rmem")


KINDS = pytest.mark.parametrize(
    ("how", "peer"),
    [({}, "10.77.0.2"), ({"mapped": True}, "10.77.0.2"), ({"family": socket.AF_INET6}, "fd77::2")],
    ids=["IPv4", "IPv4 on an IPv6 socket", "IPv6"],
)


@KINDS
def test_each_connection_has_the_scale_of_the_buffer_it_was_opened_with(how, peer):
    with ExitStack() as cleanup:
        left, right = two_hosts()
        cleanup.callback(left.remove)
        cleanup.callback(right.remove)
        bulks = []
        for largest in (6_291_456, 2_000_000_000):
            left.inside(partial(RECEIVE_BUFFERS.write_text, f"4096 131072 {largest}"))
            bulks.append(Bulk(left, right, **how))
            cleanup.callback(bulks[-1].close)
        found = left.inside(established)
    assert sorted((str(one.peer), one.scale) for one in found) == [(peer, 7), (peer, 14)]
    assert {one.port for one in found} == {bulk.port for bulk in bulks}


@KINDS
def test_a_connection_that_sends_has_the_addresses_ports_and_mark_of_its_socket(hosts, cleanup, how, peer):
    left, _ = hosts
    bulk = Bulk(*hosts, sender_connects=False, **how)
    cleanup.callback(bulk.close)
    if bulk.sender.family == socket.AF_INET6:
        bulk.sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, 8 << 2)
    else:
        bulk.sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 8 << 2)
    (one,) = left.inside(sending)
    local = left.address6 if peer == "fd77::2" else left.address
    there = bulk.sender.getpeername()[1]
    assert (str(one.local), one.local_port, str(one.peer), one.port) == (local, bulk.port, peer, there)
    assert one.dscp == 8
