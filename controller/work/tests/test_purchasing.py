"""From a reservation to a circuit that carries it: the whole controller on a stand-in for OSCARS, over real HTTP."""

from dataclasses import replace

import pytest

from controller.plan.admission import Request
from controller.plan.ledger import Created
from controller.plan.lifecycle import ReservationState
from controller.plan.maintenance import Maintenance
from controller.plan.purchases import Period, Purchase, PurchaseState
from controller.providers.oscars import OscarsProvider
from controller.providers.oscars_values import OscarsPort
from controller.providers.tests.buying import settings
from controller.providers.tests.fake_oscars import Faults
from controller.tests.fakes import START_US, FakeSite
from controller.work.tests.buying_site import CIRCUIT, BuyingSite, S
from topology.network import Hop
from topology.protocol import FlowClass

OTHER_A = OscarsPort("chic-cr6", "chic-cr6:1/1/c10/1", 7)
OTHER_Z = OscarsPort("nash-cr6", "nash-cr6:1/1/c17/2", 7)
START, END = START_US + 600 * S, START_US + 1200 * S


class OscarsSite(BuyingSite):
    """A site whose circuit is bought of OSCARS."""

    def __init__(self, url, **other):
        self.url = url
        super().__init__(lambda now_us: {CIRCUIT: OscarsProvider(settings(url, timeout_s=5.0, **other), now_us)})

    def promised(self, rate_bps=10**9, start_us=START, end_us=END, ends=("la-serena", "champaign")):
        """A committed reservation's name."""
        return super().promised(rate_bps, start_us, end_us, ends)


@pytest.fixture
def site(oscars, oscars_url):
    """A site that buys of it."""
    one = OscarsSite(oscars_url)
    oscars.clock = lambda: one.clock.now_us / S
    yield one
    one.close()


def test_a_reservation_is_bought_ahead_and_active_only_once_the_circuit_is_deployed(site, oscars):
    name = site.promised()
    site.pass_to(START_US + 10 * S)
    (purchase,) = site.bought()
    assert purchase.period.start_us <= START - 150 * S
    assert purchase.period.rate_bps >= 10**9 * 100 // 94
    assert site.reservation(name).state is ReservationState.COMMITTED
    site.pass_to(START - 2 * S)
    assert site.bought()[0].state is PurchaseState.UP
    site.pass_to(START)
    assert site.reservation(name).state is ReservationState.ACTIVE
    site.pass_to(END)
    assert site.reservation(name).state is ReservationState.EXPIRED


def test_a_hold_that_is_committed_at_its_last_moment_has_its_circuit_at_its_start(site, oscars):
    oscars.rules.routers_s = 110
    request = Request("la-serena", "champaign", FlowClass.URGENT, 10**9, START_US + 180 * S, END)
    held = site.use_cases.hold(lambda _: request, lambda now_us: Created("r", now_us))
    site.pass_to(held.value.hold_until_us - S)
    site.use_cases.commit("r").saved.result()
    site.pass_to(request.start_us)
    assert site.reservation("r").state is ReservationState.ACTIVE


def test_hosts_may_not_send_before_the_circuit_is_deployed(site, oscars):
    oscars.rules.routers_s = 300
    try:
        name = site.promised(ends=("base20", "arch"))
        site.pass_to(START + 20 * S)
        waiting = site.reservation(name)
        assert (waiting.state, waiting.reason.startswith("chile-illinois: ")) == (ReservationState.PROVISIONING, True)
        assert not any(state.acts_as_granted for state in site.value.reported.hosts.values())
        site.pass_to(START + 300 * S)
        assert site.reservation(name).state is ReservationState.ACTIVE
        assert [e.flow.host for e in site.value.reported.hosts["base20"].acts_as_granted] == ["base20"]
    finally:
        oscars.rules.routers_s = 20


def test_many_short_reservations_live_in_one_circuit(site, oscars):
    for k in range(4):
        site.promised(start_us=START + k * 60 * S, end_us=START + (k + 1) * 60 * S)
    site.pass_to(START_US + 10 * S)
    assert len(site.bought()) == len(oscars.oscars.rows) == 1


def test_a_second_reservation_at_the_same_time_makes_the_circuit_wider_and_its_release_narrower(site, oscars):
    site.promised(10**9)
    site.pass_to(START_US + 4 * S)
    narrow_bps = site.bought()[0].period.rate_bps
    second = site.promised(2 * 10**9)
    site.pass_to(START_US + 8 * S)
    assert 2.9 < site.bought()[0].period.rate_bps / narrow_bps < 3.1
    site.use_cases.release(second)
    site.pass_to(START_US + 12 * S)
    assert site.bought()[0].period.rate_bps == narrow_bps


def test_what_the_provider_refuses_fails_with_its_reason_and_frees_the_calendar(site, oscars):
    oscars.rules.ports_mbps = {"chic-cr6:1/1/c9/1": 500}
    try:
        name = site.promised(10**9)
        site.pass_to(START_US + 4 * S)
        failed = site.reservation(name)
        assert (failed.state, "500 free" in failed.reason) == (ReservationState.FAILED, True), failed.reason
        site.pass_to(START_US + 8 * S)
        assert site.bought() == []
        assert site.value.wished.ledger.calendar.free_bps(Hop("ls1", "ch1"), START) == 9_388_000_000
    finally:
        oscars.rules.ports_mbps = {}


def test_a_name_that_somebody_else_has_at_the_provider_fails_nobody(site, oscars, oscars_url, monkeypatch):
    other = OscarsProvider(settings(oscars_url, a_end=OTHER_A, z_end=OTHER_Z), site.clock)
    other.reserve("CXA5", Period(START_US + 3600 * S, START_US + 7200 * S, 10**9))
    other.close()
    names = iter(["CXA5", *(f"DXA{number}" for number in range(2, 10))])
    monkeypatch.setattr(site.providers[CIRCUIT], "new_name", lambda _: next(names))
    name = site.promised()
    site.pass_to(START)
    assert site.reservation(name).state is ReservationState.ACTIVE, site.reservation(name).reason
    assert [purchase.name for purchase in site.bought()] == ["DXA2"]


def test_no_two_circuits_have_a_purchase_of_one_name(site, monkeypatch):
    names = iter(["CXA5", "CXA5", "DXA2"])
    monkeypatch.setattr(site.providers[CIRCUIT], "new_name", lambda _: next(names))
    elsewhere = Purchase("CXA5", Period(START, END, 10**9), PurchaseState.UP)
    with site.state.changed:
        purchases = {**site.state.wished.purchases, "south": {elsewhere.name: elsewhere}}
        site.state.put(wished=replace(site.state.wished, purchases=purchases))
    site.promised()
    site.pass_to(START_US + 10 * S)
    assert [purchase.name for purchase in site.bought()] == ["DXA2"]


def test_a_refusal_fails_only_what_it_is_about(site, oscars):
    oscars.rules.ports_mbps = {"chic-cr6:1/1/c9/1": 2_000}
    try:
        refused = site.promised(5 * 10**9)
        later = site.promised(10**9, start_us=START + 86_400 * S, end_us=END + 86_400 * S)
        site.pass_to(START_US + 8 * S)
        assert site.reservation(refused).state is ReservationState.FAILED
        assert site.reservation(later).state is ReservationState.COMMITTED
        assert len(site.bought()) == 1
    finally:
        oscars.rules.ports_mbps = {}


def test_when_more_is_refused_what_was_bought_before_goes_on(site, oscars):
    first = site.promised(10**9)
    site.pass_to(START_US + 4 * S)
    oscars.rules.ports_mbps = {"chic-cr6:1/1/c9/1": 2_000}
    try:
        second = site.promised(5 * 10**9)
        site.pass_to(START_US + 12 * S)
        assert site.reservation(first).state is ReservationState.COMMITTED
        assert site.reservation(second).state is ReservationState.FAILED
        site.pass_to(START)
        assert site.reservation(first).state is ReservationState.ACTIVE
    finally:
        oscars.rules.ports_mbps = {}


def test_a_deployment_that_fails_shows_in_the_reservation(site, oscars):
    name = site.promised()
    site.pass_to(START_US + 4 * S)
    oscars.faults = Faults(fail_deployment=True)
    site.pass_to(START)
    assert site.reservation(name).state is ReservationState.FAILED
    assert "DEPLOY_FAILED" in site.reservation(name).reason


def test_a_provider_that_is_away_is_asked_again_and_the_reservation_says_so(site, oscars):
    oscars.faults = Faults(status=503)
    name = site.promised()
    site.pass_to(START_US + 4 * S)
    assert "503" in site.reservation(name).reason
    oscars.faults = Faults()
    site.pass_to(START_US + 8 * S)
    assert site.reservation(name).reason == ""
    site.pass_to(START)
    assert site.reservation(name).state is ReservationState.ACTIVE


def test_a_provider_that_is_away_takes_nobody_the_reason_that_he_has(site, oscars):
    oscars.faults = Faults(status=503)
    name, why = site.promised(), "cannot be kept: less is there"
    with site.state.changed:
        site.value.wished.ledger.note(name, why, site.clock.now_us)
    site.pass_to(START_US + 4 * S)
    assert site.reservation(name).reason == why
    oscars.faults = Faults()
    site.pass_to(START_US + 8 * S)
    assert site.reservation(name).reason == why


def reserved(oscars):
    """The names of what OSCARS has reserved."""
    oscars.oscars.now_s()
    return [row.asked.name for row in oscars.oscars.rows if row.phase == "RESERVED"]


@pytest.mark.parametrize("dies", [True, False])
def test_a_purchase_whose_answer_is_lost_is_looked_for_and_made_once(site, oscars, dies):
    oscars.faults = Faults(drop="after")
    name = site.promised()
    site.purchasing.step()  # bought, but the answer is lost
    assert [p.state for p in site.bought()] == [PurchaseState.ASKED]
    if dies:
        site.restart()
    oscars.faults = Faults()
    site.pass_to(START)
    assert len(oscars.oscars.created) == 1
    assert site.reservation(name).state is ReservationState.ACTIVE


def behind_the_lock(site, oscars):
    """A promise whose circuit is asked for while the routers are told of somebody else's, for a long time."""
    other = OscarsProvider(settings(site.url, a_end=OTHER_A, z_end=OTHER_Z), site.clock)
    other.reserve("CXX2", Period(START_US + 40 * S, START_US + 86_400 * S, 10**9))
    oscars.rules.routers_s = 250
    site.pass_to(START_US + 42 * S)
    name = site.promised(start_us=START + 600 * S, end_us=END + 600 * S)
    site.pass_to(START_US + 60 * S)
    assert [p.state for p in site.bought()] == [PurchaseState.ASKED]
    return name


def asked_for(oscars):
    """How often anything was bought."""
    return sum("/new" in asked for asked in oscars.requests)


def test_what_waits_for_the_lock_is_not_asked_for_twice(site, oscars):
    behind_the_lock(site, oscars)
    site.pass_to(START + 300 * S)
    assert asked_for(oscars) == 2  # the other's, and ours
    assert len(set(reserved(oscars))) == len(reserved(oscars)) == 2


def test_what_is_released_while_it_waits_for_the_lock_leaves_no_orphan(site, oscars):
    name = behind_the_lock(site, oscars)
    site.use_cases.release(name)
    site.pass_to(START_US + 80 * S)
    assert [p.state for p in site.value.wished.purchases[CIRCUIT].values()] == [PurchaseState.DROPPED]
    site.pass_to(START_US + 400 * S)
    assert len(oscars.oscars.created) == 2  # it did turn up
    assert reserved(oscars) == ["CXX2"]


def test_what_never_turns_up_is_bought_under_another_name_once_nothing_can_come_of_it(site, oscars):
    oscars.faults = Faults(only="POST /protected/l2vpn/new", times=1, drop="before")
    name = site.promised(start_us=START + 600 * S, end_us=END + 600 * S)
    site.pass_to(START_US + 290 * S)
    assert asked_for(oscars) == 1
    site.pass_to(START + 600 * S)
    assert asked_for(oscars) == 2
    assert site.reservation(name).state is ReservationState.ACTIVE


def test_one_purchase_that_is_answered_by_500_for_ever_does_not_stop_the_others(site, oscars):
    site.promised()
    site.pass_to(START_US + 4 * S)
    (stuck,) = reserved(oscars)
    oscars.faults = Faults(only=f"GET /api/l2vpn/get/{stuck}", status=500)
    later = site.promised(start_us=START + 86_400 * S, end_us=END + 86_400 * S)
    site.pass_to(START_US + 60 * S)
    assert len(reserved(oscars)) == 2
    assert site.reservation(later).state is ReservationState.COMMITTED
    assert sum(stuck in asked for asked in oscars.requests) < 12  # of thirty steps: it waits longer and longer


def test_a_circuit_that_the_provider_loses_before_its_begin_is_bought_again(site, oscars):
    name = site.promised()
    site.pass_to(START_US + 4 * S)
    oscars.oscars.rows.clear()
    site.pass_to(START)
    assert site.reservation(name).state is ReservationState.ACTIVE


def test_a_circuit_that_carries_is_not_given_up_for_a_404_of_what_stands_before_oscars(site, oscars):
    name = site.promised()
    site.pass_to(START + 20 * S)
    oscars.faults = Faults(only="GET /api/l2vpn/get", times=1, status=404, answer="<html>404 page not found</html>")
    site.pass_to(START + 30 * S)
    assert site.reservation(name).state is ReservationState.ACTIVE
    assert [asked for asked in oscars.requests if asked.startswith("DELETE")] == []


def test_an_announcement_draws_on_a_circuit_only_while_a_reservation_has_it(site, oscars):
    name = site.promised(ends=("la-serena", "champaign"))
    site.pass_to(START)
    assert site.reservation(name).state is ReservationState.ACTIVE
    assert site.value.desired.plan.links[Hop("ls1", "ch1")].wire_bps == site.bought()[0].period.rate_bps
    site.pass_to(END + 2 * S)
    assert site.value.desired.plan.links[Hop("ls1", "ch1")].wire_bps == 0


def test_a_switch_or_a_host_that_fails_shows_in_the_state_and_its_return_too():
    site = FakeSite(standing=())
    site.attach_all()
    site.converge()
    request = Request("base20", "arch", FlowClass.URGENT, 10**8, START_US + S, START_US + 100 * S)
    site.use_cases.hold(lambda _: request, lambda now_us: Created("r", now_us))
    site.use_cases.commit("r")
    site.clock.now_us = START_US + S
    site.converge()
    seen = [site.use_cases.reservation("r").state]
    site.reports.host_down("base20")
    site.converge()
    lost = site.use_cases.reservation("r")
    assert (lost.state, lost.reason) == (ReservationState.PROVISIONING, "base20: its agent is not connected")
    site.attach("base20")
    site.converge()
    seen.append(site.use_cases.reservation("r").state)
    site.switches.gone = True
    site.switch_reports.switch_down(1)
    site.converge()
    assert "is not connected" in site.use_cases.reservation("r").reason
    assert seen == [ReservationState.ACTIVE, ReservationState.ACTIVE]


def test_a_circuit_that_is_bought_carries_nothing_while_it_is_worked_on(site, oscars):
    for start_us, end_us in ((START, END), (END + 100 * S, END + 700 * S)):
        site.promised(start_us=start_us, end_us=end_us)
    splice = Maintenance("splice", CIRCUIT, END + 20 * S, END + 80 * S)
    planned = site.use_cases.maintaining.plan(lambda _: splice, only_look=False, force=False)
    planned.saved.result()
    assert planned.value.breaks == ()
    site.pass_to(END + 50 * S)
    assert [purchase.state for purchase in site.bought()] == [PurchaseState.UP]  # one for both
    assert site.value.desired.plan.links[Hop("ls1", "ch1")].wire_bps == 0
