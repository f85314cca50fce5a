"""What is promised as late as it may be is carried from its start: our own looks and waits are in the lead."""

import pytest

from controller.plan.admission import Request
from controller.plan.booking_lead import POLL_US
from controller.plan.ledger import Created
from controller.plan.lifecycle import ReservationState
from controller.plan.purchases import PurchaseState, Terms
from controller.plan.reservations import NO_CONSTRAINTS, Constraints
from controller.providers.provider import CircuitStatus
from controller.providers.static import StaticProvider
from controller.tests.fakes import START_US
from controller.work.tests.buying_site import CIRCUIT, BuyingSite, S
from mininet_tests.testing.networks import chile_illinois_2
from topology.protocol import FlowClass

BUILDING_US = 50 * S
TERMS = Terms(30 * S + BUILDING_US, 0, 900 * S, S, tick_us=S, begin_notice_us=30 * S)
BACKUP = Constraints(backup=True)


class Builder(StaticProvider):
    """A provider that takes all the time that it may, and does not say over which way."""

    def __init__(self, now_us):
        super().__init__()
        self.now_us, self.sold = now_us, {}

    @property
    def terms(self):
        return TERMS

    def reserve(self, name, period, apart=frozenset()):
        self.sold[name] = period
        return True

    def change(self, name, period):
        self.sold[name] = period
        return period

    def status(self, name):
        period = self.sold[name]
        begun, built = period.start_us <= self.now_us(), period.start_us + BUILDING_US <= self.now_us()
        state = PurchaseState.UP if built else PurchaseState.DEPLOYING if begun else PurchaseState.RESERVED
        return CircuitStatus(state, period)


@pytest.fixture
def opened():
    """Makes a site that buys some circuits."""
    sites = []

    def made(circuits, network=None):
        site = BuyingSite(lambda now_us: {name: Builder(now_us) for name in circuits}, network)
        sites.append(site)
        return site

    yield made
    for site in sites:
        site.close()


def promised_at_the_last_moment(site, ahead_us, constraints):
    """A hold that is committed just before it lapses: when it begins."""
    start_us = START_US + ahead_us
    request = Request("la-serena", "champaign", FlowClass.URGENT, 10**9, start_us, start_us + 600 * S, constraints)
    held = site.use_cases.hold(lambda _: request, lambda now_us: Created("r", now_us, hold_us=3_600 * S)).value
    site.pass_to(held.hold_until_us - 1)
    site.use_cases.commit("r").saved.result()
    return start_us


@pytest.mark.parametrize("ahead_us", range(199_000_000, 201_000_000, 700_000))
@pytest.mark.parametrize("constraints", [NO_CONSTRAINTS, BACKUP])
def test_what_is_committed_at_the_last_moment_is_carried_from_its_start(opened, ahead_us, constraints):
    site = opened([CIRCUIT]) if constraints is NO_CONSTRAINTS else opened(["north", "south"], chile_illinois_2(10**10))
    start_us = promised_at_the_last_moment(site, ahead_us, constraints)
    seen_us = site.clock.now_us + POLL_US
    then_us = seen_us + (start_us - seen_us) % POLL_US + 1  # the last look is as long before the start as can be
    for look_us in (seen_us, *range(then_us, start_us, POLL_US)):
        site.clock.now_us = look_us
        site.step()
    site.clock.now_us = start_us
    site.converge()
    assert site.reservation("r").state is ReservationState.ACTIVE, site.reservation("r").reason
    assert {p.state for name in site.buying for p in site.bought(name)} == {PurchaseState.UP}
    assert all(site.bought(name) for name in site.buying)


def test_the_way_of_another_circuit_is_not_waited_for_for_ever(opened):
    site = opened(["north", "south"], chile_illinois_2(10**10))
    promised_at_the_last_moment(site, 200 * S, BACKUP)
    site.pass_to(site.clock.now_us + 30 * S)
    assert [len(site.bought(name)) for name in ("north", "south")] == [1, 1]


def test_what_a_reservation_has_waited_for_is_forgotten_with_it(opened):
    site = opened(["north", "south"], chile_illinois_2(10**10))
    start_us = promised_at_the_last_moment(site, 200 * S, BACKUP)
    site.step()
    assert any(buying._apart_since_us for buying in site.buying.values())
    site.pass_to(start_us + 600 * S + 10 * S)
    assert not any(buying._apart_since_us for buying in site.buying.values())
