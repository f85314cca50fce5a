"""When the calendar and the plan take a circuit away and give it back: at the same instants."""

from hypothesis import given
from hypothesis import strategies as st

from controller.plan.admission import Refused
from controller.plan.ledger import Ledger
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.resources import of_circuit
from controller.plan.schedules import GUARD_US
from controller.plan.tests.asking import NOW, WAN, S, asked, created, wish
from mininet_tests.testing.networks import chile_illinois
from topology.protocol import FlowClass

FULL_BPS = chile_illinois().link(*WAN).rate_bps
BEGINS_US, ENDS_US = NOW + 60 * S, NOW + 120 * S
SHRINKS_US = BEGINS_US - GUARD_US


def worked_on(*periods):
    """A ledger whose circuit has other rates for some times: (from, until, bit/s)."""
    ledger = Ledger(chile_illinois(), DEFAULT_POLICY)
    for period in periods or ((BEGINS_US, ENDS_US, 0),):
        ledger.set_schedule(WAN, [period])
    return ledger


def planned_bps(ledger, at_us):
    """What the plan has of the circuit at an instant."""
    return ledger.demand((), at_us, lambda _: None).capacity_bps.get(WAN, FULL_BPS)


def for_sale_bps(ledger, at_us):
    """What the calendar has of it."""
    return ledger.calendar.capacity_bps(WAN, at_us)


def test_both_take_it_away_five_seconds_before_the_work_and_give_it_back_when_it_is_over():
    ledger, at_us = worked_on(), (SHRINKS_US - 1, SHRINKS_US, BEGINS_US, ENDS_US - 1, ENDS_US)
    assert [planned_bps(ledger, us) for us in at_us] == [FULL_BPS, 0, 0, 0, FULL_BPS]
    assert [for_sale_bps(ledger, us) > 0 for us in at_us] == [True, False, False, False, True]
    assert [bool(ledger.closed(us)) for us in at_us] == [False, True, True, True, False]


times = st.integers(-30, 30).map(lambda s: NOW + s * S)
periods = st.tuples(times, times, st.sampled_from([0, FULL_BPS // 2, FULL_BPS])).filter(lambda p: p[0] < p[1])


@given(st.lists(periods, min_size=1, max_size=5))
def test_at_every_instant_the_plan_has_what_the_calendar_sells(known):
    """Also where one work begins as another ends, or is taken back; and only where the ledger says does it change."""
    ledger, changes_us = Ledger(chile_illinois(), DEFAULT_POLICY), set[int]()
    for period in known:
        ledger.set_schedule(WAN, [period])
    while (due_us := ledger.due_us()) is not None:
        ledger.tick(due_us)
        changes_us.add(due_us)
    before = None
    for at_us in sorted({NOW + half * S // 2 for half in range(-80, 80)} | {us - 1 for us in changes_us} | changes_us):
        has_bps = planned_bps(ledger, at_us)
        assert for_sale_bps(ledger, at_us) == of_circuit(WAN, has_bps, DEFAULT_POLICY)[WAN]
        assert has_bps == min(bps for _, _, bps in ledger.schedules.pieces(WAN, at_us, at_us + GUARD_US + 1))
        assert before in {None, has_bps} or at_us in changes_us
        before = has_bps


def test_what_is_promised_before_the_work_is_not_promised_the_last_seconds_before_it():
    answer = worked_on().announce(wish(size_bytes=10**10), ("base20",), "arch", NOW)
    before, after = (part for part in answer.rates if part.rate_bps)
    assert (before.end_us, after.start_us) == (SHRINKS_US, ENDS_US)


def test_a_deadline_that_the_last_seconds_before_the_work_would_meet_cannot_be_met():
    in_58_s = 938_800_000 * 58 // 8 * 94 // 100  # of payload, that is 94% of the wire
    most = wish(size_bytes=in_58_s, deadline_us=62 * S)
    assert not isinstance(worked_on((ENDS_US, ENDS_US + S, 0)).announce(most, ("base20",), "arch", NOW), Refused)
    assert isinstance(worked_on().announce(most, ("base20",), "arch", NOW), Refused)


def test_a_reservation_until_the_work_begins_is_refused_and_one_until_the_plan_shrinks_is_not():
    ledger = worked_on()
    late = asked(start_us=NOW, end_us=BEGINS_US, flow_class=FlowClass.URGENT)
    refused = ledger.hold(late, created("late"))
    assert isinstance(refused, Refused)
    assert refused.at_us == SHRINKS_US
    assert not isinstance(ledger.hold(asked(start_us=NOW, end_us=SHRINKS_US), created("in time")), Refused)
