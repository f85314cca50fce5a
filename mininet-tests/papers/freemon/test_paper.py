"""Cells of the paper in the lab, end to end: the limit is reached and never beaten, and what is lost is sent again."""

import json

import pytest

from mininet_tests.lab import commands
from mininet_tests.lab.played import relayed
from mininet_tests.papers.freemon.limits import IMAGE_SLICE_BYTES, Way
from mininet_tests.papers.freemon.summary import results

NO_LOSS, SINGLE, WHOLE = (
    "table-reused-no-loss-180ms-0",
    "table-reused-packet-180ms-0.01",
    "table-reused-super-packet-180ms-1",
)

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Three of the quick cells, measured in one boot; and the folder they are in."""
    folder = tmp_path_factory.mktemp("paper")
    only = f"^({NO_LOSS}|{SINGLE}|{WHOLE})$"
    command = commands.module("papers.freemon.run", "--quick", "--only", only, "--out", str(folder))
    assert relayed("freemon", command) == 0
    return results(json.loads(line) for line in (folder / "cells.jsonl").read_text().splitlines()), folder


@pytest.mark.parametrize("name", [NO_LOSS, SINGLE, WHOLE])
def test_no_transfer_beats_the_limit(seen, name):
    found, _ = seen
    limit_s = Way().limit_s(IMAGE_SLICE_BYTES)
    assert min(found[name].times_s) >= limit_s


def test_without_loss_the_limit_is_reached_to_a_few_milliseconds(seen):
    found, _ = seen
    assert found[NO_LOSS].over_limit_rtts(found[NO_LOSS].median_s) <= 0.02
    assert found[NO_LOSS].again_share == 0


def test_single_packets_that_are_lost_are_sent_again_and_cost_two_round_trips_at_most(seen):
    found, _ = seen
    for run in found[SINGLE].cell["runs_seen"]:
        assert 5 <= run["lost_segments"] <= 40, "one in ten thousand, of 185,656"
        assert run["lost_segments"] == run["dropped_segments"] == run["again_segments"]
    assert found[SINGLE].over_limit_rtts(max(found[SINGLE].times_s)) <= 2.1


def test_a_super_packet_is_lost_whole(seen):
    found, _ = seen
    again = [run["again_segments"] for run in found[WHOLE].cell["runs_seen"]]
    assert min(again) > 800, f"one in a hundred of 4,200 super-packets with 44 segments each: {again}"


def test_what_was_measured_is_on_the_page_and_what_was_not_is_missing(seen):
    _, folder = seen
    numbers = json.loads((folder / "summary.json").read_text())
    assert numbers["table2"]["cells"] == 2
    assert numbers["rivals"] is numbers["ten_gbit"] is None
    assert "| 180 ms | 2.4" in (folder / "results.md").read_text()
