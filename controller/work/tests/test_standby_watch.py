"""That nobody stands by is said once it has been so for a while, and once it is over."""

import pytest

from controller.events import Events
from controller.work.standby_watch import ALONE_S, StandbyWatch


class WatchedPair:
    """Who stands by, and the time; what was said of it."""

    def __init__(self):
        self.standbys, self.now_s = (), 0.0
        self.events = Events(lambda: 0)
        self.watch = StandbyWatch(lambda: self.standbys, self.events, lambda: self.now_s)

    def after(self, seconds, *standbys):
        """Look when so much more time has passed, and others stand by."""
        self.now_s += seconds
        self.standbys = standbys
        self.watch.look()

    @property
    def said(self):
        """What was said."""
        return [(one.name, dict(one.fields)) for one in self.events.since(self.events.before).events]


@pytest.fixture
def pair():
    return WatchedPair()


def test_one_that_begins_anew_is_no_news(pair):
    pair.after(1, "b")
    pair.after(ALONE_S - 1)
    pair.after(0.5, "b")
    pair.after(ALONE_S - 1)
    assert pair.said == []


def test_that_nobody_stands_by_is_said_once_and_that_somebody_does_again(pair):
    pair.after(1, "b", "c")
    pair.after(ALONE_S)
    pair.after(3 * ALONE_S)
    pair.after(1, "c")
    pair.after(1, "c")
    assert pair.said == [("standby.gone", {"before": "b and c"}), ("standby.back", {"standbys": "c"})]


def test_one_that_leads_and_has_never_been_followed_says_so_too(pair):
    pair.after(ALONE_S)
    assert pair.said == [("standby.gone", {"before": ""})]
