"""What a run over lanes comes to."""

import doctest

import pytest

from mininet_tests.scenarios.lanes import programs, report, run
from mininet_tests.scenarios.lanes.report import LANES, transfer

RATES_BPS = {"base20": 800_000_000, "base20.eth1": 400_000_000}
RTTS_S = {"base20": 0.18, "base20.eth1": 0.2}
SIZE_BYTES = 1_500_000_000
STEP_US = 10_000


def received(rates_of):
    """Samples every 10 ms of lanes at rates by time."""
    counts, found = dict.fromkeys(LANES, 0), []
    for at_us in range(0, 30_000_000, STEP_US):
        found.append((at_us, dict(counts)))
        if sum(counts.values()) >= SIZE_BYTES:
            return found
        for lane, bps in rates_of(at_us).items():
            counts[lane] += bps * STEP_US // 8_000_000
    return found


def seen(rates_of, **more):
    samples = received(rates_of)
    looks = [{"at_us": at_us, "planned_bps": RATES_BPS} for at_us in range(0, samples[-1][0], 200_000)]
    return {"received": samples, "looks": looks, "announced_us": 0, "started_us": 0, "ended_us": samples[-1][0],
            "promise": {"promised_in_s": 11.0}, "connections": {"base20": 8, "base20.eth1": 4}, "told": [],
            "counted": {"out_of_order": 0, "sent_again": 0, "dropped": 0}, "violations": [], **more}  # fmt: skip


@pytest.mark.parametrize("module", [programs, report, run])
def test_examples(module):
    assert doctest.testmod(module).failed == 0


def test_lanes_at_their_plan_take_what_the_formula_says():
    found = transfer(seen(lambda _: RATES_BPS), SIZE_BYTES, RTTS_S)
    assert found["took_s"] == pytest.approx(found["formula_s"], abs=0.03)
    assert found["of_both_lanes"] == pytest.approx(1, abs=0.003)


def test_lanes_of_which_one_is_done_long_before_the_other_do_not():
    found = transfer(seen(lambda at_us: RATES_BPS | ({"base20": 0} if at_us > 6_000_000 else {})), SIZE_BYTES, RTTS_S)
    assert found["of_both_lanes"] < 0.9


def test_a_dead_lane_s_rest_is_late_by_how_long_nothing_of_it_came():
    moved = {"base20": 260_000_000, "base20.eth1": 140_000_000}

    def rates_of(at_us):
        if at_us < 5_000_000:
            return RATES_BPS
        return moved | ({"base20": 0} if at_us < 5_250_000 else {})

    line = "timestamp=1970-01-01T00:00:05.040000Z level=error event=announcement.late announcement=curl-north-dies"
    told = seen(rates_of, died_us=5_000_000, told=[line])
    for look in told["looks"]:
        look["planned_bps"] = RATES_BPS if look["at_us"] < 5_000_000 else moved
    found = transfer(told, SIZE_BYTES, RTTS_S)
    death = found["death"]
    assert death["back_at_plan_ms"] == {"base20": pytest.approx(250, abs=60), "base20.eth1": 0}
    assert death["said_to_be_late_after_ms"] == pytest.approx(40)
    assert death["rest_took_s"] == pytest.approx(death["rest_at_plan_s"] + 0.25 * 260 / 400, abs=0.05)
