"""Promises and refusals, on the two-site network with the paper's image."""

from controller.plan.announcements import Announcement, Wish
from controller.plan.ledger import Ledger
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import GIGABIT
from topology.protocol import FlowClass

IMAGE_BYTES = 2 * 1_344_012_290
NOW = 1_000_000


def answer(deadline_us, size_bytes=IMAGE_BYTES):
    """What the image is answered, announced by base20 and base21."""
    ledger = Ledger(GIGABIT, DEFAULT_POLICY)
    wish = Wish("a1", FlowClass.URGENT, size_bytes, deadline_us, GIGABIT.framing)
    return ledger.announce(wish, ("base20", "base21"), "arch", NOW)


def test_an_image_is_promised_at_its_share_and_four_round_trips_and_the_hand_over():
    promise = answer(deadline_us=None)
    assert isinstance(promise, Announcement)
    assert 25.08 < (promise.promised_us - promise.announced_us) / 1e6 < 25.11


def test_a_deadline_that_can_be_met_is_promised():
    promise = answer(deadline_us=26_000_000)
    assert 25.9 < (promise.promised_us - NOW) / 1e6 <= 26.0


def test_more_than_can_be_due_is_refused_with_the_numbers():
    refusal = answer(deadline_us=5_000_000)
    assert refusal.asked_bps > 4 * refusal.free_bps
    assert "Gbit/s asked" in str(refusal)


def test_an_announcement_nobody_releases_lapses_after_its_promise():
    promise = answer(deadline_us=None)
    assert promise.lapses_us > promise.promised_us


def test_the_rates_that_are_promised_move_the_bytes_in_time():
    for deadline_us in (None, 26_000_000, 60_000_000):
        promise = answer(deadline_us)
        moved_bits = 2 * sum(p.rate_bps * (p.end_us - p.start_us) for p in promise.rates) // 1_000_000
        assert moved_bits * 1448 // 1538 >= 8 * IMAGE_BYTES * 0.999_999
        assert promise.rates[-1].end_us < promise.promised_us
