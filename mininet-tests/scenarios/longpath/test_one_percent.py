"""A thousand transfers over a long line that loses one segment in a hundred."""

import pytest

from mininet_tests.scenarios.longpath.aims import MOST_RTTS

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.timeout(2000),
]


def test_none_of_a_thousand_transfers_at_one_percent_falls_off_the_plan(seen):
    saw = seen("one-percent")
    assert saw["transfers"] >= 1_000
    sent_again = saw["retransmitted_segments"] / saw["sent_segments"]
    assert 0.008 < sent_again < 0.02, f"{sent_again:.4f} sent again: is the loss what was asked for?"
    assert (saw["fell"], saw["fallbacks"]) == ([], 0)


def test_none_of_a_thousand_transfers_at_one_percent_is_more_than_four_round_trips_late(seen):
    more = {(one["rtt_ms"], one["new"]): sorted(one["seen"]) for one in seen("one-percent")["more_rtts"]}
    assert {path: latest[-3:] for path, latest in more.items() if latest[-1] > MOST_RTTS} == {}
