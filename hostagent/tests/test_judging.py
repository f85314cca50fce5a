"""What the kernel part takes for catastrophic loss, by histories of thousands of transfers. Needs a C compiler."""

import shutil
from dataclasses import replace

import pytest

from hostagent.kernel.plan import Tuning
from hostagent.tests.judging import LossJudge, LossyPath, built, seeded

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

TRANSFERS = 1_000
SEGMENTS_PER_S = 81_274  # 1 Gbit/s at an MTU of 1500
PERIOD_S = Tuning().loss_period_us / 1e6


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return built(tmp_path_factory.mktemp("judge"))


def fallen(library, seed: int, transfers: int, together: int, reused: bool) -> list[str]:
    """Which of the transfers at 1%, 400 to 800 ms, of one to three windows, a pause between them, fell off the plan."""
    rng = seeded(seed)
    judge, at_s, seen = LossJudge(library), 100.0, []
    for number in range(transfers):
        path = LossyPath(rng.uniform(0.3, 1) * SEGMENTS_PER_S, rng.uniform(0.4, 0.8), 0.01, together)
        segments = int(rng.uniform(0.1, 3) * path.window_segments)
        if not reused:
            judge.connect()
        last = list(path.transfer(at_s, segments, rng))
        if (fell_s := judge.fell_s(path, iter(last))) is not None:
            seen.append(f"{number}: {path}, {segments} segments, after {fell_s - at_s:.2f} s")
            judge = LossJudge(library)
        at_s = last[-1].at_s + rng.uniform(0.01, 1.5) * PERIOD_S
    return seen


@pytest.mark.parametrize("reused", [True, False], ids=["reused", "new"])
def test_none_of_a_thousand_transfers_at_one_percent_falls_off_the_plan(library, reused):
    assert fallen(library, 1, TRANSFERS, 1, reused) == []


@pytest.mark.parametrize("reused", [True, False], ids=["reused", "new"])
def test_nor_does_one_that_loses_super_packets(library, reused):
    assert fallen(library, 2, TRANSFERS, 44, reused) == []


@pytest.mark.parametrize("rtt_s", [0.05, 0.18, 0.4, 0.8])
@pytest.mark.parametrize("loss", [0.25, 0.3, 0.5, 0.75])
def test_a_catastrophe_trips_within_two_periods_and_what_tcp_needs_to_find_it(library, rtt_s, loss):
    rng = seeded(3)
    good = LossyPath(SEGMENTS_PER_S / 8, rtt_s, 0.0)
    judge = LossJudge(library)
    for began_s in (100.0, 110.0):
        assert judge.fell_s(good, good.transfer(began_s, int(5 * good.segments_per_s), rng)) is None
    bad = replace(good, loss=loss)
    fell_s = judge.fell_s(bad, bad.transfer(120.0, int(30 * bad.segments_per_s), rng))
    assert fell_s is not None
    assert fell_s - 120.0 <= 2 * PERIOD_S + 4 * rtt_s


def test_a_catastrophe_trips_a_slow_allocation_too(library):
    slow = LossyPath(SEGMENTS_PER_S / 1000, 0.18, 0.4)
    fell_s = LossJudge(library).fell_s(slow, slow.transfer(100.0, 10_000, seeded(4)))
    assert fell_s is not None
    assert fell_s - 100 <= 9 * PERIOD_S


@pytest.mark.parametrize("gap_s", [0.5, 4.0, 20.0])
def test_a_tail_that_died_in_an_outage_does_not_punish_the_next_transfer(library, gap_s):
    path = LossyPath(SEGMENTS_PER_S, 0.18, 0.0)
    for share in range(20):  # of the period, when the outage begins
        judge, began_s, rng = LossJudge(library), 100.0, seeded(share)
        ended_s = began_s + 3 + share / 20 * PERIOD_S
        segments = int((ended_s - began_s) * path.segments_per_s)
        first = list(path.transfer(began_s, segments, rng, (ended_s - 0.15, ended_s + 0.4)))
        assert judge.fell_s(path, iter(first)) is None
        assert judge.fell_s(path, path.transfer(first[-1].at_s + gap_s, segments, rng)) is None
