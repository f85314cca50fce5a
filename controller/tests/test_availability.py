"""What is free is worked out beside the site's work."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from controller import use_cases
from controller.errors import NotAllowed, NotKnown
from controller.plan.availability import Question
from controller.tests.fakes import START_US, ready_site
from topology.protocol import FlowClass

S = 1_000_000


@pytest.fixture
def site():
    """A site whose plan is in force."""
    return ready_site()


def question(start_us=START_US, end_us=START_US + 100 * S, a_end="la-serena"):
    return Question(a_end, "champaign", FlowClass.URGENT, start_us, end_us)


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
