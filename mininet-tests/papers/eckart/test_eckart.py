"""The paper's numbers, the fluid against the bucket that it must obey, and what a run writes."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mininet_tests.papers.eckart import run as experiment
from mininet_tests.papers.eckart.aims import aims
from mininet_tests.papers.eckart.figure6 import (
    MB_BITS,
    MBIT,
    TICK_S,
    Setting,
    drained_while_waiting,
    figure6,
    steady,
    transferred,
)
from mininet_tests.papers.eckart.printed import TABLE_3
from mininet_tests.testing.aims import stated


@pytest.fixture(scope="module")
def report():
    return experiment.report()


def test_nothing_falls_short(report):
    both = stated(aims(report))
    assert both["falls_short"] == [], both["aims"]


def test_it_writes_a_report_and_a_picture(tmp_path):
    assert experiment.main(["--out", str(tmp_path)]) == 0
    assert json.loads((tmp_path / "report.json").read_text())["falls_short"] == []
    assert (tmp_path / "eckart.png").stat().st_size > 10_000


def test_a_disk_that_is_better_fed_would_be_found_out(report):
    spoilt = json.loads(json.dumps(report))
    spoilt["table_3"][3]["predicted_mbps"] += 0.02
    assert stated(aims(spoilt))["falls_short"]


@settings(max_examples=25, deadline=None)
@given(st.sampled_from((figure6, drained_while_waiting)), st.sampled_from(TABLE_3), st.sampled_from((0.1, 0.5, 1.0)))
def test_nothing_arrives_that_the_bucket_would_not_have_taken(rule, row, epoch_s):
    size_mb, disk_mbps, *_ = row
    setting = Setting(size_mb * MB_BITS, 750 * MB_BITS, steady(disk_mbps * MBIT), epoch_s=epoch_s)
    run = transferred(setting, rule(setting.line_bps))
    soonest_s = max(size_mb * 8 / 1000, (size_mb - 750) * 8 / disk_mbps)
    assert run.across_s >= soonest_s - TICK_S
    assert run.kept_s >= size_mb * 8 / disk_mbps - TICK_S
    assert run.most_bits <= setting.memory_bits
