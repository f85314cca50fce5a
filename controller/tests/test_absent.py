"""A host that is gone for a lease: others use what it was given, its promise is said to be late, and comes back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.plan.invariant import violations
from controller.promise_watch import PromiseWatch
from controller.state.reported import NEVER_US, Hosts, HostState
from controller.tests.fakes import LEASE_MS, ready_site, sending_image
from topology.network import Hop
from topology.protocol import FlowClass

WAN = Hop("ls1", "ch1")
LEASE_US = LEASE_MS * 1000


@pytest.fixture
def site():
    """A site on which an image is under way."""
    site = ready_site()
    sending_image(site)
    return site


def sent_bps(site, host):
    """What a host was told last."""
    return sum(e.frame_bps for e in site.value.reported.hosts[host].acts_as_granted)


def passes(site, us):
    """Time passes, and all that is due is done."""
    site.clock.now_us += us
    site.converge()


def late(site, since, name):
    """The events of a name."""
    return [dict(e.fields) for e in site.state.events.since(since).events if e.name == name]


def test_a_dead_sender_keeps_its_share_for_a_lease_and_no_longer(site):
    for host in ("base20", "base21"):
        site.reports.host_down(host)
    passes(site, LEASE_US - 1)
    assert sent_bps(site, "base23") < 20_000_000
    passes(site, 1)
    assert sent_bps(site, "base23") > 850_000_000
    assert not violations(site.reports.view().layers)


def test_the_other_sender_of_an_image_uses_what_a_dead_one_had(site):
    site.reports.host_down("base20")
    passes(site, LEASE_US)
    assert sent_bps(site, "base21") > 850_000_000


def test_a_dead_senders_promise_is_late_once_and_comes_back_with_it(site):
    seen = site.state.events.last
    passes(site, 1_000_000)
    site.reports.host_down("base20")
    watch = PromiseWatch(site.state)
    for _ in range(5):
        passes(site, LEASE_US)
        watch.look()
    (said,) = late(site, seen, "announcement.late")
    assert (said["announcement"], said["expected"]) == ("image", "")
    assert said["why"] == "base20: its agent is not connected"
    site.attach("base20")
    site.converge()
    watch.look()
    assert sent_bps(site, "base20") > 400_000_000
    assert late(site, seen, "announcement.resumed") == [{"announcement": "image"}]


def test_what_nobody_else_wants_is_left_to_a_host_whose_agent_alone_is_gone():
    """Its traffic goes on by its own congestion control, behind the same meters and queues."""
    site = ready_site()
    meter_bps = site.value.installed.meters.links[WAN].classes[FlowClass.BACKGROUND].meter_bps
    site.reports.host_down("base23")
    passes(site, LEASE_US)
    assert site.value.installed.meters.links[WAN].classes[FlowClass.BACKGROUND].meter_bps >= meter_bps
    assert not violations(site.reports.view().layers)


def test_the_clock_wakes_up_when_a_lease_is_over(site):
    site.reports.host_down("base20")
    with site.state.changed:
        assert site.state.due_us() <= site.state.elapsed_us() + LEASE_US


agents = st.builds(
    lambda connected, away_us: HostState(connected=connected, away_us=away_us), st.booleans(), st.integers(0, 30)
)


@given(st.dictionaries(st.sampled_from("abcd"), agents, min_size=1), st.lists(st.tuples(st.integers(0, 50), agents)))
def test_who_is_absent_is_known_at_any_time_and_of_any_hosts(states, later):
    hosts, lease_us = Hosts(states), 10
    for at_us, agent in later:
        ends_us = {name: one.away_us + lease_us for name, one in hosts.items() if not one.connected}
        for _ in range(2):  # found, and remembered
            absent = hosts.absent(at_us, lease_us)
            assert absent.names == {name for name, end_us in ends_us.items() if end_us <= at_us}
            assert absent.until_us == min((end_us for end_us in ends_us.values() if end_us > at_us), default=NEVER_US)
        hosts = hosts.put({min(states): agent}) if at_us % 2 else hosts
