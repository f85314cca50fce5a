"""A controller that has just started: who has not had the time to call is no alarm, and is one if it does not come."""

import pytest

from controller.northbound.page.needs import headline
from controller.northbound.page.watch import Watch
from controller.northbound.tests.site import dependencies_of
from controller.state.faults import note_failed, switch_gone
from controller.state.starting import STARTING_US
from controller.tests.fakes import LS1, FakeSite
from mininet_tests.testing.networks import chile_illinois

S = 1_000_000


@pytest.fixture
def site():
    """A site that has just started: nobody has called yet, and the switches do not answer."""
    site = FakeSite(chile_illinois())
    site.switches.gone = True
    return site


def told(site):
    """The events of faults, in order."""
    return [e.name for e in site.state.events.since(0).events if e.name.startswith("fault.")]


def gone(site):
    """The first switch is found not to be there, as the convergence finds it after a lease."""
    with site.state.changed:
        note_failed(site.state, [switch_gone(LS1)])


def passes(site, us):
    """Time passes, and what has a fault is tried again."""
    site.clock.now_us += us
    site.mending.look()


def test_a_switch_that_calls_within_the_grace_is_never_told_of(site):
    passes(site, 4 * S)
    gone(site)
    passes(site, 10 * S)
    site.switches.gone = False
    site.wire()
    passes(site, STARTING_US)
    assert told(site) == []


def test_a_switch_that_does_not_come_is_told_of_once_when_the_grace_is_over(site):
    passes(site, 4 * S)
    gone(site)
    passes(site, STARTING_US - 4 * S - 1)
    assert told(site) == []
    for _ in range(3):
        passes(site, 1)
    assert told(site) == ["fault.began"]
    site.switches.gone = False
    site.wire()
    assert told(site) == ["fault.began", "fault.over"]


def test_a_switch_that_has_called_and_goes_is_told_of_at_once(site):
    site.switches.gone = False
    site.wire()
    passes(site, 4 * S)
    site.switches.gone = True
    site.switch_reports.switch_down(LS1.dpid)
    assert told(site) == ["fault.began"]


def test_a_switch_that_is_let_go_as_the_controller_ends_is_no_fault(site):
    site.switches.gone = False
    site.wire()
    passes(site, 4 * S)
    site.state.stop()
    site.switch_reports.switch_down(LS1.dpid)
    assert told(site) == []


def test_the_page_says_that_it_has_just_started_and_then_who_has_not_come(site):
    connected = frozenset()
    watch = Watch(dependencies_of(site, connected=lambda: connected))
    names = {"ls1", "ch1", *(host.name for host in site.state.site.network.hosts)}
    look = watch.look()
    assert (look.needs, look.view.yet_to_call) == ((), names)
    said = headline(look.needs, len(look.view.yet_to_call))
    assert said == f"The controller has just started: {len(names)} switches and agents have yet to call."
    site.attach("base20")
    assert watch.look().view.yet_to_call == names - {"base20"}
    site.reports.host_down("base20")
    assert [(one.kind, one.place) for one in watch.look().needs] == [("agent", "base20")]  # it was there
    site.clock.now_us += STARTING_US
    found = watch.look()
    assert {one.place for one in found.needs if one.kind in {"agent", "switch-gone"}} == names
    assert not found.view.yet_to_call
