"""A file of 200 MB to a disk of 280 Mbit/s in the lab: held to it, not held, and by TCP alone."""

import json

import pytest

from mininet_tests.lab import commands
from mininet_tests.lab.played import relayed
from mininet_tests.papers.eckart.cells import FREE, HELD

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.timeout(2200)]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The report of the quick cells."""
    folder = tmp_path_factory.mktemp("receiver")
    assert relayed("receiver", commands.module("papers.eckart.tables", "--quick", "--out", str(folder))) == 0
    return json.loads((folder / "report.json").read_text())


def test_what_the_receiver_cannot_take_is_others_and_nobody_waits_longer(found):
    assert not found["not_measured"]
    assert found["falls_short"] == [], found["aims"]
    by_who = {one["who"]: one for one in found["transfers"].values()}
    assert by_who[HELD]["background_mb"] > 1.2 * by_who[FREE]["background_mb"]
