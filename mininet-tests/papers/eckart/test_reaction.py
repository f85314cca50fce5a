"""A receiver that becomes slow or fast at any moment between two looks: when the plan follows, from agent to plan."""

from ipaddress import IPv4Address
from pathlib import Path

import pytest

from controller.plan.intake import Brake, Intake, IntakeSight
from hostagent.agent.agent import REPORT_S
from hostagent.doctor.connections import ReceivingConnection
from hostagent.stores.settings import IntakeStore
from hostagent.stores.stores import Stores

S, MB, MBIT = 1_000_000, 10**6, 10**6
AIM_US = 2 * S
UNREAD_BYTES = 20 * MB
NO_DISK = Path("/proc")
PLANNED_BPS = 900 * MBIT


class Reader:
    """A program that always has something to read, and reads at a rate; at an instant at another one."""

    def __init__(self, first_mbps, then_mbps, changes_us):
        self.now_us, self._first, self._then, self._changes_us = 0, first_mbps, then_mbps, changes_us

    def now_ns(self):
        return self.now_us * 1000

    def connections(self):
        read_bits = self._first * min(self.now_us, self._changes_us)
        read_bits += self._then * max(0, self.now_us - self._changes_us)
        received = read_bits // 8 + UNREAD_BYTES
        return [ReceivingConnection(1, IPv4Address("10.1.0.9"), 5000, received, UNREAD_BYTES, 0)]


def followed_us(reader, news, is_followed):
    """How long after the first look a controller has followed; the agent looks as its watchdog has it look."""
    stores, known = Stores([IntakeStore(NO_DISK)], reader.connections, reader.now_ns), Intake()
    half_us = round(REPORT_S * S / 2)
    stores.told()
    while not is_followed(reader.now_us, known):
        reader.now_us += half_us
        if not (news and stores.has_news()):
            reader.now_us += half_us
        for one in stores.told():
            sight = IntakeSight(one.drained_bps, one.is_waiting, one.room_bytes, Brake(one.brake))
            known = known.seen(sight, PLANNED_BPS, reader.now_us)
    return reader.now_us


def worst_us(first_mbps, then_mbps, *, news):
    """The longest that it takes, whenever within a second the rate changes."""

    def taken_us(changes_us):
        def is_followed(now_us, known):
            near = known.drain_bps is not None and abs(known.drain_bps - then_mbps * MBIT) < then_mbps * MBIT // 2
            return now_us > changes_us and near

        return followed_us(Reader(first_mbps, then_mbps, changes_us), news, is_followed) - changes_us

    return max(taken_us(60 * S + part * S // 50) for part in range(50))


@pytest.mark.parametrize(("first_mbps", "then_mbps"), [(280, 70), (70, 280)])
def test_the_plan_follows_within_two_seconds_whenever_the_rate_changes(first_mbps, then_mbps):
    assert worst_us(first_mbps, then_mbps, news=True) <= AIM_US
    assert worst_us(first_mbps, then_mbps, news=False) > AIM_US, "looks a second apart alone are too few"
