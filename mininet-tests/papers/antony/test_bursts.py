"""Bursts in the lab: the formulas are what is measured, and Headway loses nothing where others do."""

import json

import pytest

from mininet_tests.lab import commands
from mininet_tests.lab.played import relayed
from mininet_tests.papers.antony.run import STARTS

LEAST_IDLE_SHARE = 0.03  # saturation.py
AROUND = 0.03  # of the formula: a frame in 7,000 is lost or not by where the bucket's tokens stand

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.timeout(1900),
]


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What ``mininet-tests/run antony --quick`` has seen of starts, by experiment; other flows take hours."""
    folder = tmp_path_factory.mktemp("bursts")
    command = commands.module("papers.antony.run", *STARTS, "fig5", "--quick", "--out", str(folder))
    assert relayed("antony", command) == 0
    return {file.stem: json.loads(file.read_text()) for file in folder.glob("*.json")}


def test_nothing_falls_short(seen):
    assert seen["report"]["falls_short"] == []


def starts(seen, experiment, sender):
    """The points of a sender; there is at least one, and the CPU was not full."""
    found = [one for one in seen[experiment]["points"] if one["sender"] == sender]
    assert found
    assert min(one["idle_share"] for one in found) >= LEAST_IDLE_SHARE
    return found


def test_the_smallest_buffer_without_loss_is_that_of_the_formula(seen):
    printed = seen["freemon"]["printed_mb"]
    for one in starts(seen, "freemon", "whole window"):
        assert one["smallest_bytes"] is not None, one
        # the quick search asks whether it lies between both ends
        assert abs(one["smallest_bytes"] - one["predicted_bytes"]) <= AROUND * one["predicted_bytes"], one
        assert abs(one["smallest_bytes"] / 1e6 - printed[str(one["senders"])]) < 1, one
        lost = [tried["dropped"] for tried in one["tried"] if tried["buffer_bytes"] < one["smallest_bytes"]]
        assert lost, "no smaller buffer was tried"
        assert min(lost) > 0, one


def test_paced_senders_lose_nothing_in_a_buffer_of_their_departures(seen):
    for one in starts(seen, "freemon", "headway"):
        assert one["buffer_bytes"] < 500_000  # of 11 and 20 MB
        assert (one["dropped"], one["sent_again"]) == (0, 0), one


def test_the_first_packet_is_lost_where_equation_1_says_and_then_one_in_three(seen):
    report = seen["antony_fig2"]
    predicted, measured = report["predicted"], report["measured"]
    assert report["idle_share"] >= LEAST_IDLE_SHARE
    assert abs(measured["passing"] / predicted["passing"] - 1) < AROUND, measured
    assert abs(measured["lost"] / predicted["lost"] - 1) < AROUND, measured
    one_in = 1 / measured["share_lost_after_first"]
    assert abs(one_in - 900 / 278) < 0.1, measured
    assert measured["most_lost_in_a_row"] == 1, measured
    assert abs(measured["nic_bps"] / 900e6 - 1) < 0.01, measured
    assert abs(measured["port_bps"] / 622e6 - 1) < 0.01, measured


@pytest.mark.parametrize("sender", ["whole window", "slow start"])
def test_unpaced_senders_lose_where_their_window_overruns_the_buffer_and_only_there(seen, sender):
    found = starts(seen, "antony_fig4", sender)
    forbidden = [one for one in found if one["predicted_bytes"] > seen["antony_fig4"]["buffer_bytes"]]
    assert 0 < len(forbidden) < len(found)
    wrong = [one for one in found if bool(one["dropped"]) is not (one in forbidden)]
    assert wrong == []


def test_headway_loses_nothing_on_either_side_of_the_forbidden_area_nor_in_it(seen):
    found = starts(seen, "antony_fig4", "headway")
    (curve,) = (one for one in seen["antony_fig4"]["curve"] if one["rtt_ms"] == found[0]["rtt_ms"])
    inside = [curve["low_bps"] < one["port_bps"] < curve["high_bps"] for one in found]
    assert sum(inside) >= 2
    assert any(one["port_bps"] < curve["low_bps"] for one in found)
    assert any(one["port_bps"] > curve["high_bps"] for one in found)
    assert [one for one in found if one["dropped"] or one["sent_again"]] == []
