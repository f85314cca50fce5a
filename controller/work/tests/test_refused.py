"""What a provider refuses: who needs it is told at once, unless something of ours may be in the way."""

import pytest

from controller.plan.lifecycle import ReservationState
from controller.plan.purchases import PurchaseState, Terms
from controller.providers.errors import AnswerLost, ProviderRefused
from controller.providers.provider import CircuitStatus
from controller.providers.static import StaticProvider
from controller.tests.fakes import START_US
from controller.work.tests.buying_site import CIRCUIT, S

START, END = START_US + 900 * S, START_US + 1_500 * S
GIGABIT = 10**9


class OneAtATime(StaticProvider):
    """A provider with room for one purchase; while it loses answers, it carries out later what it was asked."""

    def __init__(self):
        super().__init__()
        self.room_bps, self.loses, self.asked, self.there, self.late = 5 * GIGABIT, False, [], {}, {}

    @property
    def terms(self):
        return Terms(lead_us=10 * S, tail_us=0, min_duration_us=60 * S, gap_us=0, settle_us=60 * S)

    def reserve(self, name, period, apart=frozenset()):
        self.asked.append(name)
        if self.there or period.rate_bps > self.room_bps:
            raise ProviderRefused(name, "no room")
        if self.loses:
            self.late[name] = period
            raise AnswerLost("a purchase", "not answered")
        self.there[name] = period
        return True

    def release(self, name):
        self.there.pop(name, None)
        return True

    def status(self, name):
        if name in self.there:
            return CircuitStatus(PurchaseState.RESERVED, self.there[name])
        return CircuitStatus(PurchaseState.FAILED, None, "not there")


@pytest.fixture
def seller():
    """Who sells the circuit."""
    return OneAtATime()


def is_refused_at_once(site, seller):
    """Promise more than there is, and return whether that was asked for once and has failed."""
    asked = len(seller.asked)
    name = site.promised(6 * GIGABIT, START, END)
    site.pass_to(site.clock.now_us + 10 * S)
    return (site.reservation(name).state, len(seller.asked) - asked) == (ReservationState.FAILED, 1)


def test_who_is_refused_after_somebody_else_was_is_told_as_soon(site, seller):
    for _ in range(3):
        assert is_refused_at_once(site, seller)


def test_who_is_refused_after_somebody_elses_release_is_told_as_soon(site, seller):
    name = site.promised(GIGABIT, START, END)
    site.pass_to(START_US + 10 * S)
    site.use_cases.release(name)
    site.pass_to(START_US + 20 * S)
    assert [p.state for p in site.value.wished.purchases[CIRCUIT].values()] == [PurchaseState.DROPPED]
    assert is_refused_at_once(site, seller)


@pytest.mark.parametrize("dies", [False, True])
def test_who_is_refused_for_what_turns_up_late_is_asked_for_again_and_seldom(site, seller, dies):
    seller.loses = True
    lost = site.promised(GIGABIT, START, END)
    site.pass_to(START_US + 2 * S)
    site.use_cases.release(lost)
    site.pass_to(START_US + 4 * S)
    if dies:
        site.restart()
        site.pass_to(START_US + 6 * S)
    seller.loses, seller.there = False, seller.late
    name = site.promised(GIGABIT, START, END)
    site.pass_to(START_US + 120 * S)
    assert site.reservation(name).state is ReservationState.COMMITTED
    assert [p.state for p in site.bought()] == [PurchaseState.RESERVED]
    assert len(seller.asked) < 8
