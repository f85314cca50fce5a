"""What one provider, or one process, does not do to others: slowness, deaths, credentials, ways, NSI beside OSCARS."""

import base64
import json
import threading

import pytest

from controller.plan.lifecycle import ReservationState
from controller.plan.purchases import Period, PurchaseState, Terms
from controller.plan.reservations import Constraints
from controller.providers.nsi import NsiProvider
from controller.providers.oscars import OscarsProvider
from controller.providers.oscars_values import OscarsPort
from controller.providers.static import StaticProvider
from controller.providers.tests.buying import A_END, Z_END, of, settings
from controller.providers.tests.fake_oscars import TOKEN, Faults
from controller.providers.tests.test_contract import nsi_settings
from controller.state.health import TroubleKind, troubles
from controller.tests.fakes import START_US
from controller.work.tests.buying_site import CIRCUIT, BuyingSite, S
from mininet_tests.testing.networks import chile_illinois_2

START, END = START_US + 900 * S, START_US + 1_500 * S
GIGABIT = 10**9


@pytest.fixture
def opened(oscars, nsi):
    """Makes a site; all stand-ins go by its clock."""
    sites = []

    def made(providers, network=None):
        site = BuyingSite(providers, network)
        for fake in (oscars, nsi):
            fake.clock = lambda: site.clock.now_us / S
        sites.append(site)
        return site

    yield made
    for site in sites:
        site.close()


@pytest.fixture
def buyer(opened, oscars_url):
    """Makes a site that buys of OSCARS."""

    def made(**other):
        return opened(lambda now_us: {CIRCUIT: OscarsProvider(settings(oscars_url, timeout_s=5.0, **other), now_us)})

    return made


@pytest.fixture
def nsi_buyer(opened, nsi_url):
    """A site that buys through an NSI proxy."""
    return opened(lambda now_us: {CIRCUIT: NsiProvider(nsi_settings(nsi_url, timeout_s=5.0), now_us)})


def reserved(oscars):
    """The names of what OSCARS has reserved."""
    oscars.oscars.now_s()
    return [row.asked.name for row in oscars.oscars.rows if row.phase == "RESERVED"]


def behind_the_lock(site, oscars, url):
    """A promise that is asked for while the routers are told of somebody else's circuit, and its answer lost."""
    other_a, other_z = OscarsPort("chic-cr6", "chic-cr6:1/1/c10/1", 7), OscarsPort("nash-cr6", Z_END.port, 7)
    other = OscarsProvider(settings(url, a_end=other_a, z_end=other_z), site.clock)
    other.reserve("CXX2", Period(START_US + 40 * S, START_US + 86_400 * S, GIGABIT))
    oscars.rules.routers_s = 250
    site.pass_to(START_US + 42 * S)
    name = site.promised(GIGABIT, START + 600 * S, END + 600 * S)
    site.pass_to(START_US + 60 * S)
    assert [p.state for p in site.bought()] == [PurchaseState.ASKED]
    other.close()
    return name


@pytest.mark.parametrize("deaths", [1, 4])
def test_a_process_that_starts_while_its_purchase_waits_for_the_lock_asks_for_nothing_again(
    buyer, oscars, oscars_url, deaths
):
    site = buyer()
    name = behind_the_lock(site, oscars, oscars_url)
    for death in range(deaths):
        site.restart()
        site.pass_to(START_US + (70 + 40 * death) * S)
    site.pass_to(START + 700 * S)
    assert len(oscars.oscars.created) == 2  # somebody else's, and ours
    assert len(reserved(oscars)) == 2
    assert site.reservation(name).state is ReservationState.ACTIVE


def test_how_long_something_may_still_be_carried_out_is_the_configurations(buyer, oscars):
    site = buyer(settle_us=60 * S)
    oscars.faults = Faults(only="POST /protected/l2vpn/new", times=1, drop="before")
    site.promised(GIGABIT, START, END)
    site.pass_to(START_US + 50 * S)
    assert sum("/new" in asked for asked in oscars.requests) == 1
    site.pass_to(START_US + 100 * S)
    assert sum("/new" in asked for asked in oscars.requests) == 2


def test_a_topology_that_is_read_anew_every_five_minutes_makes_nothing_twice_and_nothing_fail(buyer, oscars):
    site = buyer()
    oscars.rules.refresh_every_s, oscars.rules.refresh_s = 300, 20
    names = [site.promised(GIGABIT, START + k * 2_000 * S, END + k * 2_000 * S) for k in range(2)]
    site.pass_to(START + 10 * S)
    assert site.reservation(names[0]).state is ReservationState.ACTIVE
    assert len(oscars.oscars.created) == len(set(oscars.oscars.created)) <= 2
    site.pass_to(START + 2_010 * S)
    assert site.reservation(names[1]).state is ReservationState.ACTIVE


def token(**said):
    """A JSON web token that says something of itself; nobody has signed it."""
    body = base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip("=")
    return f"e30.{body}.x"


@pytest.mark.parametrize(
    ("bad", "why", "cure"),
    [
        ("wrong", "401, the token is not accepted", "put a new one"),
        (token(exp=1_700_000_000, groups=["svc_oscars_user"]), "it has ended at 2023-11-14T22:13:20Z", "put a new one"),
        (token(exp=2_000_000_000), "OSCARS finds no groups in it", "claim groups"),
        (token(exp=2_000_000_000, groups=["others"]), "403, the token does not allow this", "claim groups"),
    ],
)
def test_credentials_are_a_trouble_of_their_own_with_its_cure_until_they_are_good(buyer, oscars, bad, why, cure):
    sent = [bad]
    site = buyer(token=type(of(""))(lambda: sent[0]))
    name = site.promised(GIGABIT, START, END)
    site.pass_to(START_US + 60 * S)
    (denied,) = site.told("provider.denied")
    assert (why in denied.fields["error"], cure in denied.fields["cure"]) == (True, True), denied.fields
    found = [
        t for t in troubles(site.state.site, site.value, frozenset(), site.clock.instant()) if t.circuit == CIRCUIT
    ]
    assert [(t.kind, why in t.text) for t in found if t.kind is TroubleKind.CREDENTIALS] == [("credentials", True)]
    assert why in site.reservation(name).reason
    assert bad not in repr(site.value.reported.providers)
    sent[0] = TOKEN
    site.pass_to(START_US + 130 * S)
    assert (site.value.reported.providers, site.reservation(name).reason) == ({}, "")
    assert len(site.told("provider.recovered")) == 1
    assert len(reserved(oscars)) == 1


def test_what_is_refused_says_what_the_provider_believes_to_be_free(buyer, oscars):
    site = buyer()
    oscars.rules.ports_mbps = {A_END.port: 500}
    name = site.promised(GIGABIT, START, END)
    site.pass_to(START_US + 4 * S)
    why = site.reservation(name).reason
    assert "500 Mbit/s to be free at that time; it holds nothing" in why
    assert why.count(A_END.port) == 1


def test_what_reserves_less_than_it_says_is_active_and_not_called_guaranteed(buyer, oscars):
    site = buyer()
    name = site.promised(GIGABIT, START, END)
    site.pass_to(START_US + 4 * S)
    assert site.use_cases.not_guaranteed([site.reservation(name)]) == ((),)
    asked = oscars.oscars.rows[0].asked
    asked.pipes = tuple((*pipe[:3], ()) for pipe in asked.pipes)
    site.restart()
    site.pass_to(START + 2 * S)
    assert site.reservation(name).state is ReservationState.ACTIVE
    ((lacking,),) = site.use_cases.not_guaranteed([site.reservation(name)])
    assert lacking == f"{CIRCUIT}: nothing is reserved between chic-cr6 and nash-cr6"
    assert len(site.told("provider.lacks")) == 1


def test_a_part_of_an_nsi_connection_that_has_less_is_not_called_guaranteed(nsi_buyer, nsi):
    nsi.rules.segment_mbps = 400
    name = nsi_buyer.promised(GIGABIT, START, END)
    nsi_buyer.pass_to(START_US + 20 * S)
    ((lacking,),) = nsi_buyer.use_cases.not_guaranteed([nsi_buyer.reservation(name)])
    assert lacking.startswith(f"{CIRCUIT}: 400 in urn:ogf:network:north.example")


def test_what_is_bought_through_nsi_is_built_at_its_begin_and_terminated_at_its_end(nsi_buyer, nsi):
    site = nsi_buyer
    name = site.promised(GIGABIT, START, END)
    site.pass_to(START - 310 * S)
    assert [p.state for p in site.bought()] == [PurchaseState.RESERVED]
    assert not any("provision" in asked for asked in nsi.requests)
    site.pass_to(START)
    assert site.reservation(name).state is ReservationState.ACTIVE
    site.restart()
    site.pass_to(END + 60 * S)
    assert site.reservation(name).state is ReservationState.EXPIRED
    assert (nsi.live(), len(nsi.rows)) == ([], 1)


def test_what_nsi_refuses_fails_with_the_aggregators_reason_and_holds_nothing(nsi_buyer, nsi):
    nsi.rules.port_mbps = 500
    name = nsi_buyer.promised(GIGABIT, START, END)
    nsi_buyer.pass_to(START_US + 40 * S)
    assert nsi_buyer.reservation(name).state is ReservationState.FAILED
    assert "CAPACITY_UNAVAILABLE: 500 Mbit/s" in nsi_buyer.reservation(name).reason
    assert nsi.live() == []


def test_what_is_bought_through_nsi_cannot_grow_and_what_was_there_goes_on(nsi_buyer, nsi):
    first = nsi_buyer.promised(GIGABIT, START, END)
    nsi_buyer.pass_to(START_US + 20 * S)
    second = nsi_buyer.promised(GIGABIT, START, END)
    nsi_buyer.pass_to(START_US + 40 * S)
    states = [nsi_buyer.reservation(name).state for name in (first, second)]
    assert states == [ReservationState.COMMITTED, ReservationState.FAILED]
    nsi_buyer.pass_to(START)
    assert nsi_buyer.reservation(first).state is ReservationState.ACTIVE


@pytest.mark.parametrize("drop", ["before", "after"])
def test_an_nsi_answer_that_is_lost_is_looked_for_by_another_process_too(nsi_buyer, nsi, drop):
    nsi.faults = Faults(only="POST /reservations", times=1, drop=drop)
    nsi_buyer.promised(GIGABIT, START + 900 * S, END + 900 * S)
    nsi_buyer.pass_to(START_US + 4 * S)
    nsi_buyer.restart()
    nsi_buyer.pass_to(START_US + 500 * S)
    assert sum(asked == "POST /reservations" for asked in nsi.requests) == 1
    nsi_buyer.pass_to(START_US + 700 * S)
    assert len(nsi.live()) == 1


def two_ways(oscars_url):
    """The providers of two circuits, at one OSCARS."""

    def made(now_us):
        south = {
            "a_end": OscarsPort("chic-cr6", "chic-cr6:1/1/c10/1", 7),
            "z_end": OscarsPort("nash-cr6", Z_END.port, 7),
        }
        return {
            "north": OscarsProvider(settings(oscars_url, timeout_s=5.0), now_us),
            "south": OscarsProvider(settings(oscars_url, timeout_s=5.0, **south), now_us),
        }

    return made


@pytest.mark.parametrize("only_one", [False, True])
def test_a_backup_goes_another_way_at_the_provider_and_if_there_is_none_that_is_said(
    opened, oscars, oscars_url, only_one
):
    site = opened(two_ways(oscars_url), chile_illinois_2(10**10))
    if only_one:
        oscars.rules.ports_mbps = {"chic-cr6:1/1/b2": 1}
    name = site.promised(GIGABIT, START, END, constraints=Constraints(backup=True))
    site.pass_to(START_US + 60 * S)
    ways = [set(pipe[3]) - {"chic-cr6", "nash-cr6"} for row in oscars.oscars.rows for pipe in row.asked.pipes]
    assert len(ways) == 2
    (said,) = site.use_cases.not_guaranteed([site.reservation(name)])
    assert bool(ways[0] & ways[1]) == only_one
    assert bool(said) == only_one
    assert all("share chic-cr6:1/1/b1, nash-cr6:1/1/b1 at their provider" in why for why in said)


def test_what_is_there_and_not_decided_is_given_up_said_and_waited_for(opened, nsi, nsi_url):
    def made(now_us):
        short = {"settle_us": 60 * S, "deploy_us": 30 * S}
        return {CIRCUIT: NsiProvider(nsi_settings(nsi_url, timeout_s=5.0, **short), now_us)}

    site, nsi.rules.decide_s = opened(made), 86_400
    name = site.promised(GIGABIT, START, END)
    site.pass_to(START_US + 100 * S)
    (said,) = site.told("provider.given_up")
    assert said.fields["why"] == "it is there, and nobody has decided on it"
    assert (len(nsi.creates), site.told("provider.failed")) == (1, [])
    site.pass_to(START_US + 260 * S)
    (failed,) = site.told("provider.failed")
    assert "c0ffee0001 is still asked" in failed.fields["error"]
    assert "c0ffee0001 is still asked" in site.reservation(name).reason
    assert len(nsi.creates) == 1
    nsi.requests.clear()
    site.pass_to(START_US + 320 * S)
    assert 1 <= len(nsi.requests) <= 3
    nsi.rules.decide_s = 4
    site.pass_to(START + 30 * S)
    assert site.reservation(name).state is ReservationState.ACTIVE
    assert [row.connection_id for row in nsi.live()] == ["c0ffee0002"]
    assert len(site.told("provider.recovered")) == 1


class _Stuck(StaticProvider):
    """A provider that does not answer before it is let go."""

    def __init__(self):
        super().__init__()
        self.asked, self.let_go = threading.Event(), threading.Event()

    @property
    def terms(self):
        return Terms(lead_us=S, tail_us=0, min_duration_us=1, gap_us=1)

    def reserve(self, name, period, apart=frozenset()):
        self.asked.set()
        return self.let_go.wait(60)


def test_a_provider_that_does_not_answer_keeps_nobody_else_from_buying(opened, nsi, nsi_url):
    stuck = _Stuck()
    site = opened(
        lambda now_us: {"north": stuck, "south": NsiProvider(nsi_settings(nsi_url, timeout_s=5.0), now_us)},
        chile_illinois_2(10**10),
    )
    site.promised(GIGABIT, START, END, constraints=Constraints(include=("north",)))
    hung = threading.Thread(target=site.buying["north"].step)
    hung.start()
    assert stuck.asked.wait(60)
    other = site.promised(GIGABIT, START, END, constraints=Constraints(include=("south",)))
    for _ in range(10):
        site.clock.now_us += 2 * S
        site.buying["south"].step()
    assert [p.state for p in site.bought("south")] == [PurchaseState.RESERVED]
    assert site.reservation(other).state is ReservationState.COMMITTED
    assert hung.is_alive()
    stuck.let_go.set()
    hung.join()
