"""What a receiving host's agent tells of a slow reader, of a fast one, and of a slow disk: real sockets and files."""

import contextlib
import os
import socket
import statistics
import subprocess
import threading

import pytest

from hostagent.stores.disk import PROC, device_at
from hostagent.tests.paced_reader import PacedReader
from hostagent.tests.rig import MBIT, RunningAgent, connected, end_both
from hostagent.tests.slow_file import FUSE, slow_disk
from mininet_tests.testing.eventually import eventually
from topology.telemetry import StoreBrake, Telemetry

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF")]

READS_MBPS = 20
SO_MAX_PACING_RATE = 47  # linux/asm-generic/socket.h; Python has no name for it


def told_for(agent, seconds):
    """What is told of the store for some seconds from now, the first of them aside."""
    heard = len(agent.controller.all_of(Telemetry))
    eventually(
        lambda: len(agent.controller.all_of(Telemetry)) > heard + seconds, within_s=seconds + 10, what="telemetry"
    )
    return [one for message in agent.controller.all_of(Telemetry)[heard + 1 :] for one in message.stores]


@pytest.fixture
def receiving(hosts, tmp_path, cleanup):
    """An agent on the right host that has a store."""
    running = RunningAgent(hosts[1], tmp_path / "agent", stores=[{"path": str(tmp_path), "name": "data"}])
    cleanup.callback(running.close)
    return running


def test_a_slow_reader_is_told_with_its_rate_and_what_waits_for_it(hosts, receiving, cleanup):
    reader = PacedReader(*hosts, READS_MBPS, 1 << 20)
    cleanup.callback(reader.close)
    told_for(receiving, 2)
    seen = told_for(receiving, 5)
    assert all(one.is_waiting and one.name == "data" and one.brake is StoreBrake.READER for one in seen), seen
    rate_bps = statistics.median(one.drained_bps for one in seen)
    assert rate_bps == pytest.approx(READS_MBPS * MBIT, rel=0.1)
    assert all(one.unread_bytes > 100_000 for one in seen)


def test_a_fast_reader_is_never_said_to_be_waited_for(hosts, receiving, cleanup):
    reader = PacedReader(*hosts, None)
    reader.sender.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 10 * READS_MBPS * MBIT // 8)  # as a line would
    cleanup.callback(reader.close)
    told_for(receiving, 2)
    seen = told_for(receiving, 4)
    assert seen
    assert not any(one.is_waiting for one in seen), seen
    assert all(one.drained_bps > READS_MBPS * MBIT for one in seen)


class FileWriter:
    """One connection whose sender is paced, and whose reader puts all that comes into a file, and has it written."""

    def __init__(self, hosts, file, bps):
        self.sender, self.receiver = connected(*hosts)
        self.sender.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, bps // 8)
        self._file = file
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._send, self._write, self._sync)]
        for thread in self._threads:
            thread.start()

    def _send(self):
        block = bytes(1 << 18)
        with contextlib.suppress(OSError):
            while True:
                self.sender.sendall(block)

    def _write(self):
        block = bytearray(1 << 18)
        with contextlib.suppress(OSError), self._file.open("wb", buffering=0) as file:
            while got := self.receiver.recv_into(block):
                file.write(memoryview(block)[:got])
        self._ended.set()

    def _sync(self):
        """Write what is dirty, as movers do: by itself the kernel begins after half a minute, or with gigabytes."""
        with self._file.open("ab") as file:
            while not self._ended.wait(0.05):
                os.fdatasync(file)

    def close(self):
        end_both(self.sender, self.receiver, self._threads)
        self._file.unlink()


DISK_MBPS = 160


@pytest.mark.skipif(not FUSE.exists(), reason="a slow disk is made by FUSE, which this kernel lacks")
def test_a_slow_disk_under_a_fast_reader_is_told_with_its_rate(hosts, tmp_path, cleanup):
    folder = cleanup.enter_context(slow_disk(tmp_path, DISK_MBPS * MBIT, 1 << 30))
    receiving = RunningAgent(hosts[1], tmp_path / "agent", stores=[{"path": str(folder), "name": "data"}])
    cleanup.callback(receiving.close)
    writer = FileWriter(hosts, folder / "image", 2 * DISK_MBPS * MBIT)
    cleanup.callback(writer.close)

    def waited_for():
        """Five seconds in which the disk was: a busy machine may leave sender, reader or disk without a CPU for one."""
        seen = told_for(receiving, 5)
        return all(one.is_waiting and one.brake is StoreBrake.DISK for one in seen) and statistics.median(
            one.drained_bps for one in seen
        ) == pytest.approx(DISK_MBPS * MBIT, rel=0.05)

    eventually(waited_for, within_s=60, what="the disk is waited for, at its rate")
    told = [one for message in receiving.controller.all_of(Telemetry) for one in message.stores]
    early = [one for one in told if one.is_waiting and one.brake is StoreBrake.DISK and one.unread_bytes < 1 << 20]
    assert early, "a disk is told while the page cache takes all; a reader waits only once the kernel lets it"


def test_what_is_mounted_over_a_store_later_is_what_is_asked(tmp_path, cleanup):
    subprocess.run(["mount", "-t", "tmpfs", "none", tmp_path], check=True)
    cleanup.callback(subprocess.run, ["umount", "--recursive", tmp_path], check=True)
    store = tmp_path / "a store"
    store.mkdir()

    def devices():
        """Return what the list of mounts says of the store, and what the file system does."""
        number = store.stat().st_dev
        listed = device_at((PROC / "self" / "mountinfo").read_text(), store)
        return listed, f"{os.major(number)}:{os.minor(number)}"

    below, asked = devices()
    assert below == asked
    subprocess.run(["mount", "-t", "tmpfs", "none", store], check=True)
    above, asked = devices()
    assert above == asked != below
