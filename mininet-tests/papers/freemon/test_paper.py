"""Cells of the paper in the lab, end to end: the limit is reached and never beaten, and what is lost is sent again."""

import json

import pytest

from mininet_tests.lab import commands
from mininet_tests.lab.played import relayed
from mininet_tests.papers.freemon.limits import IMAGE_SLICE_BYTES, Way
from mininet_tests.papers.freemon.result import results

NO_LOSS, SINGLE, WHOLE = (
    "table-reused-no-loss-180ms-0",
    "table-reused-packet-180ms-0.01",
    "table-reused-super-packet-180ms-1",
)

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(900),
]


BOOTS = (NO_LOSS,), (SINGLE, WHOLE)


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What a cell has shown, and the folder it is in; those of one boot are measured when the first is asked for."""
    folders = {}

    def of(name):
        names = next(boot for boot in BOOTS if name in boot)
        if names not in folders:
            folders[names] = folder = tmp_path_factory.mktemp("paper")
            only = "--only", f"^({'|'.join(names)})$"
            assert (
                relayed("freemon", commands.module("papers.freemon.run", "--quick", *only, "--out", str(folder))) == 0
            )
        lines = (folders[names] / "cells.jsonl").read_text().splitlines()
        return results(json.loads(line) for line in lines)[name], folders[names]

    return of


@pytest.mark.parametrize(
    "name", [NO_LOSS, pytest.param(SINGLE, marks=pytest.mark.long), pytest.param(WHOLE, marks=pytest.mark.long)]
)
def test_no_transfer_beats_the_limit(seen, name):
    found, _ = seen(name)
    assert min(found.times_s) >= Way().limit_s(IMAGE_SLICE_BYTES)


def test_without_loss_the_limit_is_reached_to_a_few_milliseconds(seen):
    found, _ = seen(NO_LOSS)
    assert found.over_limit_rtts(found.median_s) <= 0.02
    assert found.again_share == 0


def test_what_was_measured_is_on_the_page_and_what_was_not_is_missing(seen):
    _, folder = seen(NO_LOSS)
    numbers = json.loads((folder / "summary.json").read_text())
    assert numbers["table2"]["cells"] == 1
    assert numbers["rivals"] is numbers["ten_gbit"] is None
    assert "| 180 ms | 2.4" in (folder / "results.md").read_text()


@pytest.mark.long
def test_single_packets_that_are_lost_are_sent_again_and_cost_two_round_trips_at_most(seen):
    found, folder = seen(SINGLE)
    for run in found.cell["runs_seen"]:
        assert 5 <= run["lost_segments"] <= 40, "one in ten thousand, of 185,656"
        assert run["lost_segments"] == run["dropped_segments"] == run["again_segments"]
    assert found.over_limit_rtts(max(found.times_s)) <= 2.1
    assert json.loads((folder / "summary.json").read_text())["table2"]["cells"] == 1


@pytest.mark.long
def test_a_super_packet_is_lost_whole(seen):
    found, _ = seen(WHOLE)
    again = [run["again_segments"] for run in found.cell["runs_seen"]]
    assert min(again) > 800, f"one in a hundred of 4,200 super-packets with 44 segments each: {again}"
