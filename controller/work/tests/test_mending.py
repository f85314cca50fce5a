"""A place that was brought to what is in force is open again at once: nothing else is tried there meanwhile."""

from dataclasses import replace

from controller.plan.faults import PlaceFault
from controller.state.faults import note_failed
from controller.tests.fakes import FakeSite
from controller.work.mending import Mending
from mininet_tests.testing.networks import chile_illinois


class LookedAtBetween:
    """The state's lock; whenever it is let go, the clock of the mending has just struck."""

    def __init__(self, lock):
        self._lock = lock
        self.then = None

    def __enter__(self):
        """Acquire the lock."""
        return self._lock.__enter__()

    def __exit__(self, *error):
        """Let it go, and look."""
        self._lock.__exit__(*error)
        then, self.then = self.then, None
        if then is not None:
            then()
            self.then = then

    def __getattr__(self, name):
        """All else is the lock's own."""
        return getattr(self._lock, name)


def test_a_place_that_is_back_is_not_tried_once_more():
    site = FakeSite(chile_illinois())
    fault = PlaceFault("switch ls1", "is not connected", frozenset({"ls1"}))
    with site.state.changed:
        note_failed(site.state, [fault])
    site.state.changed = between = LookedAtBetween(site.state.changed)
    tries = []
    mending = Mending(site.state, site.switches, spawn=tries.append)
    mending.look()
    between.then = mending.look
    tries[0]()
    assert len(tries) == 1
    between.then = None
    assert [one.is_back for one in site.value.installed.faults.values()] == [True]


def test_a_fault_says_what_the_latest_try_has_found():
    site = FakeSite(chile_illinois())
    with site.state.changed:
        note_failed(site.state, [PlaceFault("switch ls1", "did not confirm within 5 s", frozenset({"ls1"}))])
    doubts, seen = site.value.reported.doubts, site.state.events.last
    site.switches.mended = lambda known, *_: (replace(known, why="has no room for 1,200 rules"),)
    site.mending.look()
    assert site.reports.view().error == "switch ls1: has no room for 1,200 rules"
    assert site.value.reported.doubts == doubts  # nothing else is known to be otherwise there
    assert site.state.events.since(seen).events == ()


def test_a_try_that_finds_nothing_new_leaves_the_reason_that_was_found_meanwhile():
    site = FakeSite(chile_illinois())
    first = PlaceFault("switch ls1", "did not confirm within 5 s", frozenset({"ls1"}))
    with site.state.changed:
        note_failed(site.state, [first])

    def found_meanwhile(known, *_):
        with site.state.changed:
            note_failed(site.state, [replace(first, why="is not connected")])
        return (known,)

    site.switches.mended = found_meanwhile
    site.mending.look()
    assert site.reports.view().error == "switch ls1: is not connected"
