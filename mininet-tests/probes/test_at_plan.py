"""When a flow is said to be back at its plan."""

from mininet_tests.probes.at_plan import SLICE_US, back_ms, bps

RATE_BPS = 80_000_000
DIED_US, UNTIL_US = 1_000_000, 3_000_000


def received(*gaps_us, rate_bps=RATE_BPS):
    """Samples every 10 ms of a flow at its rate, except in the gaps (from, until)."""
    count, samples = 0, []
    for at_us in range(0, UNTIL_US + 100_000, 10_000):
        samples.append((at_us, {"base20": count}))
        if not any(begin_us <= at_us < end_us for begin_us, end_us in gaps_us):
            count += rate_bps // 8 // 100
    return samples


def test_a_flow_that_never_stops_is_back_at_once():
    assert back_ms(received(), "base20", RATE_BPS, DIED_US, UNTIL_US) == 0


def test_a_flow_is_back_when_the_last_slice_that_lacked_something_has_ended():
    back = back_ms(received((DIED_US, DIED_US + 300_000)), "base20", RATE_BPS, DIED_US, UNTIL_US)
    assert 300 <= back <= 300 + SLICE_US / 1000


def test_a_slow_flow_may_lack_a_departure_in_a_slice():
    slow_bps = 2_400_000
    assert back_ms(received((1_500_000, 1_510_000), rate_bps=slow_bps), "base20", slow_bps, DIED_US, UNTIL_US) == 0
    assert back_ms(received((1_500_000, 1_530_000), rate_bps=slow_bps), "base20", slow_bps, DIED_US, UNTIL_US) > 500


def test_a_second_gap_counts():
    gaps = (DIED_US, DIED_US + 100_000), (DIED_US + 500_000, DIED_US + 600_000)
    assert back_ms(received(*gaps), "base20", RATE_BPS, DIED_US, UNTIL_US) >= 600


def test_a_flow_that_stays_away_or_below_its_plan_is_not_back():
    assert back_ms(received((DIED_US, UNTIL_US)), "base20", RATE_BPS, DIED_US, UNTIL_US) is None
    assert back_ms(received(rate_bps=RATE_BPS * 9 // 10), "base20", RATE_BPS, DIED_US, UNTIL_US) is None


def test_a_rate_is_what_has_arrived_over_the_time():
    assert bps(received(), "base20", 0, 1_000_000) == RATE_BPS
