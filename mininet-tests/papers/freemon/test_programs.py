"""What a program brings is told apart from what comes beside it, on real connections."""

import os
import socket

import pytest

from hostagent.tests.rig import connected, two_hosts
from mininet_tests.papers.freemon.programs import Arriving
from mininet_tests.site.tcp_flows import TcpStream
from mininet_tests.testing.eventually import eventually

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces")]

DATAGRAM_BYTES = 1000


@pytest.fixture
def hosts():
    left, right = two_hosts()
    yield left, right
    left.remove()
    right.remove()


def test_connections_of_others_do_not_count_and_ended_ones_and_datagrams_do(hosts):
    left, right = hosts
    other, ended, lasting = (TcpStream(*connected(left, right)) for _ in range(3))
    arriving = Arriving(right, [other], DATAGRAM_BYTES)
    brought = lambda: arriving.seen[-1][1] if arriving.seen else None  # noqa: E731
    try:
        for stream, sent_bytes in ((other, 40_000), (ended, 30_000), (lasting, 20_000)):
            stream.sender.sendall(bytes(sent_bytes))
        eventually(lambda: brought() == 50_000, within_s=10, what="two connections are counted, the third is not")
        ended.receiver.close()  # first: an end that has come is a byte to the kernel's count
        ended.sender.close()
        with (
            right.inside(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as listening,
            left.inside(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sending,
        ):
            listening.bind((right.address, 0))
            for _ in range(7):
                sending.sendto(bytes(DATAGRAM_BYTES), listening.getsockname())
                listening.recv(DATAGRAM_BYTES)  # the kernel counts what is read
            eventually(lambda: brought() == 57_000, within_s=10, what="so are seven datagrams")
    finally:
        arriving.stop()
        other.close()
        lasting.close()
