"""One of a pair beside a database that is silent, or that the one before has still."""

import threading
import time
from types import SimpleNamespace

import pytest

from controller.database import DatabaseBusy, DatabaseFailed
from controller.database.leader_row import SeenLeader
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import GIGABIT
from controller.site import Site
from controller.state.guard import GuardedState
from controller.tests.fakes import Clock
from controller.work.pair import Pair
from mininet_tests.testing.eventually import eventually

SILENT_S = 1.0


class SilentOnce:
    """Saves whose first reading waits for the database; each says when it began."""

    def __init__(self):
        self.begun_s = []

    def follow(self):
        """Read what the leader has written."""
        self.begun_s.append(time.monotonic())
        if len(self.begun_s) == 1:
            time.sleep(SILENT_S)
        return len(self.begun_s)


def test_who_has_waited_for_the_database_does_not_rest_from_it():
    row = SeenLeader(7, "a", "", 0, is_over=False, saves=1)
    leadership = SimpleNamespace(led=threading.Event(), seen=row, seen_us=0)
    state = GuardedState(Site(GIGABIT, DEFAULT_POLICY, (), 300), Clock().instant, 0, stands_by=True)
    saves = SilentOnce()
    thread = threading.Thread(target=Pair(leadership, state, None, saves, None).follow, daemon=True)
    thread.start()
    try:
        eventually(lambda: saves.begun_s, within_s=5, what="the first reading")
        leadership.seen = SeenLeader(7, "a", "", 0, is_over=False, saves=2)  # the leader writes meanwhile
        eventually(lambda: len(saves.begun_s) > 1, within_s=5, what="the second reading")
    finally:
        state.stop()
        leadership.led.set()
        thread.join(5)
    rested_s = saves.begun_s[1] - saves.begun_s[0] - SILENT_S
    assert rested_s < 2 * SILENT_S  # three times as long, if it had worked all the while


class HeldStill:
    """A database that the session of who led before has still."""

    def open(self, _term):
        """Be refused."""
        raise DatabaseBusy("postgresql://db/headway", "headway, process 812 on ctl-a")


def test_who_does_not_get_the_lock_of_who_led_before_does_not_lead_and_tells_to_stop_nobody():
    state = GuardedState(Site(GIGABIT, DEFAULT_POLICY, (), 300), Clock().instant, 0, stands_by=True)
    pair = Pair(SimpleNamespace(term=7), state, HeldStill(), None, None)
    with pytest.raises(DatabaseFailed, match=r"process 812 on ctl-a$"):  # as of a database that is away
        pair.lead((), lambda: None)
