"""For whom a circuit that carries less than it did has no room any more."""

import pytest

from controller.plan.keeping import unkeepable
from controller.plan.ledger import Ledger
from controller.plan.lifecycle import LifecycleEvent
from controller.plan.overbooked import overbooked
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.asking import NOW, WAN, S, asked, created, wish
from mininet_tests.testing.networks import chile_illinois
from topology.protocol import FlowClass

SHRINKS = NOW + 10 * S


@pytest.fixture
def ledger():
    """The ledger of the two-site network."""
    return Ledger(chile_illinois(), DEFAULT_POLICY)


def running(ledger, name, rate_bps):
    """Have a reservation whose time it is."""
    ledger.hold(asked(start_us=NOW, rate_bps=rate_bps), created(name))
    ledger.happened(name, LifecycleEvent.COMMIT, NOW)
    ledger.tick(NOW)


def shrinks(ledger, rate_bps):
    """Let the circuit carry less for a time; return who is told that he cannot be kept."""
    ledger.set_schedule(WAN, [(SHRINKS, SHRINKS + 30 * S, rate_bps)])
    before = ledger.calendar.free_of([WAN])
    cannot = [one.reservation_id for one in unkeepable(ledger, NOW)]
    assert ledger.calendar.free_of([WAN]) == before
    return cannot


def failing(ledger):
    """Fail who must then."""
    failed = []
    for known in overbooked(ledger, SHRINKS):
        failed.append(known.reservation_id)
        ledger.happened(known.reservation_id, LifecycleEvent.FAIL, SHRINKS, "the circuit has less")
    return failed


def halved(ledger):
    """Let the circuit have half its rate; return who fails for it, and who is told before that he cannot be kept."""
    cannot = shrinks(ledger, 500_000_000)
    return failing(ledger), cannot


def test_a_hold_that_has_no_room_any_more_fails_nobody(ledger):
    running(ledger, "old", 400_000_000)
    ledger.hold(asked(start_us=NOW, rate_bps=500_000_000), created("held"))
    assert halved(ledger) == ([], ["held"])


def test_an_older_hold_fails_nobody_either_until_it_is_committed(ledger):
    ledger.hold(asked(start_us=NOW, rate_bps=500_000_000), created("held"))
    running(ledger, "new", 400_000_000)
    shrinks(ledger, 600_000_000)
    assert failing(ledger) == []
    ledger.happened("held", LifecycleEvent.COMMIT, SHRINKS)
    ledger.tick(SHRINKS)
    assert failing(ledger) == ["new"]


@pytest.mark.parametrize("flow_class", [FlowClass.URGENT, FlowClass.BACKGROUND])
def test_what_was_announced_after_a_reservation_gives_way_to_it(ledger, flow_class):
    running(ledger, "old", 400_000_000)
    later = ledger.announce(wish(flow_class=flow_class, size_bytes=10**10), ("base23",), "arch", NOW)
    assert (later.pool, later.floor_bps(SHRINKS)) == ("", 538_800_000)
    assert halved(ledger) == ([], [])


def test_what_was_announced_before_a_reservation_does_not(ledger):
    ledger.announce(wish(size_bytes=10**9, deadline_us=20 * S), ("base23",), "arch", NOW)
    running(ledger, "new", 400_000_000)
    assert halved(ledger) == (["new"], ["new"])


def test_a_reservation_that_is_larger_than_the_circuit_fails_beside_what_was_announced_after_it(ledger):
    running(ledger, "small", 100_000_000)
    running(ledger, "large", 600_000_000)
    ledger.announce(wish(size_bytes=10**10), ("base23",), "arch", NOW)
    assert halved(ledger) == (["large"], ["large"])
