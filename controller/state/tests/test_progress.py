"""The rate of what a host delivers, from one telling to the next."""

from itertools import pairwise

import pytest

from controller.state.progress import progress
from controller.state.reported import NO_AGENT
from topology.telemetry import EntryTelemetry, Telemetry

S_US = 1_000_000


def telling(second, came_us, at_us):
    """What a host tells that delivers 100 Mbit/s."""
    seen = EntryTelemetry("image/base20", 1, 1, second * 12_500_000, 0, 0, 180_000, counted_since_ns=1)
    telemetry = Telemetry(7, 1000, (seen,), at_us=at_us)
    known = NO_AGENT._replace(connected=True, telemetry=telemetry, telemetry_us=came_us).telling
    assert known is not None
    return known


@pytest.mark.parametrize(
    ("says_when", "rates_bps"),
    [(True, [100_000_000] * 3), (False, [100_000_000, 33_333_333, 100_000_000_000])],
    ids=["host says when", "older agent"],
)
def test_what_is_told_late_and_together_is_no_other_rate_if_the_host_says_when_it_counted(says_when, rates_bps):
    """As after a lost segment, or while a stream is being dialled."""
    came_us = (S_US, 2 * S_US, 5 * S_US, 5 * S_US + 1000)
    tellings = [telling(second, at_us, second * S_US * says_when) for second, at_us in enumerate(came_us, start=1)]
    seen = [progress(before, now, {}, {})["image/base20"].delivered_bps for before, now in pairwise(tellings)]
    assert seen == rates_bps


def test_a_host_that_was_booted_anew_has_no_rate_yet():
    before, now = telling(1, S_US, 9 * S_US), telling(2, 2 * S_US, 5)
    assert progress(before, now, {}, {})["image/base20"].delivered_bps == 0
