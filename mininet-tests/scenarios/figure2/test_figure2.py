"""The whole of it in the lab, shorter than the demo: controller, switches, agents, real TCP, one image."""

import json

import pytest

from mininet_tests.lab import commands
from mininet_tests.lab.played import relayed

PART_BYTES = 20_000_000

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(2500),
]


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Where one run of the scenario at 100 Mbit/s has written its report."""
    folder = tmp_path_factory.mktemp("figure2")
    command = commands.module(
        "scenarios.figure2.demo", "--rate", "100 Mbit/s", "--part-bytes", str(PART_BYTES), "--exact"
    )
    code = relayed("figure2", [*command, "--lead", "2", "--tail", "2", "--out", str(folder)])
    logs = "\n".join(f"== {log.name}\n{log.read_text()[-2000:]}" for log in sorted((folder / "logs").glob("*.log")))
    assert code == 0, logs
    return folder


@pytest.fixture(scope="module")
def report(out):
    """Its report."""
    return json.loads((out / "report.json").read_text())


def test_nothing_falls_short(report):
    assert report["falls_short"] == [], report["aims"]


def test_the_image_is_sent_whole(report):
    assert report["urgent"]["bytes"] == 2 * PART_BYTES


def test_the_layers_were_looked_at_often(report):
    assert report["plan"]["samples"] > 20


def test_packets_are_lost_one_by_one(report):
    assert report["loss_model"] == "packet"


def test_background_and_database_were_one_connection_throughout(out):
    run = json.loads((out / "run.json").read_text())
    for host in ("base22", "base23"):
        data = [c for c in run["last_connections"][host] if c["sent_segments"] > 100]
        assert len(data) == 1, data


def test_every_process_left_its_log(out):
    logs = {log.stem for log in (out / "logs").glob("*.log")}
    assert {"controller", "agent-base20", "agent-arch", "ovs-vswitchd"} <= logs


def test_the_figure_is_drawn(out):
    assert (out / "figure.png").read_bytes().startswith(b"\x89PNG")
