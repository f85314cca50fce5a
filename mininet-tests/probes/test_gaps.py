"""A gap is the line's silence, not that of a machine on which nobody looked."""

from unittest.mock import Mock

from mininet_tests.probes.invariant_watch import ARRIVED_EVERY_S, LOOK_COUNTS_AT_MOST_US, InvariantWatch

EVERY_US = round(ARRIVED_EVERY_S * 1e6)


def watched(looks: str) -> tuple[InvariantWatch, list[int]]:
    """Return a watch whose looks, one interval apart, found growth (+) or none (-) or were not made (a space)."""
    watch = InvariantWatch(Mock(), "receiver")
    watch.looks, watch.arrived = [(0, 0)], {"h": [(0, 0)]}
    counters, clock = Mock(), [(i + 1) * EVERY_US for i in range(len(looks))]
    total = 0
    for at_us, found in zip(clock, looks, strict=True):
        if found == " ":
            continue
        total += found == "+"
        counters.read.return_value = {"h": Mock(payload_bytes=total)}
        watch.arrive(counters, at_us)
    return watch, [0, *clock]


def gap_ms(looks: str) -> float:
    watch, times = watched(looks)
    return watch.longest_gap_ms("h", 0, times[-1])


def test_a_line_that_is_silent_while_it_is_looked_at_has_a_gap():
    assert gap_ms("++++----------++") == 11 * EVERY_US / 1000


def test_looks_that_were_not_made_count_as_two_intervals():
    assert gap_ms("++++          ++") == LOOK_COUNTS_AT_MOST_US / 1000
    assert gap_ms("++++-    -----++") == (1 + 2 + 5) * EVERY_US / 1000


def test_a_silence_to_the_end_is_a_gap_and_one_before_the_question_is_counted_from_where_it_began():
    assert gap_ms("++++--------") == 8 * EVERY_US / 1000
    watch, times = watched("++--------++")
    assert watch.longest_gap_ms("h", times[6], times[-1]) == 9 * EVERY_US / 1000


def test_each_gap_has_from_when_to_when_it_was():
    watch, times = watched("+--+")
    assert max(watch.gaps("h", times[1], times[-1])) == (3 * EVERY_US, times[1], times[4])
