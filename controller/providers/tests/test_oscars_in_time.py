"""The plan of purchases and OSCARS together, step by step through time: it is bought in time, once, and then left."""

from dataclasses import replace

import pytest

from controller.plan.purchases import Buy, Period, Purchase, PurchaseChange, PurchaseState, actions, periods
from controller.providers.errors import ProviderRefused, ProviderUnavailable
from controller.providers.oscars import OscarsProvider
from controller.providers.oscars_settings import OSCARS, OscarsSection
from controller.providers.tests.buying import A_END, GIGABIT, LATER, SECOND, START, Z_END, at_first, settings, until_up
from controller.providers.tests.fake_oscars import TOKEN, Faults
from topology.problems import Problems

NAMES = ("CXA5", "CXA6", "CXA7", "CXA9")


def after(start_s, end_s, rate_bps=GIGABIT):
    """A use, counted from the start of the test."""
    return Period(START + start_s * SECOND, START + end_s * SECOND, rate_bps)


class Buyer:
    """Does what the plan says, and keeps what OSCARS then shows."""

    def __init__(self, fake, provider):
        self.fake, self.provider = fake, provider
        self.bought: dict[str, Purchase] = {}
        self.steps = []
        self.names = iter(NAMES)

    def at(self, ahead_s, uses):
        """One round at a time."""
        self.fake.ahead_s = ahead_s
        for name, known in self.bought.items():
            if known.state is not PurchaseState.ENDED:
                status = self.provider.status(name)
                self.bought[name] = Purchase(name, status.period or known.period, status.state)
        wanted = periods(uses, self.provider.terms)
        now_us = START + int(ahead_s * SECOND)
        for step in actions(wanted, self.bought.values(), self.provider.terms, now_us, lambda: next(self.names)):
            self.steps.append(step)
            if isinstance(step, Buy):
                self.provider.reserve(step.name, step.period)
                self.bought[step.name] = Purchase(step.name, step.period, PurchaseState.RESERVED)
            elif isinstance(step, PurchaseChange):
                found = self.provider.change(step.name, step.period)
                self.bought[step.name] = replace(self.bought[step.name], period=found)
            else:
                self.provider.release(step.name)
                self.bought[step.name] = replace(self.bought[step.name], state=PurchaseState.ENDED)

    def carried_bps(self):
        """What is up now."""
        return sum(p.period.rate_bps for p in self.bought.values() if p.state is PurchaseState.UP)


@pytest.fixture
def buyer(fake, provider):
    return Buyer(fake, provider)


@pytest.mark.parametrize(
    "uses",
    [
        [after(600, 700)],
        [after(600, 700), after(650, 2_000, 2 * GIGABIT)],
        [after(600, 700), after(1_900, 2_000)],
        [after(600, 700), after(700, 2_000)],
        [after(151, 152), after(1_083, 1_900)],
    ],
)
def test_what_is_known_in_time_is_up_in_time_and_nothing_is_asked_twice(buyer, uses):
    buyer.at(0, uses)
    first = list(buyer.steps)
    for ahead_s in range(1, 2_000, 50):
        buyer.at(ahead_s, uses)
        now_us = START + ahead_s * SECOND
        needed_bps = sum(u.rate_bps for u in uses if u.start_us <= now_us < u.end_us)
        assert buyer.carried_bps() >= needed_bps
    assert buyer.steps == first
    assert all(isinstance(step, Buy) for step in first)


@pytest.mark.parametrize("lasts_s", [300, 3_600])
@pytest.mark.parametrize("ahead_of_us_s", [0, 1, 10, 29])
def test_a_use_that_begins_at_once_is_asked_for_once_although_oscars_clock_is_ahead(buyer, ahead_of_us_s, lasts_s):
    uses = [after(0, lasts_s)]
    ours = buyer.fake.oscars._now_s
    buyer.fake.oscars._now_s = lambda: ours() + ahead_of_us_s
    for ahead_s in range(100):
        buyer.at(ahead_s, uses)
    assert [type(step) for step in buyer.steps] == [Buy]
    assert buyer.carried_bps() == GIGABIT


def test_more_is_there_once_the_change_is_deployed_and_the_end_follows_the_uses(buyer):
    buyer.at(0, [after(600, 5_000)])
    buyer.at(1_000, [after(600, 5_000), after(1_200, 9_000, 2 * GIGABIT)])
    buyer.at(1_060, [after(600, 5_000), after(1_200, 9_000, 2 * GIGABIT)])
    assert buyer.carried_bps() == 3 * GIGABIT
    assert buyer.bought["CXA5"].period == Period(START + 450 * SECOND, START + 9_000 * SECOND, 3 * GIGABIT)


def test_what_is_not_needed_any_more_ends_within_minutes(buyer):
    buyer.at(0, [after(600, 50_000)])
    for ahead_s in range(5_000, 5_100):
        buyer.at(ahead_s, [after(600, 5_050)])
    assert buyer.bought["CXA5"].state is PurchaseState.ENDED
    assert len(buyer.steps) <= 3  # bought, shortened as far as OSCARS does, given back


@pytest.mark.parametrize("quicker", [False, True])
def test_an_end_that_somebody_else_is_in_the_way_of_is_refused_and_not_moved(fake, url, provider, quicker):
    until_up(fake, provider, replace(LATER, end_us=LATER.start_us + 5_000 * SECOND, rate_bps=50 * GIGABIT))
    there = provider.status("CXA5").period
    other = OscarsProvider(settings(url, a_end=replace(A_END, vlan_vid=9), z_end=replace(Z_END, vlan_vid=9)), at_first)
    other.reserve("CXA6", Period(there.end_us + 100 * SECOND, there.end_us + 5_000 * SECOND, 95 * GIGABIT))
    if quicker:  # it was free when it was validated
        fake.faults = Faults(only="PUT /api/l2vpn/validate", times=1, answer='{"valid": true, "message": ""}')
    with pytest.raises(ProviderRefused, match="50000 Mbit/s asked, 5000 free"):
        provider.change("CXA5", replace(there, end_us=there.end_us + 1_000 * SECOND))
    assert provider.status("CXA5").period == there
    assert sum("modify/schedule" in asked for asked in fake.requests) == 2 * quicker  # done, and undone


def test_it_goes_by_the_calendar_and_not_by_the_wall_clock(fake, url, monkeypatch):
    monkeypatch.setenv("HEADWAY_TEST_TOKEN", TOKEN)
    ends = ({"device": end.device, "port": end.port, "vlan": end.vlan_vid} for end in (A_END, Z_END))
    section = OscarsSection(**dict(zip("az", ends, strict=True)), url=url, token_env="HEADWAY_TEST_TOKEN")  # noqa: S106
    provider = OSCARS.seller(section, 9000, Problems()).connected(lambda: START + int(fake.ahead_s * SECOND))
    until_up(fake, provider)  # years ago, by the wall clock
    fake.ahead_s = (LATER.end_us - START) // SECOND
    assert provider.status("CXA5").state is PurchaseState.DEPLOYING


def test_what_the_one_before_has_asked_for_is_waited_for_from_the_first_look_on(fake, url):
    now_us = [START - 3_600 * SECOND]
    provider = OscarsProvider(settings(url), lambda: now_us[0])  # as one that stands by
    OscarsProvider(settings(url), at_first).reserve("CXA5", LATER)
    now_us[0] = START
    with pytest.raises(ProviderUnavailable, match="may still be carried out"):
        provider.change("CXA5", replace(LATER, rate_bps=2 * GIGABIT))
    now_us[0] = START + settings(url).settle_us
    assert provider.change("CXA5", replace(LATER, rate_bps=2 * GIGABIT)).rate_bps == 2 * GIGABIT
