"""What a program that listens by IPv6 sends to an IPv4 peer, on this machine's kernel: its mark is on the wire, too."""

import os
import re
import socket
import subprocess
from dataclasses import replace

import pytest

from hostagent.tests.rates import assert_rate
from hostagent.tests.rig import MBIT, Bulk, RunningAgent, allocation
from mininet_tests.testing.eventually import eventually
from topology.protocol import Allocations

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF")]

COUNTED = """
table inet counted {
    chain arriving {
        type filter hook input priority 0;
        meta length > 500 ip dscp 7 counter comment "marked"
        meta length > 500 ip dscp 0 counter comment "not"
    }
}
"""


def counted(host):
    """How many packets with payload have come, with the mark and without any."""
    said = host.inside(
        lambda: subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True, check=True).stdout
    )
    return tuple(int(found) for found in re.findall(r"counter packets (\d+)", said))


@pytest.mark.parametrize("settings", [{}, {"tail_copies": False}])
def test_what_an_ipv6_socket_sends_to_an_ipv4_peer_is_marked_on_the_wire(hosts, tmp_path, cleanup, settings):
    agent = RunningAgent(hosts[0], tmp_path / "agent", **settings)
    cleanup.callback(agent.close)
    hosts[1].inside(lambda: subprocess.run(["nft", "-f", "-"], input=COUNTED, text=True, check=True))
    bulk = Bulk(*hosts, sender_connects=False, mapped=True)
    cleanup.callback(bulk.close)
    agent.obey(Allocations(1, 60_000, (replace(allocation("10.77.0.2/32", 80), dscp=7),)))
    bulk.start()
    eventually(lambda: bulk.info.bytes_acked > 1_000_000, within_s=5, what="data flows")
    marked, unmarked = counted(hosts[1])
    assert (marked > 0, unmarked) == (True, 0)
    agent.obey(Allocations(2, 60_000, (replace(allocation("10.77.0.2/32", 80), dscp=None),)))
    before = bulk.info.bytes_acked
    eventually(lambda: bulk.info.bytes_acked > before + 1_000_000, within_s=5, what="data flows")
    assert counted(hosts[1])[1], "not marked any more"


@pytest.mark.parametrize(
    "option", [(socket.IPPROTO_IP, socket.IP_TOS), (socket.IPPROTO_IPV6, socket.IPV6_TCLASS)], ids=["IPv4's", "IPv6's"]
)
def test_an_ipv6_socket_of_an_ipv4_peer_is_told_by_the_mark_that_its_application_has_set(hosts, agent, cleanup, option):
    rest = replace(allocation("10.77.0.2/32", 80, dscp=0), name="urgent")
    background = replace(allocation("10.77.0.2/32", 20, 100, dscp=1, own_dscp=1), name="background")
    bulk = Bulk(*hosts, sender_connects=False, mapped=True)
    cleanup.callback(bulk.close)
    bulk.sender.setsockopt(*option, 1 << 2)
    agent.obey(Allocations(1, 60_000, (rest, background)))
    bulk.start()
    eventually(lambda: bulk.info.bytes_acked > 1_000_000, within_s=5, what="data flows")
    assert_rate([bulk], 20 * MBIT, 1.5)
