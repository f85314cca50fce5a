"""What is free along each path, in pages that together say the same as one answer."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.plan import availability as looked_at
from controller.plan.availability import Question, TooManyRates, availability, goes_on_us, resources_of
from controller.plan.calendar import Booking, Calendar
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.resources import capacities, need
from controller.plan.volume import Volume
from mininet_tests.testing.networks import asc_ring
from topology.protocol import FlowClass

RING = asc_ring()
SITES = sorted({host.site for host in RING.hosts})
SPAN = 60
WHOLE = Question(SITES[0], SITES[2], FlowClass.URGENT, 0, SPAN)
PATHS = [one.path for one in availability(WHOLE, RING, Calendar(capacities(RING, DEFAULT_POLICY)))]
spans = st.tuples(st.integers(0, SPAN - 1), st.integers(1, 20)).map(lambda p: (p[0], min(SPAN, p[0] + p[1])))
booked = st.lists(st.tuples(st.sampled_from(PATHS), st.integers(1, 9), spans), max_size=12)


def calendar(held):
    """A calendar of the ring in which these are booked."""
    made = Calendar(capacities(RING, DEFAULT_POLICY))
    for number, (path, mbps, at) in enumerate(held):
        made.book(str(number), Booking(need(RING, (path,), FlowClass.URGENT), mbps * 10**6, *at))
    return made


def pages(question, made):
    """What each page of an answer has of each path."""
    found = []
    while question is not None:
        answers = availability(question, RING, made)
        found.append({one.path: one.rates for one in answers})
        at_us = goes_on_us(question, answers)
        question = None if at_us is None else replace(question, start_us=at_us)
    return found


def by_instant(rates):
    """The rate at each instant."""
    return [bps for begin, until, bps in rates for _ in range(begin, until)]


@given(booked, st.integers(1, 12))
def test_pages_together_say_what_one_answer_does_and_none_is_longer_than_asked(held, most):
    made = calendar(held)
    (whole,) = pages(WHOLE, made)
    found = pages(replace(WHOLE, most_pieces=most), made)
    assert len(PATHS) > 1
    assert all(sum(map(len, page.values())) <= max(most, len(PATHS)) for page in found)
    assert all(len({rates[-1][1] for rates in page.values()}) == 1 for page in found)
    for path in PATHS:
        rates = [piece for page in found for piece in page[path]]
        assert by_instant(rates) == by_instant(whole[path])


@given(booked, st.integers(1, 12))
def test_all_but_the_rates_is_about_the_whole_window_however_short_a_page_is(held, most):
    made = calendar(held)
    volume = Volume(10**8, 0, 10**12)
    asked = replace(WHOLE, rate_bps=1_000, duration_us=3, volume=volume)
    whole, page = (availability(one, RING, made) for one in (asked, replace(asked, most_pieces=most)))
    assert [replace(one, rates=()) for one in whole] == [replace(one, rates=()) for one in page]
    assert [one.most_bps for one in whole] == [min(bps for _, _, bps in one.rates) for one in whole]


def test_a_volume_that_takes_more_rates_than_an_answer_may_have_is_refused(monkeypatch):
    made = calendar([(PATHS[0], 1, (at, at + 1)) for at in range(0, SPAN, 2)])
    slow = replace(WHOLE, volume=Volume(100_000, 0, 10**12))
    assert len(availability(slow, RING, made)[0].soonest) > 3
    monkeypatch.setattr(looked_at, "MOST_PIECES", 3)
    with pytest.raises(TooManyRates, match="ask for fewer"):
        availability(slow, RING, made)


def test_an_answer_looks_at_what_it_needs_alone():
    assert resources_of(WHOLE, RING) < capacities(RING, DEFAULT_POLICY).keys()
