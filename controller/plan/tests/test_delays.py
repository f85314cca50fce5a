"""What is measured of a circuit's delay: the least that hosts see, within the bound of the network's file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.plan.clock import Instant
from controller.plan.delays import PERIOD_US, CircuitTime, DelayBound, DelayVerdict, MeasuredDelay, MeasuredDelays

S = 1_000_000
BOUND = DelayBound(300_000, ends=2)


class Looking:
    """MeasuredDelays, and what became of all that was seen."""

    def __init__(self, bound=BOUND, delays=None):
        self.bound, self.delays, self.news, self.now_us = bound, delays or MeasuredDelays(), [], 1_000 * S

    def sees(self, delay_us, end="ls1", host="base20", seconds=1):
        """A host sees a delay each second, so many times."""
        for _ in range(seconds):
            self.now_us += S
            seen = CircuitTime("north", end, host, delay_us)
            self.delays, found = self.delays.seen(seen, self.bound, Instant(self.now_us, self.now_us))
            self.news += [] if found is None else [found]

    def both_see(self, delay_us, seconds):
        """So do hosts at both ends."""
        for _ in range(seconds):
            self.sees(delay_us)
            self.sees(delay_us, "ch1", "arch")

    @property
    def goes_by_us(self):
        return self.delays.measured_us.get("north", self.bound.most_us)


def test_it_is_measured_when_both_ends_have_seen_it_for_ten_seconds():
    look = Looking()
    look.sees(90_500, seconds=30)
    assert look.goes_by_us == 300_000, "the other end may see less"
    look.sees(90_000, "ch1", "arch")
    (news,) = look.news
    assert (news.verdict, news.before_us, news.seen.hosts) == (DelayVerdict.TAKEN, 300_000, ("arch", "base20"))
    assert look.goes_by_us == 90_000


def test_the_beginning_of_a_transfer_says_nothing_yet():
    look = Looking()
    look.both_see(250_000, 4)
    assert look.goes_by_us == 300_000


def test_one_end_is_enough_where_the_other_is_not_ours():
    look = Looking(DelayBound(300_000, ends=1))
    look.sees(90_000, seconds=12)
    assert look.goes_by_us == 90_000


def test_if_only_one_end_sees_it_that_is_enough_after_ten_minutes():
    look = Looking()
    look.sees(90_000, seconds=PERIOD_US // S + 2)
    assert look.goes_by_us == 90_000


def test_less_is_taken_at_once_and_more_when_nothing_less_was_seen_for_ten_minutes():
    look = Looking()
    look.both_see(90_000, 20)
    look.sees(60_000)
    assert look.goes_by_us == 60_000
    look.both_see(120_000, PERIOD_US // S // 2 - 100)
    assert look.goes_by_us == 60_000, "it may be a queue"
    look.both_see(120_000, PERIOD_US // S)
    assert look.goes_by_us == 120_000
    assert [one.verdict for one in look.news].count(DelayVerdict.TAKEN) == 3


def test_a_noisy_line_does_not_change_the_plan_each_second():
    look = Looking()
    for n in range(1200):
        look.both_see(90_000 + 400 * (n % 2), 1)
    assert [one.verdict for one in look.news].count(DelayVerdict.TAKEN) == 1


@pytest.mark.parametrize("delay_us", [0, -40, 300_001])
def test_what_cannot_be_is_refused_and_said_once_each_ten_minutes(delay_us):
    look = Looking()
    look.both_see(delay_us, 100)
    assert look.goes_by_us == 300_000
    assert [one.verdict for one in look.news] == [DelayVerdict.REFUSED]


def test_of_a_line_that_has_become_longer_than_its_bound_nothing_is_known():
    look = Looking()
    look.both_see(90_000, 20)
    look.both_see(400_000, PERIOD_US // S + 400)
    assert look.goes_by_us == 300_000
    assert look.delays.measured_us == {}


@given(st.lists(st.tuples(st.sampled_from(["ls1", "ch1"]), st.integers(-10, 600_000), st.integers(1, 90)), max_size=40))
def test_the_plan_never_goes_by_more_than_the_bound_nor_by_less_than_was_ever_seen(history):
    look = Looking()
    for end, delay_us, seconds in history:
        look.sees(delay_us, end, f"host-{end}", seconds)
        assert 0 < look.goes_by_us <= 300_000
    seen = [delay_us for _, delay_us, _ in history if delay_us > 0]
    assert look.goes_by_us >= min([300_000, *seen])


def restored(*saved, bounds=None, known=None):
    delays = MeasuredDelays() if known is None else MeasuredDelays({known.circuit: known})
    return delays.restored(saved, {"north": BOUND} if bounds is None else bounds)


def test_what_an_earlier_controller_measured_holds_unless_ours_is_newer():
    older, newer = MeasuredDelay("north", 90_000, 1, ("arch",)), MeasuredDelay("north", 60_000, 2, ("arch",))
    assert restored(older)[0].measured_us == {"north": 90_000}
    assert restored(older, known=newer)[0].measured_us == {"north": 60_000}
    assert restored(newer, known=older)[0].measured_us == {"north": 60_000}


def test_what_the_file_says_by_now_is_forgotten_and_what_is_above_its_bound_refused():
    saved = MeasuredDelay("north", 90_000, 1, ("arch",))
    assert restored(saved, bounds={}) == (MeasuredDelays(), [])
    delays, refused = restored(saved, bounds={"north": DelayBound(80_000, ends=2)})
    assert delays.measured_us == {}
    assert [(one.verdict, one.before_us) for one in refused] == [(DelayVerdict.REFUSED, 80_000)]
    assert delays.restored((saved,), {"north": DelayBound(80_000, ends=2)}) == (delays, []), "it is said once"
