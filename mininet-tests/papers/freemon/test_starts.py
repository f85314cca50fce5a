"""A port's queue is read as it is, and interfaces are stopped from its upper mark on until it is at the lower one."""

import os
import socket

import pytest

from hostagent.tests.rig import two_hosts
from mininet_tests.papers.freemon.starts import held
from mininet_tests.site.back_pressure import PortQueue, PortWatch
from mininet_tests.site.command import run
from mininet_tests.testing.eventually import eventually

FRAMES, FRAME_BYTES = 50, 1042  # of 1000 bytes by UDP


class ScriptedQueue:
    """A queue that has these lengths, one after another, and keeps the last."""

    def __init__(self, *sizes_bytes):
        self.left = list(sizes_bytes)

    @property
    def size_bytes(self):
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


class Told:
    """In the place of the interfaces: what they were told."""

    def __init__(self):
        self.told = []

    def stop(self):
        self.told.append("stop")

    def release(self):
        self.told.append("release")


def watched(*sizes_bytes):
    """What interfaces were told while a queue had these lengths, and the watch, which has ended."""
    queue, interfaces = ScriptedQueue(*sizes_bytes), Told()
    watch = PortWatch(queue, interfaces, (1000, 500))
    eventually(lambda: len(queue.left) == 1, within_s=10, what="the queue has had all its lengths")
    watch.close()
    return interfaces.told, watch


def test_interfaces_stop_at_the_upper_mark_and_go_on_at_the_lower_one():
    told, watch = watched(0, 999, 1000, 1400, 501, 999, 500, 900, 1000, 400, 0)
    assert told == ["stop", "release"] * 2
    assert (watch.stops, watch.most_bytes) == (2, 1400)
    assert watch.stopped_s > 0


def test_interfaces_that_are_stopped_at_the_end_go_on():
    told, watch = watched(0, 2000, 2000)
    assert told == ["stop", "release"]
    assert watch.stops == 1


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces")
def test_what_a_class_of_htb_holds_back_is_seen_in_the_ports_queue_and_goes():
    left, right = two_hosts()
    try:
        commands = held(left.interface, right.address, 100_000, 10**9)
        run("ip", "netns", "exec", left.name, "tc", "-batch", "-", text="\n".join(commands))
        queue = PortQueue(left, left.interface)
        assert queue.size_bytes == 0
        with left.inside(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sending:
            sending.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            for _ in range(FRAMES):
                sending.sendto(bytes(FRAME_BYTES - 42), (right.address, 9))
        queued = eventually(lambda: queue.size_bytes, within_s=10, what="15,000 bytes leave at once, the rest waits")
        assert queued <= FRAMES * FRAME_BYTES
        eventually(lambda: queue.size_bytes == 0, within_s=30, what="all of it has left")
    finally:
        left.remove()
        right.remove()
