"""Who has nothing to send while its circuit dies or is worked on: late only if the other circuit has less for it."""

import pytest

from controller.plan.maintenance import Maintenance
from controller.promise_watch import PromiseWatch
from controller.state.moment import STARTING_US
from controller.tests.fakes import FakeSite, image
from mininet_tests.testing.networks import two_lanes

S = 1_000_000
CONNECTED = frozenset({1, 2})
PORTS = {"north": 8, "south": 9}


def promised(size_bytes, lanes):
    """A site with two circuits where one host is promised to send by one or by both, and has nothing to send."""
    site = FakeSite(two_lanes(), standing=())
    site.attach_all()
    site.wire()
    site.clock.now_us += STARTING_US
    site.announce(image(size_bytes=size_bytes, deadline_us=120 * S, senders=("base20",), lanes=lanes))
    site.clock.now_us += 5 * S
    site.converge()
    assert ways(site) == {*[*PORTS][:lanes]}
    return site


def dies(site, circuit):
    """Let a circuit die."""
    site.port_said(1, PORTS[circuit], is_live=False)


def is_worked_on(site, circuit):
    """Let a circuit be worked on from now on."""
    one = Maintenance("m", circuit, site.clock(), site.clock() + 600 * S)
    site.use_cases.maintaining.plan(lambda _: one, only_look=False, force=True).saved.result()


def ways(site):
    """The lines that the desired plan's flows take."""
    return {e.flow.path[2] for e in site.value.desired.plan.entries}


def told(site):
    """The names of what is told of announcements once they have been looked at."""
    site.converge()
    seen = site.state.events.last
    PromiseWatch(site.state).look()
    return [e.name for e in site.state.events.since(seen).events if e.name.startswith("announcement.")]


@pytest.mark.parametrize(("circuit", "lanes"), [("north", 1), ("north", 2), ("south", 2)])
@pytest.mark.parametrize("happens", [dies, is_worked_on])
def test_who_waits_for_something_to_send_is_not_late_where_the_other_circuit_has_all_of_it(happens, circuit, lanes):
    site = promised(6_000_000_000, lanes)
    happens(site, circuit)
    assert told(site) == []
    assert circuit not in ways(site)
    assert site.reports.troubles(CONNECTED) == ()


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("happens", [dies, is_worked_on])
def test_who_waits_for_something_to_send_is_late_where_the_other_circuit_has_less(happens, lanes):
    site = promised(9_000_000_000, lanes)
    happens(site, "north")
    assert told(site) == ["announcement.late"]
    less = "announcement image: the plan has less for it than was promised"
    assert [str(one) for one in site.reports.troubles(CONNECTED)] == [less]
