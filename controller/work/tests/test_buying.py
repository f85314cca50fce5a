"""What is asked of a provider is on disk before it is asked: over real HTTP, a database that refuses, and deaths."""

from dataclasses import replace

import pytest

from controller.plan.lifecycle import ReservationState
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.purchases import PurchaseState
from controller.providers.oscars import OscarsProvider
from controller.providers.tests.buying import settings
from controller.providers.tests.fake_oscars import Faults
from controller.tests.fakes import START_US
from controller.work.purchasing import Purchasing
from controller.work.tests.buying_site import CIRCUIT, BuyingSite, S
from topology.protocol import FlowClass

START, END = START_US + 900 * S, START_US + 1_500 * S
GIGABIT = 10**9
ASKS = ("POST /protected", "PUT /protected", "DELETE ")  # what changes anything there


@pytest.fixture
def site(oscars, oscars_url):
    """A site that buys of OSCARS."""
    one = BuyingSite(lambda now_us: {CIRCUIT: OscarsProvider(settings(oscars_url, timeout_s=5.0), now_us)})
    oscars.clock = lambda: one.clock.now_us / S
    yield one
    one.close()


def asked(oscars):
    """What would have changed anything there."""
    return [request for request in oscars.requests if request.startswith(ASKS)]


def reserved(oscars):
    """The rates of what OSCARS has reserved, Mbit/s."""
    oscars.oscars.now_s()
    return [row.asked.fixtures[0].mbps for row in oscars.oscars.rows if row.phase == "RESERVED"]


def bought(site):
    """Promise a circuit, and buy it; return the promise."""
    name = site.promised(2 * GIGABIT, START, END)
    site.pass_to(START_US + 10 * S)
    assert [p.state for p in site.bought()] == [PurchaseState.RESERVED]
    return name


def needs(site, what):
    """Let something be needed of the provider that is not done yet."""
    if what == "purchase":
        site.promised(GIGABIT, START, END)
        return
    name = bought(site)
    if what == "change":
        site.promised(GIGABIT, START, END)
    site.use_cases.release(name).saved.result()


NEEDED = ["purchase", "change", "release"]


@pytest.mark.parametrize("what", NEEDED)
def test_what_the_database_refuses_reaches_no_provider(site, oscars, what):
    needs(site, what)
    before, known = asked(oscars), dict(site.value.wished.purchases[CIRCUIT])
    site.database.close()
    for _ in range(3):
        site.purchasing.step()
    assert asked(oscars) == before
    assert site.value.wished.purchases[CIRCUIT] == known


@pytest.mark.parametrize("what", NEEDED)
def test_who_may_not_lead_any_more_once_it_is_saved_asks_for_nothing(site, oscars, what):
    needs(site, what)
    before, known = asked(oscars), site.value.wished.purchases[CIRCUIT]
    provider = site.providers[CIRCUIT]
    leads = lambda: site.value.wished.purchases[CIRCUIT] is known  # noqa: E731 - until anything was written down
    Purchasing(site.state, site.use_cases, CIRCUIT, provider, leads).step()
    assert not leads()
    assert asked(oscars) == before


def test_what_was_to_be_given_back_when_its_controller_died_is_given_back_by_the_next(site, oscars):
    needs(site, "release")
    oscars.faults = Faults(only="DELETE", times=1, drop="before")
    site.purchasing.step()
    assert len(reserved(oscars)) == 1
    site.restart()
    assert [p.state for p in site.value.wished.purchases[CIRCUIT].values()] == [PurchaseState.DROPPED]
    site.pass_to(site.clock.now_us + 4 * S)
    assert reserved(oscars) == []


def test_nothing_new_is_bought_near_what_the_provider_still_has(site, oscars):
    needs(site, "release")
    oscars.faults = Faults(only="DELETE", status=503)
    name = site.promised(GIGABIT, START, END)
    site.pass_to(site.clock.now_us + 20 * S)
    assert len(oscars.creates) == 1
    oscars.faults = Faults()
    site.pass_to(START)
    assert site.reservation(name).state is ReservationState.ACTIVE


def test_a_controller_that_starts_amid_a_change_counts_on_no_more_than_both_rates(site, oscars):
    needs(site, "change")
    before_bps = site.bought()[0].period.rate_bps
    oscars.faults = Faults(only="PUT /protected/l2vpn/replace", drop="before")
    site.purchasing.step()
    site.restart()
    narrow_bps = site.bought()[0].period.rate_bps
    assert narrow_bps < before_bps
    oscars.faults = Faults()
    site.pass_to(site.clock.now_us + 400 * S)
    assert site.bought()[0].period.rate_bps == narrow_bps
    assert [mbps * 10**6 for mbps in reserved(oscars)] == [narrow_bps]


def test_what_was_sold_is_not_given_up_because_it_was_asked_for_long_ago(site, oscars):
    name = bought(site)
    site.pass_to(START)
    (row,) = oscars.oscars.rows
    row.phase = "HELD"
    site.pass_to(START + 20 * S)
    assert [p.state for p in site.bought()] == [PurchaseState.ASKED]
    assert site.told("provider.given_up") == []
    row.phase = "RESERVED"
    site.pass_to(START + 30 * S)
    assert site.reservation(name).state is ReservationState.ACTIVE


def test_what_was_promised_is_bought_although_the_policy_sells_none_of_its_class_any_more(site, oscars):
    name = site.promised(GIGABIT, START, END)
    urgent = replace(DEFAULT_POLICY.classes[FlowClass.URGENT], cap_ppm=200)
    policy = replace(DEFAULT_POLICY, classes={**DEFAULT_POLICY.classes, FlowClass.URGENT: urgent})
    site.state.site = replace(site.state.site, policy=policy)
    site.purchasing.step()
    assert site.reservation(name).state is ReservationState.COMMITTED
    assert reserved(oscars) == [1_000]


def test_a_change_that_is_refused_leaves_what_was(site, oscars):
    bought(site)
    (before,) = site.bought()
    oscars.rules.ports_mbps = {"chic-cr6:1/1/c9/1": 3_000}
    try:
        refused = site.promised(5 * GIGABIT, START, END)
        site.pass_to(site.clock.now_us + 4 * S)
        assert site.reservation(refused).state is ReservationState.FAILED
        assert [p.period for p in site.bought()] == [before.period]
    finally:
        oscars.rules.ports_mbps = {}
