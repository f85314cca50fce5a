"""The coded tail in this machine's kernel: what is lost is made again at the receiver, as it was sent.

The sender is deaf: its TCP hears no confirmation, so what arrives was sent once or was made of a parity.
"""

import hashlib
import os
import random
import socket
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_network
from pathlib import Path

import pytest

from hostagent.kernel.coded import CodedCounts
from hostagent.tests.coded_line import counts_of
from hostagent.tests.rig import MBIT, Draining, RunningAgent, connected, two_hosts
from hostagent.tests.test_tail_root import lossless, lossy
from mininet_tests.site.losses import SegmentLoss
from topology.protocol import Allocation, Allocations, FlowClass, Tail

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF")]

SIZE_BYTES = 400_000
WITHIN_S = 0.15  # less than the least timeout of the senders here
TRIES = 60
ENTIRE = 5


@dataclass(frozen=True, slots=True)
class CodedTransfer:
    """A transfer.

    Attributes:
        entire: all of it was there before the sender's TCP heard anything.
        rebuilt: segments that were lost of it and made again of parities.
    """

    entire: bool
    rebuilt: int


class CodedPair:
    """Two hosts with the coded tail, and a connection of which segments are lost."""

    def __init__(self, hosts, folder, cleanup, *, family=socket.AF_INET):
        self.left, self.right = hosts
        self.loss = SegmentLoss(self.right, self.right.interface, self.right.inside(partial(mac_of, self.right)))
        self.sending = self._agent(self.left, folder / "left", cleanup, tail_coded=True, rto_min="200 ms")
        self.receiving = self._agent(self.right, folder / "right", cleanup, tail_coded=True)
        dest = ip_network(self.right.address if family == socket.AF_INET else self.right.address6)
        allocation = Allocation("urgent/left", FlowClass.URGENT, dest, 300 * MBIT, 2000, tail=Tail.CODED)
        self.sending.obey(Allocations(1, 60_000, (allocation,)))
        self.sender, self.receiver = connected(self.left, self.right, family=family)
        cleanup.callback(self.sender.close)
        cleanup.callback(self.receiver.close)
        self._seed = 0
        self.carried(deaf=False)  # its windows are open from here on

    @staticmethod
    def _agent(host, folder, cleanup, **settings):
        agent = RunningAgent(host, folder, **settings)
        cleanup.callback(agent.close)
        return agent

    def carried(self, *, deaf=True) -> CodedTransfer:
        """Send something, which must arrive as it was sent."""
        self._seed += 1
        data = random.Random(self._seed).randbytes(SIZE_BYTES)
        before = self.came.rebuilt
        draining = Draining(self.receiver, len(data))
        if deaf:
            lossy(self.left, "meta l4proto tcp")
        self.sender.sendall(data)
        draining.join(WITHIN_S)
        entire = not draining.is_alive()
        if deaf:
            lossless(self.left)
        assert draining.digest(30) == hashlib.sha256(data).digest()
        return CodedTransfer(entire, self.came.rebuilt - before)

    @property
    def sent(self) -> CodedCounts:
        return counts_of(self.sending)

    @property
    def came(self) -> CodedCounts:
        return counts_of(self.receiving)


@pytest.fixture
def cleanup():
    """What is undone at the end of a test, the latest first."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def hosts(cleanup):
    """Two network namespaces joined by a cable."""
    left, right = two_hosts()
    cleanup.callback(left.remove)
    cleanup.callback(right.remove)
    return left, right


def mac_of(host):
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as packets:
        packets.bind((host.interface, 0))
        return packets.getsockname()[4].hex(":")


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("mtu", [1500, 9000])
@pytest.mark.parametrize("offload", ["on", "off"])  # off: the receiver's TCP looks at each checksum
def test_what_is_lost_is_there_though_the_sender_hears_of_nothing(hosts, tmp_path, cleanup, family, mtu, offload):
    for host in hosts:
        host.ip("link", "set", host.interface, "mtu", str(mtu))
        command = ["ip", "netns", "exec", host.name, "ethtool", "-K", host.interface, "tx", offload]
        subprocess.run(command, check=True, capture_output=True)
    pair = CodedPair(hosts, tmp_path, cleanup, family=family)
    pair.loss.set(0.005 if mtu == 1500 else 0.03, 7)  # one or two segments of most transfers
    entire_by_parities = 0
    for _ in range(TRIES):
        one = pair.carried()
        entire_by_parities += one.entire and one.rebuilt > 0
        if entire_by_parities == ENTIRE:
            break
    assert entire_by_parities == ENTIRE, pair.came
    assert pair.came.refused == 0
    assert snmp(hosts[1], "InCsumErrors") == 0


def snmp(host, name) -> int:
    """A counter of a host's TCP."""
    lines = host.inside(Path("/proc/thread-self/net/snmp").read_text).splitlines()
    names, values = (line.split()[1:] for line in lines if line.startswith("Tcp:"))
    return int(dict(zip(names, values, strict=True))[name])
