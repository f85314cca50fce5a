"""Antony's formulas, against what the product says that a port must hold."""

from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from controller.plan.bursts import MBIT, Source, needed_bytes
from mininet_tests.papers.antony.formulas import forbidden_bps, lost_packets, passing_packets
from mininet_tests.papers.antony.points import GIGABIT


@given(st.integers(1, 10**5), st.integers(64, 9_000), st.integers(1, 999), st.integers(0, 10**7))
def test_as_many_packets_are_lost_as_the_buffer_lacks(packets, packet_bytes, port_mbit, buffer_bytes):
    port_bps = port_mbit * MBIT
    lost = lost_packets(packets, packet_bytes, GIGABIT, port_bps, buffer_bytes)
    over_bytes = packets * packet_bytes * (1 - Fraction(port_bps, GIGABIT)) - buffer_bytes
    assert lost == max(0, over_bytes // packet_bytes)


@given(st.integers(64, 9_000), st.integers(1, 999), st.integers(0, 10**7))
def test_the_longest_burst_without_a_loss_is_where_the_losses_begin(packet_bytes, port_mbit, buffer_bytes):
    passing = passing_packets(packet_bytes, GIGABIT, port_mbit * MBIT, buffer_bytes)
    need = needed_bytes([Source(GIGABIT, passing * packet_bytes)], port_mbit * MBIT)
    more = needed_bytes([Source(GIGABIT, (passing + 1) * packet_bytes)], port_mbit * MBIT)
    assert need <= buffer_bytes < more


@given(st.integers(1_000, 10**6), st.integers(10_000, 10**8), st.integers(1, 999))
@example(rtt_us=16_000, buffer_bytes=500_000, port_mbit=500)  # the vertex: 4 M / f
def test_the_forbidden_speeds_are_those_whose_window_overruns_the_buffer(rtt_us, buffer_bytes, port_mbit):
    port_bps = port_mbit * MBIT
    between = forbidden_bps(GIGABIT, rtt_us, buffer_bytes)
    window_bits = Fraction(port_bps * rtt_us, 10**6)
    short_bits = window_bits * (1 - Fraction(port_bps, GIGABIT)) - 8 * buffer_bytes  # eq. (3)
    if between is None or not between[0] <= port_bps <= between[1]:
        assert short_bits <= 1  # a root is rounded to 1 bit/s
    elif between[0] < port_bps < between[1]:
        assert short_bits > 0
