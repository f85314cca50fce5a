"""The hand-over in the lab: how long the circuit is idle when an image comes and goes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the lab shares this machine's files with its guest"),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What came of an image on a warm and on a new connection, at 500 Mbit/s."""
    out = tmp_path_factory.mktemp("handover")
    inside = [str(HERE / "isolated.sh"), sys.executable, str(HERE / "handover.py"), "--out", str(out)]
    ours = ["--order", "demand"]
    command = [str(HERE / "lab"), "--dilation", "6", "--timeout", "1700", "--out", str(out), "--", *inside, *ours]
    done = subprocess.run(command, check=False)
    assert done.returncode == 0, "\n".join(log.read_text()[-2000:] for log in sorted(out.glob("*/logs/*.log")))
    return json.loads((out / "report.json").read_text())


def test_the_run_is_valid(report):
    assert report["valid"], report["cpu"]


# Seen: 15 to 25 ms, and 20 to 35 ms, in bins of 5 ms; the aim is 20. The cautious order takes 190 to 425 ms.
@pytest.mark.parametrize(("change", "most_ms"), [("start_gap_ms", 30), ("end_gap_ms", 45)])
@pytest.mark.parametrize("connection", ["warm", "fresh"])
def test_the_circuit_is_idle_for_milliseconds_only(report, connection, change, most_ms):
    (variant,) = (v for v in report["variants"] if v["connection"] == connection)
    assert variant[change] <= most_ms, variant


def test_nothing_is_lost_by_the_change_of_hands(report):
    assert [(v["drops"], v["retransmitted_segments"]) for v in report["variants"]] == [(0, 0), (0, 0)]
    assert report["violations"] == 0


def test_the_promise_is_kept(report):
    for variant in report["variants"]:
        assert variant["seconds"] <= variant["promised_seconds"]
