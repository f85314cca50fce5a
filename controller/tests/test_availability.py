"""What is free is worked out beside the site's work."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from controller import use_cases
from controller.errors import NotAllowed, NotKnown
from controller.plan.admission import Reason, Request
from controller.plan.availability import Question
from controller.plan.ledger import Created
from controller.plan.reservations import Constraints
from controller.plan.volume import Volume
from controller.tests.fakes import START_US, ready_site
from mininet_tests.testing.networks import chile_illinois_2
from topology.protocol import FlowClass

S = 1_000_000


@pytest.fixture
def site():
    """A site whose plan is in force."""
    return ready_site()


def question(start_us=START_US, end_us=START_US + 100 * S, a_end="la-serena", **more):
    return Question(a_end, "champaign", FlowClass.URGENT, start_us, end_us, **more)


def held(site, rate_bps, start_us, end_us):
    """The answer to who asks for a rate by the south."""
    ends, time_us = ("la-serena", "champaign"), (start_us, end_us)
    request = Request(*ends, FlowClass.URGENT, rate_bps, *time_us, Constraints(exclude=("north",)))
    return site.use_cases.hold(lambda _: request, lambda now_us: Created(f"from-{start_us}", now_us)).value


def test_nobody_waits_for_the_state_while_an_answer_is_worked_out(site, monkeypatch):
    work, seen = use_cases.availability, []

    def is_free():
        with_it = site.state.changed.acquire(blocking=False)
        if with_it:
            site.state.changed.release()
        return with_it

    def watched(*asked):
        with ThreadPoolExecutor(1) as another:
            seen.append(another.submit(is_free).result())
        return work(*asked)

    monkeypatch.setattr(use_cases, "availability", watched)
    (found,) = site.use_cases.availability(question())
    assert found.path == ("ls1", "ch1")
    assert seen == [True]


def test_an_end_that_nobody_knows_and_a_time_that_is_over_are_refused(site):
    with pytest.raises(NotKnown):
        site.use_cases.availability(question(a_end="nowhere"))
    with pytest.raises(NotAllowed):
        site.use_cases.availability(question(START_US - 10 * S, START_US - S))


def test_a_circuit_that_is_bought_at_need_is_free_from_when_who_asks_now_would_be_granted_it():
    site = ready_site(network=chile_illinois_2(), standing=(), lead_us={"south": 150 * S})
    asked = question(end_us=START_US + 1_000 * S, rate_bps=400_000_000, duration_us=10 * S)
    leased, bought = site.use_cases.availability(asked)
    rate_bps, first_us = leased.most_bps, site.clock() + 210 * S  # as an offer of the refusal says it
    assert ("north" in leased.path, leased.rates) == (True, ((START_US, START_US + 1_000 * S, rate_bps),))
    assert (leased.earliest_start_us, bought.most_bps, bought.earliest_start_us) == (START_US, 0, first_us)
    assert [(begin, bps > 0) for begin, _, bps in bought.rates] == [(START_US, False), (first_us, True)]
    _, (begin_us, end_us, free_bps) = bought.rates
    early, in_time = (held(site, free_bps, start_us, end_us) for start_us in (begin_us - 100 * S, begin_us))
    assert (early.reason, in_time.rate_bps) == (Reason.PROVIDER_TOO_LATE, free_bps)


def test_what_is_moved_soonest_over_a_circuit_that_is_bought_at_need_waits_until_it_can_be_bought():
    site = ready_site(network=chile_illinois_2(), standing=(), lead_us={"south": 150 * S})
    asked = question(end_us=START_US + 1_000 * S, volume=Volume(10**9, 0, 10**12))
    leased, bought = site.use_cases.availability(asked)
    assert leased.soonest[0].start_us == START_US
    assert bought.soonest[0].start_us == site.clock() + 210 * S
    assert bought.thriftiest.start_us >= site.clock() + 210 * S
