"""Promises and refusals."""

from controller.plan.announcements import Announcement, Reason, Refused, Wish, decided
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import DATABASE, GIGABIT, IMAGE, RAW_IMAGES

IMAGE_BYTES = 2 * 1_344_012_290


def answer(deadline_us, size_bytes=IMAGE_BYTES):
    wish = Wish("a1", "chile-illinois", size_bytes, IMAGE, deadline_us)
    return decided(wish, (DATABASE, RAW_IMAGES), GIGABIT, DEFAULT_POLICY, now_us=1_000_000)


def test_an_image_is_promised_at_its_share_and_three_round_trips():
    promise = answer(deadline_us=None)
    assert isinstance(promise, Announcement)
    assert 24.85 < (promise.promised_us - promise.announced_us) / 1e6 < 24.88


def test_a_deadline_that_can_be_met_is_promised():
    assert isinstance(answer(deadline_us=25_000_000), Announcement)


def test_more_than_can_be_due_is_refused_with_the_numbers():
    refusal = answer(deadline_us=5_000_000)
    assert isinstance(refusal, Refused)
    assert refusal.reason is Reason.DEADLINE_UNREACHABLE
    assert refusal.needed_us > 24_000_000
    assert "due in 5.000 s asked, 24.8" in str(refusal)


def test_an_announcement_nobody_releases_lapses_after_its_promise():
    promise = answer(deadline_us=None)
    assert promise.lapses_us > promise.promised_us
