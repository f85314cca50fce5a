"""Single segments are lost out of super-packets: so many as were to be, and all others arrive."""

import hashlib
import os
import random
import socket
import struct
import threading
from math import sqrt

import pytest

from hostagent.tests.rig import connected, two_hosts
from mininet_tests.site.losses import Counts, SegmentLoss
from mininet_tests.site.tcp_flows import StreamInfo

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF")]

DATA = random.Random(1).randbytes(1 << 20) * 40
SEGMENTS = len(DATA) // 1448
LATER_SEGMENTS = 1  # the ACK of the receiver's FIN, which may come after all is counted


@pytest.fixture(scope="module")
def pair():
    """Two hosts, the right one of which loses what arrives."""
    left, right = two_hosts()
    yield left, right, SegmentLoss(right, right.interface, right.inside(lambda: mac_of(right.interface)))
    left.remove()
    right.remove()


def mac_of(interface):
    """The address of an interface of this thread's namespace."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as packets:
        packets.bind((interface, 0))
        return packets.getsockname()[4].hex(":")


def control_segments(sender):
    """How many it has sent without data (struct tcp_info): SYN, ACK, FIN, and asking a slow receiver for room."""
    told = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
    (all_segments,), (with_data,) = struct.unpack_from("=I", told, 136), struct.unpack_from("=I", told, 156)
    return all_segments - with_data


def sent(pair, share, seed=7, **how) -> Counts:
    """Send the data, which must arrive whole; return what was lost, of which the receiver's kernel has seen nothing."""
    left, right, loss = pair
    loss.set(share, seed, **how)
    sender, receiver = connected(left, right)
    digest = hashlib.sha256()

    def drain():
        while block := receiver.recv(1 << 20):
            digest.update(block)

    draining = threading.Thread(target=drain)
    draining.start()
    with sender, receiver:
        sender.sendall(DATA)
        sender.shutdown(socket.SHUT_WR)
        draining.join()
        arrived = StreamInfo.of(receiver).arrived_segments
        control = control_segments(sender)
    assert digest.digest() == hashlib.sha256(DATA).digest()
    counts = loss.counts
    assert 0 <= counts.segments - counts.dropped - arrived <= control + LATER_SEGMENTS, (counts, arrived, control)
    return counts


def test_nothing_is_lost_or_cut_until_it_is_asked_for(pair):
    counts = sent(pair, 0.0)
    assert counts.segments >= SEGMENTS
    assert (counts.lost, counts.cuts, counts.dropped) == (0, 0, 0)


@pytest.mark.parametrize("share", [0.001, 0.01])
def test_so_many_segments_are_dropped_as_were_to_be_lost_and_super_packets_are_cut_for_them(pair, share):
    counts = sent(pair, share)
    expected = counts.segments * share
    assert abs(counts.lost - expected) <= 5 * sqrt(expected), counts
    assert counts.dropped == counts.lost
    assert 0 < counts.cuts <= counts.lost


def test_losses_come_in_runs_if_that_is_asked_for(pair):
    counts = sent(pair, 0.01, run_length=8)
    assert counts.dropped == counts.lost > 0
    # 8 in a row are lost out of one super-packet or two, where single ones would take as many super-packets
    assert counts.cuts < counts.lost / 3, counts
