"""The arithmetic of bytes and windows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology.wire import Framing, Layer, conversion, converted_bps, cwnd_segments, transfer_us

rates = st.integers(1, 10**12)


def test_the_paper_measured_its_best_window_within_one_percent_of_the_formula():
    formula = cwnd_segments(converted_bps(10**9, Layer.WIRE, Layer.PAYLOAD, Framing()), 180_000, 1448)
    assert formula < 14_764 < 1.01 * formula


@pytest.mark.parametrize(
    ("percent", "paper_segments"), [(5, 738), (95, 14_026), (1, 148), (47, 6_939)], ids=["efd", "raw", "floor", "image"]
)
def test_the_papers_windows_are_shares_of_its_total(percent, paper_segments):
    assert abs(14_764 * percent / 100 - paper_segments) < 1


def test_a_jumbo_frame_carries_five_percent_more():
    small, jumbo = (converted_bps(10**9, Layer.WIRE, Layer.PAYLOAD, Framing(mtu)) for mtu in (1500, 9000))
    assert 1.05 < jumbo / small < 1.06


def test_a_vlan_tag_counts_on_the_wire_and_nowhere_above():
    plain, tagged = Framing(), Framing(vlan_tags=1)
    assert tagged.segment_bytes(Layer.WIRE) == plain.segment_bytes(Layer.WIRE) + 4
    for layer in (Layer.PAYLOAD, Layer.IP, Layer.FRAME):
        assert tagged.segment_bytes(layer) == plain.segment_bytes(layer)


@given(
    rates, st.sampled_from(Layer), st.sampled_from(Layer), st.sampled_from([Framing(), Framing(9000), Framing(1500, 2)])
)
def test_a_rate_converted_there_and_back_never_grows(rate_bps, one, other, framing):
    there = converted_bps(rate_bps, one, other, framing)
    assert conversion(one, other, framing)(rate_bps) == there
    assert converted_bps(there, other, one, framing) <= rate_bps


@given(rates, st.integers(1, 10**6), st.integers(16, 8948))
def test_the_window_covers_the_bandwidth_delay_product_and_no_segment_more(payload_bps, rtt_us, mss_bytes):
    segments = cwnd_segments(payload_bps, rtt_us, mss_bytes)
    assert (segments - 1) * mss_bytes * 8_000_000 < payload_bps * rtt_us <= segments * mss_bytes * 8_000_000


@given(st.integers(1, 10**10), rates, st.integers(1, 10**6))
def test_no_transfer_is_quicker_than_its_bytes_at_full_rate(size, payload_bps, rtt_us):
    assert (transfer_us(size, payload_bps, rtt_us) - rtt_us) * payload_bps >= size * 8_000_000


@pytest.mark.parametrize(("rate", "rtt", "mss"), [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_a_window_of_nothing_is_refused(rate, rtt, mss):
    with pytest.raises(ValueError, match="positive"):
        cwnd_segments(rate, rtt, mss)


def test_an_mtu_that_holds_no_payload_is_refused():
    with pytest.raises(ValueError, match="cannot carry TCP"):
        Framing(mtu_bytes=60)
