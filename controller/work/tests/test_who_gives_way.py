"""Whose promise gives way when a circuit cannot grow: that of who wanted more, and nobody else's."""

from dataclasses import replace

import pytest

from controller.plan.admission import Request
from controller.plan.ledger import Created
from controller.plan.lifecycle import ReservationState
from controller.plan.purchases import PurchaseState
from controller.providers.nsi import NsiProvider
from controller.providers.oscars import OscarsProvider
from controller.providers.tests.buying import A_END, settings
from controller.providers.tests.fake_oscars import Faults
from controller.providers.tests.test_contract import nsi_settings
from controller.tests.fakes import START_US
from controller.work.tests.buying_site import CIRCUIT, BuyingSite, S
from topology.protocol import FlowClass

START, END = START_US + 900 * S, START_US + 1_500 * S
GIGABIT = 10**9
COMMITTED, ACTIVE, FAILED = ReservationState.COMMITTED, ReservationState.ACTIVE, ReservationState.FAILED


@pytest.fixture
def nsi_site(nsi, nsi_url):
    """A site that buys what can grow no more."""
    one = BuyingSite(lambda now_us: {CIRCUIT: NsiProvider(nsi_settings(nsi_url, timeout_s=5.0), now_us)})
    nsi.clock = lambda: one.clock.now_us / S
    yield one
    one.close()


@pytest.fixture
def oscars_site(oscars, oscars_url):
    """A site that buys of OSCARS, which has 2 Gbit/s left, and sells no more."""
    one = BuyingSite(lambda now_us: {CIRCUIT: OscarsProvider(settings(oscars_url, timeout_s=5.0), now_us)})
    oscars.clock = lambda: one.clock.now_us / S
    before, oscars.rules.ports_mbps = oscars.rules.ports_mbps, {A_END.port: 2_500}
    yield one
    oscars.rules.ports_mbps = before
    one.close()


def changed(site, name, **fields):
    """A reservation as somebody changes it."""

    def asked(known):
        taken = (known.flow_class, known.rate_bps, known.start_us, known.end_us, known.constraints)
        request = Request(known.a_end, known.z_end, *taken, known.description, known.selector, known.owner)
        return replace(request, **fields)

    site.use_cases.change(name, asked, site.reservation(name).version).saved.result()


def two_of_a_gigabit(site, by_us=START_US + 30 * S):
    """The names of an older reservation and of a newer one, both bought."""
    older = site.promised(GIGABIT, START, END)
    newer = site.promised(GIGABIT, START, END)
    site.pass_to(by_us)
    assert len(site.bought()) == 1
    return older, newer


def rates(site, *names):
    """The state and the rate of each."""
    return [(r.state, r.rate_bps) for r in map(site.reservation, names)]


@pytest.mark.parametrize("seller", ["nsi_site", "oscars_site"])
@pytest.mark.parametrize(("at_us", "state"), [(START_US + 30 * S, COMMITTED), (START + 30 * S, ACTIVE)])
def test_a_raise_that_cannot_be_bought_is_put_back_and_hurts_nobody(request, seller, at_us, state):
    site = request.getfixturevalue(seller)
    older, newer = two_of_a_gigabit(site)
    site.pass_to(at_us)
    assert rates(site, older, newer) == [(state, GIGABIT)] * 2
    bought = site.bought()
    changed(site, older, rate_bps=4 * GIGABIT, description="more")
    site.pass_to(at_us + 60 * S)
    assert rates(site, older, newer) == [(state, GIGABIT)] * 2
    assert [p.period.rate_bps for p in site.bought()] == [p.period.rate_bps for p in bought]
    assert site.reservation(older).description == "more"
    (said,) = site.told("reservation.put_back")
    assert (said.fields["reservation"], CIRCUIT in said.fields["why"]) == (older, True)
    assert site.told("reservation.failed") == []
    site.pass_to(START + 120 * S)
    assert rates(site, older, newer) == [(ACTIVE, GIGABIT)] * 2


@pytest.mark.parametrize("is_restarted", [False, True], ids=["it goes on", "it is restarted"])
def test_an_older_hold_that_is_committed_last_is_what_fails(nsi_site, is_restarted):
    asked = Request("la-serena", "champaign", FlowClass.URGENT, GIGABIT, START, END)
    nsi_site.use_cases.hold(lambda _: asked, lambda now_us: Created("older", now_us, hold_us=600 * S))
    newer = nsi_site.promised(GIGABIT, START, END)
    nsi_site.pass_to(START_US + 30 * S)
    nsi_site.use_cases.commit("older").saved.result()
    if is_restarted:
        nsi_site.restart()
    nsi_site.pass_to(START_US + 60 * S)
    assert rates(nsi_site, newer, "older") == [(COMMITTED, GIGABIT), (FAILED, GIGABIT)]


def test_a_raise_that_comes_with_a_newcomer_is_put_back_and_the_newcomer_fails(nsi_site):
    older, newer = two_of_a_gigabit(nsi_site)
    changed(nsi_site, older, rate_bps=2 * GIGABIT)
    late = nsi_site.promised(GIGABIT, START, END)
    nsi_site.pass_to(START_US + 60 * S)
    assert rates(nsi_site, older, newer, late) == [(COMMITTED, GIGABIT), (COMMITTED, GIGABIT), (FAILED, GIGABIT)]


def test_a_raise_has_what_another_leaves(nsi_site):
    older, newer = two_of_a_gigabit(nsi_site)
    changed(nsi_site, newer, rate_bps=GIGABIT // 2)
    changed(nsi_site, older, rate_bps=GIGABIT + GIGABIT // 2)
    nsi_site.pass_to(START_US + 60 * S)
    assert rates(nsi_site, older, newer) == [(COMMITTED, GIGABIT + GIGABIT // 2), (COMMITTED, GIGABIT // 2)]


def test_what_was_given_back_at_that_time_does_not_keep_a_raise_from_being_put_back(nsi_site):
    released = nsi_site.promised(GIGABIT, START, END)
    nsi_site.pass_to(START_US + 30 * S)
    nsi_site.use_cases.release(released).saved.result()
    nsi_site.pass_to(START_US + 60 * S)
    older, newer = two_of_a_gigabit(nsi_site, START_US + 90 * S)
    assert PurchaseState.DROPPED in {p.state for p in nsi_site.value.wished.purchases[CIRCUIT].values()}
    changed(nsi_site, older, rate_bps=2 * GIGABIT)
    nsi_site.pass_to(START_US + 120 * S)
    assert rates(nsi_site, older, newer) == [(COMMITTED, GIGABIT)] * 2


def test_a_raise_is_put_back_while_the_provider_answers_nobody_for_a_time(nsi_site, nsi):
    older, newer = two_of_a_gigabit(nsi_site)
    nsi.faults = Faults(status=503)
    changed(nsi_site, older, rate_bps=2 * GIGABIT)
    nsi_site.pass_to(START_US + 120 * S)
    nsi.faults = Faults()
    nsi_site.pass_to(START_US + 240 * S)
    assert rates(nsi_site, older, newer) == [(COMMITTED, GIGABIT)] * 2


@pytest.mark.parametrize("raises", [(2,), (2, 4)], ids=["one raise", "two raises"])
def test_after_a_restart_a_raise_that_cannot_be_bought_hurts_nobody_else(nsi_site, raises):
    older, newer = two_of_a_gigabit(nsi_site)
    for gigabits in raises:
        changed(nsi_site, older, rate_bps=gigabits * GIGABIT)
        nsi_site.clock.now_us += 1
    nsi_site.restart()
    nsi_site.pass_to(START_US + 60 * S)
    assert rates(nsi_site, newer) == [(COMMITTED, GIGABIT)]


def test_after_a_restart_a_raise_that_cannot_be_bought_is_put_back_and_a_newcomer_fails(nsi_site):
    older, newer = two_of_a_gigabit(nsi_site)
    changed(nsi_site, older, rate_bps=2 * GIGABIT)
    nsi_site.clock.now_us += 1
    late = nsi_site.promised(GIGABIT, START, END)
    nsi_site.restart()
    nsi_site.pass_to(START_US + 60 * S)
    assert rates(nsi_site, older, newer, late) == [(COMMITTED, GIGABIT), (COMMITTED, GIGABIT), (FAILED, GIGABIT)]
    assert nsi_site.reservation(older).reason.startswith("its change was put back: ")


def test_a_raise_with_a_later_start_is_put_back_also_when_the_old_start_is_near(nsi_site):
    name = nsi_site.promised(GIGABIT, START, END)
    nsi_site.pass_to(START - 60 * S)
    changed(nsi_site, name, rate_bps=4 * GIGABIT, start_us=START + 120 * S)
    nsi_site.pass_to(START + 180 * S)
    assert rates(nsi_site, name) == [(ACTIVE, GIGABIT)], nsi_site.reservation(name).reason
    assert nsi_site.told("reservation.failed") == []


def test_what_is_refused_and_nobody_gives_way_for_is_asked_again_after_a_minute(nsi, nsi_url):
    steps = iter([10**6, 10**6, GIGABIT])  # made twice until it runs, and once more for the restart
    site = BuyingSite(
        lambda now_us: {
            CIRCUIT: NsiProvider(nsi_settings(nsi_url, timeout_s=5.0, rate_step_bps=next(steps)), now_us),
        }
    )
    nsi.clock = lambda: site.clock.now_us / S
    try:
        older, newer = two_of_a_gigabit(site)
        site.restart()
        site.pass_to(START_US + 90 * S)
        assert rates(site, older, newer) == [(COMMITTED, GIGABIT)] * 2
        assert len(site.told("provider.refused")) == 1
        site.pass_to(START_US + 100 * S)
        assert len(site.told("provider.refused")) == 2
        late = site.promised(9 * GIGABIT // 10, START, END)
        site.pass_to(site.clock.now_us + 4 * S)
        assert rates(site, older, newer, late) == [*[(COMMITTED, GIGABIT)] * 2, (FAILED, 9 * GIGABIT // 10)]
    finally:
        site.close()
