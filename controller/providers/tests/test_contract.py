"""What every provider keeps to, whoever sells: one suite for all kinds, each on its stand-in over real HTTP."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest

from controller.plan.purchases import Period, PurchaseState
from controller.providers.errors import AnswerLost, ProviderDenied, ProviderRefused, ProviderUnavailable
from controller.providers.nsi import NsiProvider
from controller.providers.nsi_values import NsiSettings
from controller.providers.oscars import OscarsProvider
from controller.providers.provider import Provider
from controller.providers.static import StaticProvider
from controller.providers.tests.buying import START, START_S, of, settings
from controller.providers.tests.fake_nsi import PROVIDER
from controller.providers.tests.fake_oscars import TOKEN, Faults

S = 1_000_000
GIGABIT = 10**9
SOON = Period(START + 1_000 * S, START + 50_000 * S, GIGABIT)
SOLD = {PurchaseState.RESERVED, PurchaseState.DEPLOYING, PurchaseState.UP}
NSA = "urn:ogf:network:site.example:2025:nsa:headway"
STP = "urn:ogf:network:north.example:2025:topology:chile?vlan=2000"
OTHER = "urn:ogf:network:south.example:2025:topology:illinois?vlan=2000"


@dataclass
class Shop:
    """A provider, and what may be done to who is behind it.

    ``opened`` makes another client on the same server, as another process does; ``live`` are the purchases it has.
    """

    name: str
    provider: Provider
    fake: Any
    opened: Callable[..., Provider]
    live: Callable[[], int]
    creates: str

    def pass_to(self, at_us):
        """Let the time pass."""
        self.fake.ahead_s = at_us / S - START_S

    def until(self, is_so, step_s=2.0, tries=60):
        """Let the time pass until something is so."""
        for _ in range(tries):
            if is_so():
                return True
            self.fake.ahead_s += step_s
        return False

    def bought(self, period=SOON, name=None):
        """The name of something that is sold."""
        name = name or self.provider.new_name(Random(7))  # noqa: S311 - no secret
        if not self.provider.reserve(name, period):
            assert self.until(lambda: self.provider.status(name).state in SOLD)
        return name

    def gone(self, name):
        """Whether it is given back after some time."""
        return self.until(lambda: self.provider.release(name))


def nsi_settings(url, **other):
    """One circuit through a proxy."""
    ends = {"source_stp": STP, "dest_stp": OTHER}
    return NsiSettings(**{"url": url, "requester_nsa": NSA, "provider_nsa": PROVIDER, **ends, **other})


def _nsi(request):
    fake, url = request.getfixturevalue("nsi"), request.getfixturevalue("nsi_url")

    def opened(token=None, **other):
        return NsiProvider(nsi_settings(url, token=token and of(token), timeout_s=5.0, **other), now)

    def now():
        return int((START_S + fake.ahead_s) * S)

    return Shop("nsi", opened(), fake, opened, lambda: len(fake.live()), "POST /reservations")


def _oscars(request):
    fake, url = request.getfixturevalue("oscars"), request.getfixturevalue("oscars_url")

    def opened(token=TOKEN, **other):
        return OscarsProvider(settings(url, token=of(token), timeout_s=5.0, **other), now)

    def now():
        return int((START_S + fake.ahead_s) * S)

    def live():
        fake.oscars.now_s()
        return sum(row.phase == "RESERVED" for row in fake.oscars.rows)

    return Shop("oscars", opened(), fake, opened, live, "POST /protected/l2vpn/new")


@pytest.fixture(params=["oscars", "nsi"])
def shop(request):
    made = {"oscars": _oscars, "nsi": _nsi}[request.param](request)
    yield made
    made.provider.close()


@pytest.fixture(params=["static", "oscars", "nsi"])
def provider(request):
    if request.param == "static":
        yield StaticProvider()
        return
    made = {"oscars": _oscars, "nsi": _nsi}[request.param](request)
    yield made.provider
    made.provider.close()


def test_names_differ_and_are_taken(provider):
    random = Random(3)  # noqa: S311 - no secret
    names = {provider.new_name(random) for _ in range(50)}
    assert len(names) == 50
    provider.reserve(names.pop(), SOON)


def test_what_was_never_bought_is_given_back_by_doing_nothing(provider):
    assert provider.release(provider.new_name(Random(4)))  # noqa: S311 - no secret


def test_terms_are_the_same_each_time_and_the_schedule_is_in_order(provider):
    assert provider.terms == provider.terms
    assert list(provider.schedule) == sorted(provider.schedule, key=lambda p: p.start_us)


def test_advice_is_a_rate_or_nothing_and_says_what_is_left(provider):
    before = provider.free_bps(SOON.start_us, SOON.end_us)
    provider.reserve(provider.new_name(Random(5)), SOON)  # noqa: S311 - no secret
    after = provider.free_bps(SOON.start_us, SOON.end_us)
    assert (before, after) == (None, None) or before - after == GIGABIT


def test_what_is_sold_is_reserved_until_its_begin_and_up_some_time_after_it(shop):
    name = shop.bought()
    shop.provider.tend(name, SOON)
    assert shop.provider.status(name).state is PurchaseState.RESERVED
    shop.pass_to(SOON.start_us)

    def is_up():
        shop.provider.tend(name, SOON)
        return shop.provider.status(name).state is PurchaseState.UP

    assert not is_up()
    assert shop.until(is_up)
    assert shop.provider.status(name).lacks == ""


def test_what_is_given_back_is_gone_before_and_after_its_begin(shop):
    name = shop.bought()
    assert shop.gone(name)
    assert shop.live() == 0
    again = shop.bought(name=shop.provider.new_name(Random(8)))  # noqa: S311 - no secret
    shop.pass_to(SOON.start_us)
    shop.provider.tend(again, SOON)
    shop.fake.ahead_s += 60
    assert shop.gone(again)
    assert shop.live() == 0


def test_to_buy_again_by_the_same_name_buys_nothing(shop):
    name = shop.bought()
    assert shop.provider.reserve(name, SOON)
    assert shop.live() == 1
    assert sum(asked == shop.creates for asked in shop.fake.requests) == 1


@pytest.mark.parametrize("drop", ["before", "after"])
def test_a_purchase_whose_answer_is_lost_is_never_asked_for_twice(shop, drop):
    shop.fake.faults = Faults(only=shop.creates, times=1, drop=drop)
    name = shop.provider.new_name(Random(9))  # noqa: S311 - no secret
    for _ in range(3):
        try:
            shop.provider.reserve(name, SOON)
        except AnswerLost:
            continue
    assert sum(asked == shop.creates for asked in shop.fake.requests) == 1
    assert shop.live() == (drop == "after")


def test_another_process_finds_what_the_one_before_has_bought(shop):
    name = shop.bought()
    other = shop.opened()
    assert other.status(name).state is PurchaseState.RESERVED
    assert shop.until(lambda: other.release(name))
    assert shop.live() == 0
    other.close()


def test_too_much_is_refused_with_the_reason_and_holds_nothing(shop):
    name = shop.provider.new_name(Random(10))  # noqa: S311 - no secret
    much = replace(SOON, rate_bps=200 * GIGABIT)
    try:
        shop.provider.reserve(name, much)
    except ProviderRefused as refused:
        why = refused.reason
    else:
        assert shop.until(lambda: shop.provider.status(name).refused)
        why = shop.provider.status(name).reason
    assert "100000" in why
    assert shop.gone(name)
    assert shop.live() == 0


def test_less_than_is_sold_is_never_refused_and_more_is_had_or_refused(shop):
    name = shop.bought(replace(SOON, rate_bps=4 * GIGABIT))
    found = shop.provider.change(name, replace(SOON, rate_bps=2 * GIGABIT))
    assert found.rate_bps in {2 * GIGABIT, 4 * GIGABIT}
    longer = replace(found, end_us=found.end_us + 1_000 * S)
    assert shop.provider.change(name, longer) == longer
    if shop.provider.terms.fixed_rate:
        with pytest.raises(ProviderRefused, match="cannot grow"):
            shop.provider.change(name, replace(longer, rate_bps=9 * GIGABIT))
    assert shop.live() == 1


def test_a_circuit_of_somebody_elses_is_left_alone(shop):
    shop.bought()
    other = shop.provider.new_name(Random(11))  # noqa: S311 - no secret
    assert shop.provider.status(other).state is PurchaseState.FAILED
    assert shop.provider.release(other)
    assert shop.live() == 1


def test_who_is_not_let_in_is_told_so_with_the_cure(shop):
    if shop.name == "nsi":
        shop.fake.rules.token = TOKEN
    denied = shop.opened(token="wrong")  # noqa: S106 - it opens nothing
    with pytest.raises(ProviderDenied, match="401") as told:
        denied.reserve(denied.new_name(Random(12)), SOON)  # noqa: S311 - no secret
    assert told.value.cure
    assert "wrong" not in str(told.value)
    denied.close()


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_look_that_is_not_answered_is_to_be_tried_again(shop, status):
    name = shop.bought()
    shop.fake.faults = Faults(only="GET", status=status)
    with pytest.raises(ProviderUnavailable):
        shop.provider.status(name)
    shop.fake.faults = Faults()
    assert shop.provider.status(name).state is PurchaseState.RESERVED


def test_an_answer_that_cannot_be_understood_is_to_be_tried_again(shop):
    name = shop.bought()
    for answer in ("", "[]", "<html>busy</html>", '{"status": 7}'):
        shop.fake.faults = Faults(only="GET", answer=answer)
        with pytest.raises(ProviderUnavailable, match="unclear"):
            shop.provider.status(name)
