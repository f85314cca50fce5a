"""The calendar's clock: steps of the wall clock, sleep, restarts; and a ledger under any sequence of them."""

import itertools

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from controller.plan.admission import Refused, Request
from controller.plan.clock import CONFIRMED_US, SLEW_PPM, CalendarClock, Instant, started
from controller.plan.ledger import HOLD_US, Created, Ledger
from controller.plan.lifecycle import ENDED, LifecycleEvent, ReservationState
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.reservations import MAX_TIME_US
from mininet_tests.testing.networks import chile_illinois
from topology.protocol import FlowClass
from topology.wire import PPM

UNIX_US, BOOTED_US = 1_767_225_600_000_000, 5_000_000
S, HOUR_US = 1_000_000, 3_600_000_000
BOOKABLE = 938_800_000  # of 1 Gbit/s, after the guarantees of 5, 0.02, 1 and 0.1%


class Clocks:
    """A machine's clocks, and the calendar that looks at them each second."""

    def __init__(self):
        self.elapsed_us, self.wall_us = BOOTED_US, UNIX_US
        self.calendar = started(self.elapsed_us, self.wall_us, None, is_same_boot=False)

    def now_us(self):
        """The calendar time."""
        return self.calendar.calendar_us(self.elapsed_us)

    def passes(self, us, free_until_us=None):
        """Time passes, and the clocks are looked at."""
        for part_us in (*itertools.repeat(S, us // S), us % S):
            self.elapsed_us += part_us
            self.wall_us += part_us
            self.calendar = self.calendar.looked(self.elapsed_us, self.wall_us, free_until_us)

    def restarts(self, *, is_same_boot=True, free_until_us=None):
        """Another controller starts from what this one has written down."""
        saved = Instant(self.now_us(), self.elapsed_us)
        if not is_same_boot:
            self.elapsed_us = BOOTED_US
        self.calendar = started(self.elapsed_us, self.wall_us, saved, is_same_boot=is_same_boot)
        self.passes(0, free_until_us)


@pytest.fixture
def clocks():
    """Clocks that are right."""
    return Clocks()


@pytest.mark.parametrize("step_us", [HOUR_US, -HOUR_US])
def test_a_step_that_is_taken_back_leaves_no_trace(clocks, step_us):
    clocks.wall_us += step_us
    clocks.passes(CONFIRMED_US - 2 * S, free_until_us=MAX_TIME_US)
    assert clocks.calendar.off_us == step_us
    assert clocks.calendar.is_off
    clocks.wall_us -= step_us
    clocks.passes(S, free_until_us=MAX_TIME_US)
    assert clocks.now_us() == clocks.wall_us
    assert not clocks.calendar.is_off


def test_a_step_forward_that_lasts_is_followed_up_to_what_is_due_next(clocks):
    clocks.wall_us += HOUR_US
    due_us = UNIX_US + HOUR_US // 2
    clocks.passes(CONFIRMED_US + S, free_until_us=due_us)
    assert due_us <= clocks.now_us() < due_us + 10 * S
    clocks.passes(S, free_until_us=MAX_TIME_US)
    assert clocks.now_us() == clocks.wall_us


def test_a_step_back_that_lasts_is_waited_for_where_nothing_is_under_way(clocks):
    clocks.wall_us -= HOUR_US
    clocks.passes(CONFIRMED_US + S)
    stood_us = clocks.now_us()
    clocks.passes(HOUR_US, free_until_us=MAX_TIME_US)
    assert clocks.now_us() - stood_us < 10 * S
    assert clocks.now_us() == pytest.approx(clocks.wall_us, abs=S)


def test_while_something_is_under_way_a_step_that_lasts_is_followed_by_half_a_per_mille(clocks):
    clocks.wall_us += HOUR_US
    clocks.passes(CONFIRMED_US + S)
    before_us = clocks.now_us()
    clocks.passes(HOUR_US)
    assert clocks.now_us() - before_us == HOUR_US + HOUR_US * SLEW_PPM // PPM


def test_a_leap_second_is_followed_slowly(clocks):
    clocks.wall_us -= S
    clocks.passes(1000 * S, free_until_us=MAX_TIME_US)
    assert not clocks.calendar.is_off
    assert 0 < clocks.now_us() - clocks.wall_us <= S - 1000 * S * SLEW_PPM // PPM + 1000
    clocks.passes(1100 * S)
    assert clocks.now_us() == pytest.approx(clocks.wall_us, abs=20_000)


def test_sleep_counts(clocks):
    clocks.elapsed_us += 600 * S  # CLOCK_BOOTTIME goes on
    clocks.wall_us += 600 * S
    clocks.passes(0)
    assert clocks.now_us() == UNIX_US + 600 * S
    assert not clocks.calendar.is_off


@pytest.mark.parametrize("step_us", [HOUR_US, -HOUR_US])
def test_a_controller_that_starts_while_the_wall_clock_is_off_goes_on_where_the_last_one_was(clocks, step_us):
    clocks.passes(100 * S)
    clocks.wall_us += step_us
    clocks.restarts(free_until_us=MAX_TIME_US)
    assert clocks.now_us() == UNIX_US + 100 * S
    assert clocks.calendar.is_off


def test_on_a_machine_that_was_started_again_the_wall_clock_is_believed_but_time_never_goes_back(clocks):
    clocks.wall_us += HOUR_US
    clocks.restarts(is_same_boot=False)
    assert clocks.now_us() == clocks.wall_us
    clocks.wall_us -= 2 * HOUR_US
    clocks.restarts(is_same_boot=False)
    assert clocks.now_us() == UNIX_US + HOUR_US
    assert clocks.calendar.is_off


@pytest.mark.parametrize(("step_us", "shown_us"), [(HOUR_US, HOUR_US), (-HOUR_US, 0)])
def test_an_operator_who_trusts_the_wall_clock_takes_the_calendar_forward_but_not_back(step_us, shown_us):
    saved = Instant(UNIX_US, BOOTED_US)
    calendar = started(BOOTED_US, UNIX_US + step_us, saved, is_same_boot=True, trusts_wall=True)
    assert calendar.calendar_us(BOOTED_US) == UNIX_US + shown_us


def test_a_calendar_that_nobody_looks_at_goes_as_elapsed_time_does():
    standing = CalendarClock(Instant(UNIX_US, 0), rate_ppm=0)
    assert standing.calendar_us(HOUR_US) - UNIX_US == pytest.approx(HOUR_US, abs=3 * S)


passes = st.tuples(st.just("passes"), st.integers(0, 20 * S))
steps = st.tuples(
    st.just("steps"), st.sampled_from([HOUR_US, -HOUR_US, S, -S, S // 3]) | st.integers(-HOUR_US, HOUR_US)
)
long = st.tuples(st.just("passes"), st.just(CONFIRMED_US))
starts = st.tuples(st.just("starts"), st.booleans())


@given(happens=st.lists(passes | steps | long | starts, max_size=12), is_busy=st.booleans())
@settings(deadline=None)
def test_the_calendar_never_goes_back_and_while_something_runs_it_hardly_hurries(happens, is_busy):
    clocks, least_us = Clocks(), UNIX_US
    for what, value in happens:
        before = Instant(clocks.now_us(), clocks.elapsed_us)
        if what == "passes":
            clocks.passes(value, None if is_busy else MAX_TIME_US)
            went_us, passed_us = clocks.now_us() - before.calendar_us, clocks.elapsed_us - before.elapsed_us
            assert not is_busy or went_us <= passed_us + passed_us * SLEW_PPM // PPM + 1
        elif what == "steps":
            clocks.wall_us += value
        else:
            clocks.restarts(is_same_boot=value or is_busy)
        assert clocks.now_us() >= least_us
        least_us = clocks.now_us()


class SteppedMachine(RuleBasedStateMachine):
    """A ledger whose clock is set by any hour, and what its promises really use, in elapsed time."""

    def __init__(self):
        super().__init__()
        self.clocks, self.ledger = Clocks(), Ledger(chile_illinois(), DEFAULT_POLICY)
        self.count = 0
        self.until_us = {}  # by promise that is in use: until when it may be, elapsed time, and how much it is
        self.held_us = {}  # by hold, until when it must hold, elapsed time

    def _acts(self):
        """The ledger takes in what is due; nothing may have ended before its time."""
        elapsed_us = self.clocks.elapsed_us
        for moved in self.ledger.tick(self.clocks.now_us()):
            name = moved.reservation_id
            lasts_us = (moved.end_us - moved.start_us) * (PPM - SLEW_PPM) // PPM - 1
            if moved.state is ReservationState.PROVISIONING:
                late_us = max(0, self.clocks.now_us() - moved.start_us)
                self.until_us[name] = elapsed_us + lasts_us - late_us, moved.rate_bps
            elif moved.state in ENDED:
                assert elapsed_us >= self.held_us.pop(name, 0), "a hold has lapsed before its time"
                until_us, _ = self.until_us.pop(name, (None, 0))
                assert until_us is not None or moved.reason != "its whole time passed while no controller ran"
                assert until_us is None or elapsed_us >= until_us, "it has ended before its time"

    @rule(step_us=st.sampled_from([HOUR_US, -HOUR_US, 30 * S, -30 * S]))
    def is_set(self, step_us):
        """Somebody sets the wall clock."""
        self.clocks.wall_us += step_us

    @rule(us=st.sampled_from([S // 3, 10 * S, 100 * S, CONFIRMED_US + S]))
    def passes(self, us):
        """Time passes, second by second."""
        for part_us in (*itertools.repeat(S, us // S), us % S):
            self.clocks.passes(part_us, self.ledger.free_until_us())
            self._acts()

    @rule()
    def starts_again(self):
        """Another controller takes over, on the same machine."""
        self.clocks.restarts(free_until_us=self.ledger.free_until_us())

    @rule(
        in_us=st.sampled_from([0, 50 * S, 3000 * S]),
        lasts_us=st.sampled_from([30 * S, 1000 * S]),
        part=st.sampled_from([2, 3]),
        is_committed=st.booleans(),
    )
    def reserves(self, in_us, lasts_us, part, is_committed):
        """Somebody asks; part of what is refused is right."""
        self._acts()
        now_us = self.clocks.now_us()
        request = Request(
            a_end="la-serena",
            z_end="champaign",
            flow_class=FlowClass.URGENT,
            rate_bps=BOOKABLE // part,
            start_us=now_us + in_us,
            end_us=now_us + in_us + lasts_us,
        )
        self.count += 1
        name = f"r{self.count}"
        if isinstance(self.ledger.hold(request, Created(name, now_us)), Refused):
            return
        if is_committed:
            self.ledger.happened(name, LifecycleEvent.COMMIT, now_us)
        else:
            hold_us = min(HOLD_US, in_us + lasts_us)
            self.held_us[name] = self.clocks.elapsed_us + hold_us * (PPM - SLEW_PPM) // PPM - 1
        self._acts()

    @invariant()
    def nothing_is_sold_twice(self):
        """What is in use, in elapsed time, fits."""
        used_bps = sum(bps for until_us, bps in self.until_us.values() if self.clocks.elapsed_us < until_us)
        assert used_bps <= BOOKABLE


TestStepped = SteppedMachine.TestCase
TestStepped.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
