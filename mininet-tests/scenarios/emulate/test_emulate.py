"""A network that no experiment is made for, in the lab: the rates of its plan arrive, and a promise is kept."""

import json
import subprocess

import pytest

from mininet_tests.lab import commands
from mininet_tests.testing.networks import FILES, FOLDER

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.timeout(1900)]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Its report: jumbo frames, a VLAN that is another one at the far end, hosts of two subnets."""
    out = tmp_path_factory.mktemp("emulate")
    files = "--network", str(FILES["two-lines"]), "--play", str(FOLDER / "two-lines-play.yaml")
    command = commands.module("scenarios.emulate.demo", *files, "--lab", "--delay", "fibre=60 ms", "--out", str(out))
    subprocess.run(command, check=True)
    assert (out / "figure.png").exists()
    return json.loads((out / "report.json").read_text())


def test_over_ipv6_and_to_a_site_that_is_not_ours_what_is_planned_arrives(tmp_path):
    files = "--network", str(FILES["three-sites"]), "--play", str(FOLDER / "three-sites-play.yaml")
    subprocess.run(commands.module("scenarios.emulate.demo", *files, "--lab", "--out", str(tmp_path)), check=True)
    seen = json.loads((tmp_path / "report.json").read_text())
    assert seen["falls_short"] == [], seen["aims"]
    assert {f"{name}: delivered of what was planned" for name in ("replica", "archive", "mirror", "image", "back")} <= {
        *seen["aims"]
    }


def test_over_several_switches_of_a_site_and_beside_a_host_without_an_agent_what_is_planned_arrives(tmp_path):
    files = "--network", str(FILES["two-switches"]), "--play", str(FOLDER / "two-switches-play.yaml")
    subprocess.run(commands.module("scenarios.emulate.demo", *files, "--lab", "--out", str(tmp_path)), check=True)
    seen = json.loads((tmp_path / "report.json").read_text())
    assert seen["falls_short"] == [], seen["aims"]
    assert {f"{name}: delivered of what was planned" for name in ("near", "across")} <= {*seen["aims"]}
    assert seen["transfers"]["stranger"]["received_bytes"] > 0


def test_nothing_falls_short(report):
    assert report["falls_short"] == [], report["aims"]


def test_every_transfer_is_told_of_and_the_image_has_a_promise(report):
    aims = set(report["aims"])
    assert {f"{name}: delivered of what was planned" for name in ("replication", "nightly", "image")} <= aims
    assert "image: later than promised, ms" in aims
    assert report["transfers"]["image"]["received_bytes"] == 60_000_000
