"""What a disk has yet to write of an announcement that has ended: what had arrived, by what was promised."""

from dataclasses import replace

import pytest

from controller.plan.deliveries import Delivered
from controller.plan.kept_ledger import KeptLedger
from controller.plan.keys import StorePlace
from controller.plan.ledger import Ledger
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.storing import StoreCapacity
from controller.plan.tests.asking import NOW, S, wish
from controller.plan.unwritten import LONGEST_US, unwritten
from controller.plan.volume import ConstantRate
from mininet_tests.testing.networks import chile_illinois

SIZE = 100_000_000
DISK = StoreCapacity(StorePlace("arch", "data"), 100_000_000, 2 * 8 * SIZE)  # all of it has room


@pytest.fixture
def promise():
    """100 MB at the line's rate, which a disk then writes in 8.5 s."""
    made = Ledger(chile_illinois(), DEFAULT_POLICY).announce(wish(store=DISK), ("base20",), "arch", NOW)
    assert made.stored_us > made.promised_us + 5 * S
    return made


def delivered(promise, size_bytes, last_us):
    (flow,) = promise.flows
    return replace(promise, delivered=(Delivered(flow.name, 1, counter_bytes=size_bytes, last_us=last_us),))


def megabytes(drains):
    """What drains come to, payload."""
    return sum(part.rate_bps * (part.end_us - part.start_us) for part in drains) / 8e6 * 1448 / 1538 / 1e6


def test_all_that_is_across_is_written_as_it_was_promised(promise):
    across = delivered(promise, SIZE, promise.promised_us)
    (part,) = unwritten(across, promise.promised_us)
    assert part == replace(promise.drains[0], start_us=promise.promised_us)


def test_of_what_was_stopped_half_way_half_is_written(promise):
    (rate,) = promise.rates
    middle_us = (rate.start_us + rate.end_us) // 2
    (part,) = unwritten(delivered(promise, SIZE // 2, middle_us), middle_us)
    (promised,) = promise.drains
    by_then = ConstantRate(promised.start_us, middle_us, promised.rate_bps)
    assert megabytes([part]) == pytest.approx(50 - megabytes([by_then]), abs=0.1)
    assert part.end_us < promised.end_us - 3 * S


def test_what_has_come_late_waits_as_what_had_come_in_time_did(promise):
    late_us = promise.promised_us + 3 * S
    assert megabytes(unwritten(delivered(promise, SIZE, late_us), late_us)) > 50, (
        "not what is left by the promise alone"
    )


def test_nothing_is_left_of_what_never_came_or_is_written(promise):
    assert unwritten(delivered(promise, 0, 0), promise.promised_us) == ()
    assert unwritten(delivered(promise, SIZE, promise.promised_us), promise.stored_us) == ()
    assert unwritten(replace(promise, rates=()), promise.promised_us) == ()
    assert unwritten(replace(promise, drains=()), promise.promised_us) == ()


def test_what_nobody_counts_has_come_as_it_was_promised(promise):
    assert unwritten(promise, promise.announced_us) == ()
    (part,) = unwritten(promise, promise.promised_us)
    assert part.end_us == pytest.approx(promise.stored_us, abs=1_000)


def test_no_disk_is_waited_for_for_longer_than_an_hour(promise):
    slow = replace(promise, drains=(ConstantRate(NOW, NOW + 10 * LONGEST_US, 10_000),))
    (part,) = unwritten(delivered(slow, SIZE, promise.promised_us), promise.promised_us)
    assert part.end_us == promise.promised_us + LONGEST_US


def test_a_release_that_was_not_saved_leaves_the_disk_as_it_was_booked():
    ledger = KeptLedger(chile_illinois(), DEFAULT_POLICY)
    promise = ledger.announce(wish(store=DISK), ("base20",), "arch", NOW)
    ledger.saved(ledger.changes(decided=True))
    booked = [name for name, _ in promise.bookings()]
    ledger.forget("image", promise.promised_us)
    ledger.changes(decided=True)
    assert [name in ledger.calendar for name in booked] == [False] * len(booked)
    assert len(ledger.calendar) == 1, "what the disk has yet to write"
    ledger.withdraw()
    assert [name in ledger.calendar for name in booked] == [True] * len(booked)
    assert len(ledger.calendar) == len(booked)
