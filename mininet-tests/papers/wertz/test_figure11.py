"""Figure 11 from what a striped mover took: rates as at the paper's, beside the model, and how far off they may be."""

import pytest

from mininet_tests.papers.wertz.figure11 import report
from mininet_tests.papers.wertz.pftp import LANE_BPS, Pftp, takes_s

TENTH_BPS = 10**8


@pytest.mark.parametrize(("late", "falls_short"), [(1.0, []), (1.05, ["4 streams in lock step: of the model"])])
def test_a_tenth_of_the_rates_is_shown_as_the_whole_and_judged_by_the_model(late, falls_short):
    took_s = takes_s(Pftp(4, slow_start=False, setup=0)) * late
    one = {"streams": 4, "lock_step": True, "took_s": took_s, "lane_bps": LANE_BPS // 10}
    found = report({"rate_bps": TENTH_BPS, "idle_share": 1.0, "transfers": [one]})
    (row,) = found["figure_11_in_lock_step"]
    assert row["model_mb_per_s"] == pytest.approx(375.1, abs=0.1)  # as SimGrid says
    assert row["mb_per_s"] == pytest.approx(375.1 / late, abs=0.1)
    assert found["falls_short"] == falls_short
