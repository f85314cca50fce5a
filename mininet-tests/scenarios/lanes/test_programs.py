"""What programs over lanes are told."""

import pytest

from mininet_tests.scenarios.lanes.programs import PROGRAMS, RESERVED_SHARE, window_bytes
from mininet_tests.testing.networks import two_lanes
from topology.wire import Layer, converted_bps


@pytest.mark.parametrize("rate_bps", [10**9, 4 * 10**7])
def test_no_path_of_an_even_load_needs_more_than_its_lane_has_reserved(rate_bps):
    network = two_lanes(rate_bps)
    needed = {
        link.circuit: 8_000_000 * window_bytes(network) / (2 * link.delay_us) for _, _, link in network.circuit_links
    }
    payload_bps = {
        link.circuit: converted_bps(round(link.rate_bps * RESERVED_SHARE), Layer.WIRE, Layer.PAYLOAD, network.framing)
        for _, _, link in network.circuit_links
    }
    assert needed["south"] == pytest.approx(0.95 * payload_bps["south"], rel=1e-3)
    assert needed["north"] < 0.6 * payload_bps["north"]  # it has twice the rate, and a load as the other's


def test_the_program_with_an_even_load_is_told_its_window():
    words = {"own_addresses": "10.20.20.20,10.20.20.120", "address": "10.20.20.100", "port": 6001, "size": 7}
    assert PROGRAMS["sctp-cmt"].client.format(**words, window=141).endswith("--to 10.20.20.100 --window 141")
    assert [name for name, program in PROGRAMS.items() if program.is_even] == ["sctp-cmt"]
