"""What is sent again at the end of a transfer goes three times; what is sent again in the middle of one does not."""

import os
import subprocess
import time
from contextlib import ExitStack
from ipaddress import ip_network
from pathlib import Path

import pytest

from hostagent.tests.kernel_counts import counted, others_programs, programs_at, retransmitted
from hostagent.tests.rig import MBIT, Bulk, NamespaceHost, RunningAgent
from mininet_tests.testing.eventually import eventually
from topology.protocol import Allocation, Allocations, FlowClass

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF")]

RATE_BPS = 400 * MBIT
TRANSFER_BYTES = 2_000_000
PLAN = Allocations(1, 3000, (Allocation("urgent/left", FlowClass.URGENT, ip_network("10.77.0.2/32"), RATE_BPS, 2000),))


def lossy(host: NamespaceHost, rule: str) -> None:
    """Drop what comes to a host and meets a rule of nftables."""
    rules = f"table inet lost {{ chain data {{ type filter hook prerouting priority -300; {rule} drop; }}; }}"
    host.inside(lambda: subprocess.run(["nft", "-f", "-"], input=rules, text=True, check=True))


def lossless(host: NamespaceHost) -> None:
    host.inside(lambda: subprocess.run(["nft", "delete", "table", "inet", "lost"], check=True))


def arrived_again(host: NamespaceHost) -> int:
    """Return how often a host has told that it had a segment already (RFC 2883)."""
    return counted(host, "TCPDSACKOldSent", "TCPDSACKOfoSent")


def transferred(
    hosts: tuple[NamespaceHost, NamespaceHost], folder: Path, cleanup: ExitStack, *, tail_copies: bool
) -> Bulk:
    """Return a connection of which the last 400 kB were lost, and have then arrived by being sent again."""
    agent = RunningAgent(hosts[0], folder, tail_copies=tail_copies)
    cleanup.callback(agent.close)
    agent.obey(PLAN)
    bulk = Bulk(*hosts)
    cleanup.callback(bulk.close)
    lossy(hosts[1], "meta length > 100 quota over 1600 kbytes")
    bulk.sender.sendall(bytes(TRANSFER_BYTES))
    until_s = time.monotonic() + 0.2
    eventually(lambda: time.monotonic() > until_s, within_s=1, what="the tail is sent and lost")
    assert bulk.info.bytes_acked < TRANSFER_BYTES
    lossless(hosts[1])
    eventually(lambda: bulk.info.bytes_acked > TRANSFER_BYTES, within_s=5, what="what was lost has arrived")
    return bulk


@pytest.mark.parametrize("tail_copies", [True, False])
def test_the_lost_tail_of_a_transfer_is_sent_three_times_if_that_is_set(hosts, tmp_path, cleanup, tail_copies):
    transferred(hosts, tmp_path / "agent", cleanup, tail_copies=tail_copies)
    # 400 kB are 276 segments, of which the kernel sends many together; each departure arrives twice more
    again = arrived_again(hosts[1])
    assert again > 8 if tail_copies else again <= 1


def test_the_sender_is_not_told_that_something_came_twice_and_sees_no_reordering(hosts, tmp_path, cleanup):
    transferred(hosts, tmp_path / "agent", cleanup, tail_copies=True)
    assert arrived_again(hosts[1]) > 4
    told = ("TCPDSACKRecv", "TCPDSACKOfoRecv", "TCPDSACKIgnoredOld", "TCPSACKReorder", "TCPDSACKUndo", "TCPTSReorder")
    assert counted(hosts[0], *told) == 0


def test_what_is_lost_in_the_middle_is_sent_once(hosts, tmp_path, cleanup):
    agent = RunningAgent(hosts[0], tmp_path / "agent")
    cleanup.callback(agent.close)
    agent.obey(PLAN)
    bulk = Bulk(*hosts)
    cleanup.callback(bulk.close)
    lossy(hosts[1], "meta length > 100 numgen random mod 50 == 0")
    bulk.start()
    eventually(lambda: bulk.info.bytes_acked > 40_000_000, within_s=10, what="a second of an endless transfer")
    assert retransmitted(bulk.sender) > 20
    assert arrived_again(hosts[1]) <= retransmitted(bulk.sender) // 10, "but where the writer paused"


def test_interfaces_have_the_programs_while_there_is_an_agent(hosts, tmp_path, cleanup):
    agent = RunningAgent(hosts[0], tmp_path / "agent")
    cleanup.callback(agent.close)
    agent.obey(PLAN)

    def attached() -> bool:
        return hosts[0].inside(lambda: programs_at(hosts[0].interface)) == 1

    assert attached()
    left = hosts[0]
    left.ip("link", "add", "late0", "type", "veth", "peer", "name", "late1")
    eventually(lambda: left.inside(lambda: programs_at("late0")) == 1, within_s=3, what="a new interface has it too")
    agent.kill()
    eventually(lambda: not attached(), within_s=3, what="the kernel has taken it away")


def test_an_interface_without_room_for_the_programs_is_left_alone_until_it_has_some(hosts, tmp_path, cleanup):
    left, others = hosts[0], cleanup.enter_context(ExitStack())
    left.inside(lambda: others.enter_context(others_programs(left.interface)))
    agent = RunningAgent(left, tmp_path / "agent")
    cleanup.callback(agent.close)
    agent.obey(PLAN)
    assert f"event=agent.tail_not_copied interface={left.interface}" in agent.log
    others.close()
    eventually(lambda: left.inside(lambda: programs_at(left.interface)) == 1, within_s=3, what="it has them")
