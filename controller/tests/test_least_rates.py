"""What is too slow to be of use to anybody is not reserved, nor offered; what was before goes on, and harms nobody."""

import pytest

from controller.errors import NotAllowed
from controller.plan.admission import OfferKind, Request
from controller.plan.ledger import Created
from controller.plan.lifecycle import LifecycleEvent
from controller.tests.fakes import START_US, image, ready_site
from topology.protocol import FlowClass

HOUR_US, LEAST_BPS, BOOKABLE_BPS = 3_600_000_000, 64_000, 938_800_000


@pytest.fixture
def site():
    """A site whose first plan is in force."""
    return ready_site(standing=())


def request(rate_bps, end_us=START_US + HOUR_US):
    """So much from a host to another one, from now on."""
    return Request("base20", "arch", FlowClass.URGENT, rate_bps, START_US, end_us)


def held(site, name, rate_bps):
    """The answer to who asks for a rate."""
    return site.use_cases.hold(lambda _: request(rate_bps), lambda now_us: Created(name, now_us)).value


def test_the_least_rate_is_reserved_and_carried_and_less_is_refused_in_words(site):
    with pytest.raises(NotAllowed, match=r"rate_bps: need at least 64 kbit/s, got 63\.999 kbit/s"):
        held(site, "less", LEAST_BPS - 1)
    held(site, "least", LEAST_BPS)
    site.use_cases.commit("least").saved.result()
    site.converge()
    (entry,) = site.value.desired.plan.entries
    assert entry.payload_bps > 60_000


def test_no_rate_is_offered_that_is_too_slow_to_be_reserved(site):
    held(site, "most", BOOKABLE_BPS - LEAST_BPS)
    assert OfferKind.HIGHEST_RATE in {offer.kind for offer in held(site, "more", 10**6).offers}
    held(site, "least", LEAST_BPS)
    site.use_cases.release("most").saved.result()
    held(site, "nearly", BOOKABLE_BPS - 2 * LEAST_BPS + 1)
    assert OfferKind.HIGHEST_RATE not in {offer.kind for offer in held(site, "more", 10**6).offers}


def test_what_was_reserved_at_less_keeps_its_rate_while_all_else_of_it_changes(site):
    held(site, "r", LEAST_BPS)
    site.value.wished.ledger.change("r", request(5), START_US)  # as an earlier controller has granted it

    def changed(rate_bps, end_us=START_US + HOUR_US):
        version = site.value.wished.ledger.reservations["r"].version
        return site.use_cases.change("r", lambda _: request(rate_bps, end_us), version).value

    assert changed(5, START_US + 2 * HOUR_US).rate_bps == 5
    for rate_bps in (4, 6):
        with pytest.raises(NotAllowed, match="need at least 64 kbit/s"):
            changed(rate_bps)
    assert changed(LEAST_BPS).rate_bps == LEAST_BPS


@pytest.mark.parametrize("rate_bps", [1, 2, 8])
def test_what_was_reserved_too_slow_for_a_host_keeps_nothing_of_others_from_being_carried(site, rate_bps):
    ledger = site.value.wished.ledger
    ledger.hold(request(rate_bps), Created("slow", START_US))
    ledger.happened("slow", LifecycleEvent.COMMIT, START_US)
    site.use_cases.tick().result()
    site.announce(image(senders=("base21",)))
    site.converge()
    assert [entry.flow.host for entry in site.value.desired.plan.entries] == ["base21"]
