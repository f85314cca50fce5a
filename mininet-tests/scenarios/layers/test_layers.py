"""Every layer counts right, in the lab: what it lets through of TCP's payload is what the wire arithmetic says."""

import pytest

from mininet_tests.lab.played import played
from mininet_tests.scenarios.layers.aims import row_name

LAYERS = ("pacing", "meter", "queue", "port", "line")

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.timeout(2200),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """One row for each layer, MTU, tag and kind of packet, and what all come to."""
    folder = tmp_path_factory.mktemp("layers")
    return played("scenarios.layers.run", folder, dilation=3, timeout_s=2100, report="report.json")


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("vlan", [False, True], ids=["untagged", "tagged"])
@pytest.mark.parametrize("mtu_bytes", [1500, 9000])
def test_every_layer_is_measured_in_every_way(report, mtu_bytes, vlan, layer):
    seen = [r for r in report["rows"] if (r["mtu_bytes"], r["vlan"], r["layer"]) == (mtu_bytes, vlan, layer)]
    # Single packets, super-packets; and with a tag the one inside the frame, for what can see it.
    assert len(seen) == (3 if vlan and layer in ("queue", "port", "line") else 2)
    for row in seen:
        assert f"{row_name(row)}: error" in report["aims"]


def test_each_lets_through_what_the_wire_arithmetic_says_and_the_plan_drops_nothing_of_its_own(report):
    assert report["falls_short"] == [], {name: report["aims"][name] for name in report["falls_short"]}
