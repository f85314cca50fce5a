"""A disk whose rate changes all the time, as a fluid beside the agent's estimate and the controller's: no flapping."""

import random

import pytest

from controller.plan.intake import Brake, Intake, IntakeSight
from hostagent.stores.estimate import DiskState, SocketIntake, StoreLook, intake
from mininet_tests.papers.eckart.cells import NOISE_BPS, NOISE_LASTS_S, NOISY_S, ROOM_BYTES
from mininet_tests.papers.eckart.results import NOISY_CHANGES, NOISY_WRITTEN

PLANNED_BPS = 470_000_000  # a half of the line, beside others
SOCKET_BYTES = 6_000_000
STEP_S, SIGHT_STEPS = 0.01, 100


class NoisyDisk:
    """A flow without end to a page cache, and a disk behind it.

    Attributes:
        written_bits, could_bits: what the disk has written, and what it could have.
    """

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._came = self._unread = self._dirty = self.written_bits = self.could_bits = self._busy_s = 0.0
        self._now_s = self._until_s = self._rate_bps = 0.0

    def go_on(self, sent_bps: float) -> StoreLook:
        """Let a second pass in which it is sent so much, bit/s; return what is seen then."""
        for _ in range(SIGHT_STEPS):
            self._now_s += STEP_S
            if self._now_s > self._until_s:
                self._rate_bps = self._draw.uniform(*NOISE_BPS)
                self._until_s = self._now_s + self._draw.uniform(*NOISE_LASTS_S)
            comes = min(sent_bps * STEP_S, 8 * SOCKET_BYTES - self._unread)
            reads = min(self._unread + comes, 8 * ROOM_BYTES - self._dirty)
            could = self._rate_bps * STEP_S
            writes = min(self._dirty + reads, could)
            self._came, self._unread = self._came + comes, self._unread + comes - reads
            self._dirty += reads - writes
            self.written_bits, self.could_bits = self.written_bits + writes, self.could_bits + could
            self._busy_s += STEP_S * writes / could
        socket = SocketIntake(int(self._came / 8), int(self._unread / 8), 1)
        disk = DiskState(int(self.written_bits / 8), int(self._busy_s * 1000), int(self._dirty / 8), ROOM_BYTES)
        return StoreLook(round(self._now_s * 1e9), {1: socket}, disk)


@pytest.mark.parametrize("seed", range(30))
def test_a_noisy_disk_moves_the_plan_seldom_and_has_something_to_write_all_the_time(seed):
    disk, known, changes = NoisyDisk(seed), Intake(), 0
    before = disk.go_on(PLANNED_BPS)
    for second in range(1, NOISY_S):
        sent_bps = min(PLANNED_BPS, known.ceiling_bps or PLANNED_BPS)
        now = disk.go_on(sent_bps)
        seen = intake(before, now)
        sight = IntakeSight(seen.drained_bps, seen.is_waiting, seen.room_bytes, Brake(seen.brake))
        was, known, before = known, known.seen(sight, sent_bps, second * 1_000_000), now
        changes += known.ceiling_bps != was.ceiling_bps
    assert changes <= NOISY_CHANGES
    assert disk.written_bits >= NOISY_WRITTEN * disk.could_bits
