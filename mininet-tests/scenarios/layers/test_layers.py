"""Every layer counts right, in the lab: what it lets through of TCP's payload is what the wire arithmetic says."""

import pytest

from mininet_tests.lab.played import played

WITHIN = 0.001  # of what is expected; a tag that is counted where it is not, or the reverse, is 0.0026 at MTU 1500
WITHIN_A_SUPER_PACKET = 0.005  # a meter drops them whole, and a few hundred pass while it is measured
LAYERS = ("pacing", "meter", "queue", "port", "line")

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.timeout(1500),
]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """One row for each layer, MTU, tag and kind of packet."""
    folder = tmp_path_factory.mktemp("layers")
    report = played("scenarios.layers.run", folder, dilation=3, timeout_s=1200, report="report.json")
    assert report["idle_share"] >= 0.03, f"the CPU was full: idle {report['idle_share']:.1%}"
    return report["rows"]


def within(row):
    """What a figure may be off."""
    return WITHIN_A_SUPER_PACKET if row["layer"] == "meter" and not row["single_packets"] else WITHIN


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("vlan", [False, True], ids=["untagged", "tagged"])
@pytest.mark.parametrize("mtu_bytes", [1500, 9000])
def test_a_layer_lets_through_what_the_wire_arithmetic_says(rows, mtu_bytes, vlan, layer):
    seen = [r for r in rows if (r["mtu_bytes"], r["vlan"], r["layer"]) == (mtu_bytes, vlan, layer)]
    # Single packets, super-packets; and with a tag the one inside the frame, for what can see it.
    assert len(seen) == (3 if vlan and layer in ("queue", "port", "line") else 2)
    for row in seen:
        assert abs(row["error"]) < within(row), row


def test_what_arrives_is_the_rate_that_was_set_wherever_each_segments_headers_are_counted(rows):
    for row in rows:
        if row["single_packets"] or row["layer"] != "meter":
            assert abs(row["above_set"]) < WITHIN, row


def test_a_meter_lets_super_packets_through_faster_by_at_most_their_headers_and_never_slower(rows):
    for row in rows:
        if row["layer"] == "meter" and not row["single_packets"]:
            headers = 66 / (row["mtu_bytes"] - 52)
            assert -within(row) < row["above_set"] < headers + within(row), row


def test_the_plan_drops_nothing_of_what_its_own_host_sends(rows):
    assert [r["dropped"] for r in rows if r["layer"] == "pacing"] == [0] * sum(r["layer"] == "pacing" for r in rows)
    assert all(r["dropped"] > 20 for r in rows if r["layer"] == "meter"), "the flood was none"
