"""The saturation check: pure part by tables, the meter by one short run."""

import pytest

from mininet_tests.lab.saturation import CpuTimes, IdleMeter, cpu_times, idle_shares, verdict


def test_waiting_for_a_disk_and_nice_time_count_as_idle():
    assert cpu_times("cpu  10 3 20 60 5 1 1 0 9 9\ncpu0 1 2\n") == CpuTimes(idle_ticks=68, total_ticks=100)


def test_text_that_is_not_proc_stat_is_refused():
    with pytest.raises(ValueError, match="not the text of /proc/stat"):
        cpu_times("intr 1 2 3 4 5 6 7 8 9")


def test_shares_are_of_the_intervals_not_since_boot():
    samples = [CpuTimes(1000, 2000), CpuTimes(1050, 2100), CpuTimes(1050, 2200)]
    assert idle_shares(samples) == [0.5, 0.0]


def test_an_interval_without_a_tick_is_left_out():
    assert idle_shares([CpuTimes(5, 10), CpuTimes(5, 10), CpuTimes(6, 12)]) == [0.5]


@pytest.mark.parametrize(
    ("shares", "saturated"),
    [([0.5, 0.03], False), ([0.5, 0.029], True), ([0.0], True), ([1.0], False)],
    ids=["just enough", "one busy interval", "full", "idle"],
)
def test_one_interval_below_the_threshold_spoils_the_run(shares, saturated):
    assert verdict(shares, least_idle_share=0.03).saturated is saturated


def test_a_run_that_was_not_watched_is_not_judged():
    with pytest.raises(ValueError, match="no interval"):
        verdict([])


def test_the_meter_sees_its_own_busy_loop_end():
    with IdleMeter(interval_s=0.05) as meter:
        sum(range(3_000_000))
    judged = meter.verdict()
    assert 0.0 <= judged.least_idle_share <= judged.mean_idle_share <= 1.0
