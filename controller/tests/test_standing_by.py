"""The state of a controller that stands by, and of one that begins to lead."""

from dataclasses import replace

from controller.plan.leading import VOUCHED_US
from controller.plan.leases import Leases
from controller.reports import Reports
from controller.state.guard import GuardedState
from controller.tests.fakes import ELAPSED_US, LEASE_MS, image, ready_site, value_of
from controller.work.convergence import Convergence
from topology.protocol import Applied, Hello

TERM = 1 << 42


def standing_by(site):
    """The state of another controller of a site, which stands by; and its reports."""
    state = GuardedState(site.state.site, site.clock.instant, 0, stands_by=True)
    return state, Reports(state)


def hello_of(site, host, **changes):
    """What an agent says to a controller that stands by: what the leader has granted it."""
    told = next(told for name, told in reversed(site.hosts.sent) if name == host)
    return replace(Hello(host, "0", "6.12", told.epoch, LEASE_MS, told.entries), **changes)


def test_who_stands_by_grants_nobody_anything():
    site = ready_site()
    state, reports = standing_by(site)
    told = reports.host_up(hello_of(site, "base23"))
    assert (told.epoch, told.entries) == (0, ())
    reports.hosts_applied([("base23", Applied(0))])
    host = value_of(state).reported.hosts["base23"]
    assert (host.connected, host.leases) == (True, Leases())


def test_who_begins_to_lead_goes_on_with_what_agents_act_on_under_a_higher_epoch_than_any_before():
    site = ready_site()
    state, reports = standing_by(site)
    hello = hello_of(site, "base23")
    reports.host_up(hello)
    state.lead(TERM)
    told = reports.host_up(hello)  # as HostSessions greets them anew
    assert told.entries == hello.entries
    assert value_of(state).desired.plan.epoch == 2 * TERM > told.epoch > hello.epoch
    acting = value_of(state).reported.hosts["base23"].leases.acting(ELAPSED_US)
    assert [entry.flow.name for entry in acting] == [entry.name for entry in hello.entries]


def test_a_host_with_nothing_to_do_hears_of_the_new_term_too():
    site = ready_site()
    state, reports = standing_by(site)
    idle = Hello("base23", "0", "6.12", 0)
    reports.host_up(idle)
    state.lead(TERM)
    told = reports.host_up(idle)
    assert (told.epoch, told.entries) == (2 * TERM - 1, ())
    reports.hosts_applied([("base23", Applied(told.epoch))])
    assert not value_of(state).reported.hosts["base23"].unknown_until_us


def test_hosts_that_have_not_called_count_until_no_leader_before_can_have_repeated_it_as_nobody_knows_what():
    site = ready_site()
    state, _ = standing_by(site)
    site.clock.now_us += 50 * LEASE_MS * 1000  # it has stood by for long
    state.lead(TERM)
    elapsed_us = site.clock.instant().elapsed_us
    assert value_of(state).reported.unknown_until_us(elapsed_us) == elapsed_us + LEASE_MS * 1000 + VOUCHED_US


def test_one_that_is_not_sure_that_it_leads_changes_nothing():
    site = ready_site()
    sure = False
    converging = Convergence(site.state, site.switches, site.hosts, site.convergence._writing, lambda: sure)
    before = list(site.switches.log), list(site.hosts.sent)
    site.announce(image())
    assert not converging.step()
    assert (site.switches.log, site.hosts.sent) == before
    sure = True
    assert converging.step()
    assert (site.switches.log, site.hosts.sent) != before


def test_who_stands_by_says_of_no_promise_whether_it_is_carried():
    site = ready_site()
    promised = site.announce(image())
    assert site.use_cases.obstacles([promised]) == ((),)
    site.state._value = replace(site.state._value, stands_by=True)
    assert site.use_cases.obstacles([promised]) == (None,)
