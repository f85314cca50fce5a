"""What an announcement with a deadline is answered: a promise by then, or offers that are granted when taken."""

from dataclasses import replace

import pytest

from controller.plan.admission import OfferKind, Reason, Refused
from controller.plan.announcements import Announcement
from controller.plan.keys import StorePlace
from controller.plan.ledger import Ledger
from controller.plan.policy import DEFAULT_POLICY, Policy
from controller.plan.storing import StoreCapacity
from controller.plan.tests.asking import BOOKABLE, NOW, WAN, S, asked, created, wish
from mininet_tests.testing.networks import chile_illinois
from topology.protocol import FlowClass


@pytest.fixture
def ledger():
    """An empty ledger of the two-site network."""
    return Ledger(chile_illinois(), DEFAULT_POLICY)


def test_a_deadline_that_cannot_be_met_is_refused_with_the_soonest(ledger):
    no = ledger.announce(wish(deadline_us=1_440_000), ("base20",), "arch", NOW)
    assert (no.reason, no.resource) == (Reason.DEADLINE_UNREACHABLE, str(WAN))
    later = next(o for o in no.offers if o.kind is OfferKind.LATER_DEADLINE)
    assert isinstance(ledger.announce(wish(deadline_us=later.end_us - NOW), ("base20",), "arch", NOW), Announcement)
    hopeless = ledger.announce(wish("b", deadline_us=100_000), ("base20",), "arch", NOW)
    assert "handshake" in str(hopeless)


def test_a_later_deadline_is_offered_that_who_takes_two_seconds_to_ask_can_still_have(ledger):
    """What is free in these two seconds is gone by then, and later there is less at a time."""
    ledger.hold(asked(rate_bps=BOOKABLE - 100_000_000, start_us=NOW + 3 * S), created("a"))
    no = ledger.announce(wish(deadline_us=1_440_000), ("base20",), "arch", NOW)
    later = next(o for o in no.offers if o.kind is OfferKind.LATER_DEADLINE)
    for asks_us in (NOW, NOW + S, NOW + 2 * S):
        promise = ledger.announce(wish(deadline_us=later.end_us - asks_us), ("base20",), "arch", asks_us)
        assert isinstance(promise, Announcement)
        ledger.forget("image", asks_us)


def test_what_is_to_be_stored_by_a_time_is_confirmed_by_then_too(ledger):
    """A fast disk has written all before the sender knows that all has arrived."""
    stored = wish(store=StoreCapacity(StorePlace("arch", "data"), 2 * BOOKABLE, 0), is_stored_by=True)
    soonest = ledger.announce(stored, ("base20",), "arch", NOW)
    ledger.forget("image", NOW)
    takes_us = soonest.stored_us - NOW
    in_time = ledger.announce(replace(stored, deadline_us=takes_us), ("base20",), "arch", NOW)
    assert in_time.promised_us <= in_time.stored_us <= NOW + takes_us
    ledger.forget("image", NOW)
    assert isinstance(
        ledger.announce(replace(stored, deadline_us=takes_us - 100_000), ("base20",), "arch", NOW), Refused
    )


def test_an_image_that_is_announced_at_the_start_that_was_offered_is_promised(ledger):
    """The offer counts what it takes to begin, and who takes two seconds to ask."""
    for number, (from_s, until_s) in enumerate([(0, 10), (11.5, 20), (30, 40)]):  # in the first gap nothing fits
        times = {"start_us": NOW + round(from_s * S), "end_us": NOW + until_s * S}
        ledger.hold(asked(rate_bps=BOOKABLE, **times), created(str(number)))
    no = ledger.announce(wish(deadline_us=2 * S), ("base20",), "arch", NOW)
    offer = next(o for o in no.offers if o.kind is OfferKind.EARLIEST_START)
    assert offer.end_us - offer.start_us == 2 * S
    assert NOW + 19 * S < offer.start_us < NOW + 20 * S
    for waits_us in (0, 2 * S):
        promise = ledger.announce(wish(deadline_us=2 * S), ("base20",), "arch", offer.start_us + waits_us)
        assert isinstance(promise, Announcement)
        ledger.forget("image", offer.start_us + waits_us)


@pytest.mark.parametrize(("begins_s", "is_offered"), [(3, False), (6, True)], ids=str)
def test_a_lower_class_is_offered_that_who_takes_two_seconds_to_ask_can_still_have(begins_s, is_offered):
    """What begins meanwhile is in the way of who asks then, and not of who asks at once."""
    narrow = replace(DEFAULT_POLICY.classes[FlowClass.URGENT], cap_ppm=100_000)
    ledger = Ledger(chile_illinois(), Policy({**DEFAULT_POLICY.classes, FlowClass.URGENT: narrow}))
    busy = asked(flow_class=FlowClass.BACKGROUND, rate_bps=900_000_000, start_us=NOW + begins_s * S)
    ledger.hold(busy, created("a"))
    no = ledger.announce(wish(deadline_us=4 * S), ("base20",), "arch", NOW)
    below = [one.flow_class for one in no.offers if one.kind is OfferKind.LOWER_CLASS]
    assert below == ([FlowClass.BACKGROUND] if is_offered else [])
    lower = wish(deadline_us=4 * S, flow_class=FlowClass.BACKGROUND)
    assert isinstance(ledger.announce(lower, ("base20",), "arch", NOW), Announcement)
    ledger.forget("image", NOW)
    then = ledger.announce(lower, ("base20",), "arch", NOW + 2 * S)
    assert isinstance(then, Announcement) is is_offered


def test_no_rate_is_offered_that_is_too_slow_to_be_promised(ledger):
    ledger.hold(asked(rate_bps=BOOKABLE - 63_999, start_us=NOW), created("a"))
    no = ledger.announce(wish(size_bytes=1000, deadline_us=10 * S), ("base20",), "arch", NOW)
    assert (no.resource, no.asked_bps, no.free_bps) == (str(WAN), 64_000, 63_999)
    assert OfferKind.HIGHEST_RATE not in {offer.kind for offer in no.offers}
    start = next(o for o in no.offers if o.kind is OfferKind.EARLIEST_START)
    assert start.end_us > NOW + 200 * S
