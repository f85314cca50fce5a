"""What a host may be acting on, from what it was told."""

from dataclasses import replace

from controller.plan.leases import Leases, most
from controller.plan.tests.factories import IMAGE, RAW_IMAGES, plan_of

LEASE_US = 3_000_000
LARGE = plan_of(RAW_IMAGES).of_host("base23")
SMALL = plan_of(RAW_IMAGES, *IMAGE).of_host("base23")
WATCHED = plan_of(replace(RAW_IMAGES, standby_bps=10_000_000)).of_host("base23")


def told(*messages, lease_us=LEASE_US):
    """Leases after messages (epoch, entries, when)."""
    leases = Leases()
    for epoch, entries, at_us in messages:
        leases = leases.sent(epoch, entries, at_us, lease_us)
    return leases


def test_nothing_told_is_nothing_to_act_on():
    assert Leases().acting(0) == ()


def test_a_message_counts_at_once_and_the_one_before_until_it_is_confirmed():
    for first, second in ((LARGE, SMALL), (SMALL, LARGE)):
        leases = told((2, first, 0), (4, second, 10))
        assert leases.acting(10) == LARGE
        assert leases.confirmed(4).acting(10) == second


def test_what_was_told_in_between_counts_too():
    leases = told((2, SMALL, 0), (4, LARGE, 10), (6, SMALL, 20))
    assert leases.acting(20) == LARGE
    assert leases.confirmed(4).acting(20) == LARGE


def test_a_host_that_does_not_confirm_has_lost_the_lease_on_what_was_before():
    leases = told((2, LARGE, 0), (4, SMALL, 10))
    assert leases.changes_us(10) == LEASE_US + 10
    assert leases.acting(LEASE_US + 9) == LARGE
    assert leases.acting(LEASE_US + 10) == SMALL


def test_a_change_after_that_does_not_bring_the_old_lease_back():
    leases = told((2, LARGE, 0), (4, SMALL, 10)).sent(6, (), LEASE_US + 10, LEASE_US)
    assert leases.acting(LEASE_US + 10) == SMALL


def test_a_host_that_is_gone_counts_for_one_lease():
    leases = told((2, LARGE, 0)).lost(100, LEASE_US)
    assert leases.acting(LEASE_US + 99) == LARGE
    assert leases.acting(LEASE_US + 100) == ()


def test_one_that_comes_back_and_is_told_the_same_counts_for_good_again():
    leases = told((2, LARGE, 0)).lost(100, LEASE_US).sent(2, LARGE, 200, LEASE_US)
    assert leases.acting(10 * LEASE_US) == LARGE


def test_a_flow_that_has_stepped_down_counts_with_its_standby_rate_under_that_epoch_only():
    leases = told((2, WATCHED, 0)).stepped_down(2, "background/base23")
    assert [e.frame_bps for e in leases.acting(0)] == [9_843_000]
    assert leases.sent(4, WATCHED, 1, LEASE_US).acting(1) == WATCHED


def test_the_largest_of_each_flow_counts():
    assert most(LARGE, SMALL) == most(SMALL, LARGE) == LARGE
    assert most() == ()
