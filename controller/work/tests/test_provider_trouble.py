"""What a provider does not do: it is told once, taken back, and keeps nobody from what else is to be done there."""

import pytest

from controller.plan.lifecycle import ReservationState
from controller.plan.purchases import PurchaseState, Terms
from controller.providers.errors import ProviderError, ProviderUnavailable
from controller.providers.provider import CircuitStatus
from controller.providers.static import StaticProvider
from controller.tests.fakes import START_US
from controller.work.tests.buying_site import CIRCUIT, S

START, END = START_US + 900 * S, START_US + 1_500 * S
GIGABIT = 10**9


class BusySeller(StaticProvider):
    """A provider that sells at once, and changes nothing while it is busy."""

    def __init__(self):
        super().__init__()
        self.sold, self.state, self.is_busy, self.changes = {}, PurchaseState.RESERVED, False, 0
        self.away = None

    @property
    def terms(self):
        return Terms(lead_us=10 * S, tail_us=0, min_duration_us=60 * S, gap_us=0)

    def reserve(self, name, period, apart=frozenset()):
        self.sold[name] = period
        return True

    def change(self, name, period):
        self.changes += 1
        if self.is_busy:
            raise ProviderUnavailable("a change", "busy")
        self.sold[name] = period
        return period

    def release(self, name):
        return True

    def status(self, name):
        if self.away is not None:
            raise self.away
        return CircuitStatus(self.state, self.sold[name])


def away(method):
    """Returns what tells that its provider is away, with the name that it is asked about."""

    def asked(name):
        raise ProviderUnavailable(f"{method} {name}", "no route")

    return asked


@pytest.fixture
def seller():
    """Who sells the circuit."""
    return BusySeller()


def test_what_is_bought_is_looked_at_while_a_change_of_it_fails(site, seller):
    name = site.promised(GIGABIT, START, END)
    site.pass_to(START - 60 * S)
    seller.state, seller.is_busy = PurchaseState.DEPLOYING, True
    site.promised(GIGABIT, START + 300 * S, END)
    site.pass_to(START)
    seller.state = PurchaseState.UP
    site.pass_to(START + 4 * S)
    assert site.reservation(name).state is ReservationState.ACTIVE
    site.pass_to(START + 120 * S)
    assert seller.changes < 10  # of ninety steps: it waits longer and longer
    seller.state = PurchaseState.FAILED
    site.pass_to(START + 124 * S)
    assert site.reservation(name).state is ReservationState.FAILED


@pytest.mark.parametrize("is_needed", [True, False])
def test_a_look_that_works_does_not_end_the_trouble_with_a_change(site, seller, is_needed):
    site.promised(GIGABIT, START, END)
    site.step()
    seller.is_busy = True
    more = site.promised(GIGABIT, START, END)
    site.pass_to(START_US + 60 * S)
    assert (len(site.told("provider.failed")), site.told("provider.recovered")) == (1, [])
    if is_needed:
        seller.is_busy = False
    else:
        site.use_cases.release(more)
    site.pass_to(START_US + 130 * S)
    assert len(site.told("provider.recovered")) == 1
    assert site.value.reported.providers == {}


def test_no_more_than_both_rates_is_counted_on_while_a_change_to_less_fails(site, seller):
    seller.state = PurchaseState.UP
    site.promised(GIGABIT, START, END)
    spare = site.promised(GIGABIT, START, END)
    site.pass_to(START + 10 * S)
    both_bps = site.value.wished.bought_bps(CIRCUIT, site.clock.now_us)
    seller.is_busy = True
    site.use_cases.release(spare)
    for _ in range(20):
        site.pass_to(site.clock.now_us + 2 * S)
        assert site.value.wished.bought_bps(CIRCUIT, site.clock.now_us) < 0.6 * both_bps
    seller.is_busy = False
    site.pass_to(START + 130 * S)
    assert site.value.wished.rebuilding == {}


@pytest.mark.parametrize("dies", [False, True])
def test_a_trouble_that_is_over_is_no_reservations_reason_any_more_whoever_wrote_it(site, seller, dies):
    name, other = (site.promised(GIGABIT, START, END) for _ in range(2))
    why = "cannot be kept: less is there"
    with site.state.changed:
        site.value.wished.ledger.note(other, why, site.clock.now_us)
    site.step()
    seller.away = ProviderUnavailable("a look", "no route")
    site.pass_to(START_US + 10 * S)
    assert "no route" in site.reservation(name).reason
    seller.away = None
    if dies:
        site.restart()
    site.pass_to(START_US + 60 * S)
    assert (site.reservation(name).reason, site.reservation(other).reason) == ("", why)
    assert len(site.told("provider.recovered")) == (not dies)


def test_a_trouble_or_a_failure_without_a_reason_says_that_there_is_none(site, seller):
    name = site.promised(GIGABIT, START, END)
    site.step()
    seller.away = ProviderError()
    site.pass_to(START_US + 10 * S)
    assert site.reservation(name).reason == f"{CIRCUIT}: its provider gives no reason"
    seller.away, seller.state = None, PurchaseState.FAILED
    site.pass_to(START + 10 * S)
    assert site.reservation(name).state is ReservationState.FAILED
    assert site.reservation(name).reason == f"{CIRCUIT}: its provider gives no reason"


def test_a_provider_that_is_away_is_told_once_of_each_question_however_many_purchases_it_has(site, seller, monkeypatch):
    names = iter(["CXAA", "DXBB", "FXCC"])
    monkeypatch.setattr(seller, "new_name", lambda _: next(names))
    uses = [(start, start + 600 * S) for start in (START, START + 7_200 * S, START + 14_400 * S)]
    promised = [site.promised(GIGABIT, *use) for use in uses]
    site.step()
    monkeypatch.setattr(seller, "status", away("GET"))
    site.pass_to(START_US + 10 * S)
    monkeypatch.setattr(seller, "release", away("DELETE"))
    site.use_cases.release(promised.pop())
    site.pass_to(START_US + 600 * S)
    told = [event.fields["error"] for event in site.told("provider.failed")]
    assert [error.split()[0] for error in told] == ["GET", "DELETE"]
    assert site.reservation(promised[0]).reason == f"{CIRCUIT}: {site.value.reported.providers[CIRCUIT].what}"


def test_what_cannot_be_written_down_is_told_to_nobody_as_asked(site):
    site.promised(GIGABIT, START, END)
    site.database.close()
    for _ in range(5):
        site.purchasing.step()
    assert site.told("provider.asked") == []
