"""When an image has arrived, as the scenario counts it."""

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
