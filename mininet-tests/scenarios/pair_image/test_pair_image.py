"""An image whose leader dies, in the lab; and when one has arrived, as the scenario counts it."""

import pytest

from mininet_tests.lab.played import played
from mininet_tests.scenarios.pair_image.report import arrived_us

SEEN = {
    "image_hosts": ["base20", "base21"],
    "part_bytes": 100,
    "received": [
        [1_000, {"base20": 50, "base21": 70}],
        [3_000, {"base20": 150, "base21": 120}],
        [4_000, {"base20": 155, "base21": 170}],
        [5_000, {"base20": 160, "base21": 175}],
    ],
}


def test_an_image_has_arrived_when_the_last_of_its_hosts_bytes_has():
    assert arrived_us({"marks": {"begun_us": 2_000}}, SEEN) == 4_000


@pytest.mark.lab
@pytest.mark.long
@pytest.mark.timeout(1500)
def test_an_image_is_on_time_whatever_becomes_of_who_leads(tmp_path):
    found = played("scenarios.pair_image.run", tmp_path, dilation=4, timeout_s=1400, report="report.json")
    assert found["falls_short"] == [], found["aims"]
