"""One controller of a pair as a process: while there is no database, and when it is to begin anew."""

import contextlib

from apps.pair import begin_anew, leadership
from apps.process import Stop
from controller.database.settings import PairSettings
from controller.plan.leading import TTL_US

NOWHERE = "postgresql://nobody@127.0.0.1:1/headway"


class StopsSoon(Stop):
    """Set by who waits for it the second time."""

    waits = 0

    def wait(self, timeout=None):
        self.waits += 1
        if self.waits > 1:
            self.end_for_good()
        return self.is_set()


class Hears:
    """A supervisor, and what it has heard."""

    def __init__(self):
        self.heard = []

    def ready(self, status):
        self.heard.append(("ready", status))

    def alive(self, status):
        self.heard.append(("alive", status))


def test_one_that_waits_for_its_database_says_that_it_is_up_and_that_it_lives():
    supervisor, waits = Hears(), "waits for the database"
    with contextlib.ExitStack() as parts:
        leadership(parts, NOWHERE, PairSettings("https://a:1", TTL_US), StopsSoon(), supervisor)
    assert supervisor.heard == [("ready", waits), ("alive", waits), ("alive", waits)]


def test_who_has_been_told_to_end_does_not_begin_anew(monkeypatch):
    begun, stop = [], Stop()
    monkeypatch.setattr("apps.pair.os.execv", lambda *command: begun.append(command))
    stop.end_for_good()
    begin_anew(stop)
    assert begun == []
    begin_anew(Stop())
    assert len(begun) == 1
