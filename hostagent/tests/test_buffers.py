"""The memory that windows take, and the settings that give it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostagent.doctor.buffers import (
    LARGEST_WINDOW_BYTES,
    PAGE_BYTES,
    Numbers,
    Wanted,
    largest_window_bytes,
    opening_round_trips,
    pages_for,
    scale,
    send_memory_bytes,
)
from topology.wire import Framing

TEN_GIGABIT = Wanted(10**10, 180_000, Framing())


def test_ten_gigabit_over_180_ms_is_what_the_reference_computes():
    assert TEN_GIGABIT.bdp_bytes == pytest.approx(212e6, rel=0.01)
    assert TEN_GIGABIT.send_buffer_bytes == pytest.approx(674e6, rel=0.01)
    assert TEN_GIGABIT.window_bytes == pytest.approx(635e6, rel=0.01)


def test_the_kernel_was_seen_to_take_2304000_bytes_for_500_segments():
    assert send_memory_bytes(500, 1448) == 2_304_000


def test_a_window_never_exceeds_what_tcp_can_announce():
    assert Wanted(10**12, 300_000, Framing()).window_bytes == LARGEST_WINDOW_BYTES


@given(st.integers(2**16, 2**31 - 1))
def test_half_of_a_buffer_can_be_announced_with_the_scale_it_gives(buffer_bytes):
    assert largest_window_bytes(scale(buffer_bytes)) >= buffer_bytes // 2 or scale(buffer_bytes) == 14


@pytest.mark.parametrize(("buffer_bytes", "offered"), [(6_291_456, 7), (33_554_432, 10), (2**31 - 1, 14), (4096, 0)])
def test_the_scale_is_what_the_kernel_offers(buffer_bytes, offered):
    assert scale(buffer_bytes) == offered


@given(st.integers(0, 10**12), st.integers(2**26, 10**12), st.tuples(*[st.integers(0, 2**30)] * 3))
def test_the_kernels_limit_only_grows_and_leaves_half_of_the_memory(memory_bytes, host_bytes, was):
    now = pages_for(Numbers(was), memory_bytes, host_bytes).of
    assert all(new >= old for new, old in zip(now, was, strict=True))
    assert now[1] == was[1] or (now[1] - 1) * PAGE_BYTES < host_bytes // 2


def test_a_usual_first_buffer_opens_a_long_path_in_eight_round_trips_and_a_whole_one_in_none():
    assert opening_round_trips(131_072, TEN_GIGABIT.bdp_bytes) == 8
    assert opening_round_trips(TEN_GIGABIT.receive_buffer_bytes, TEN_GIGABIT.bdp_bytes) == 0


def test_a_setting_reads_as_the_kernel_writes_it():
    assert str(Numbers.parsed("4096\t131072\t6291456\n")) == "4096 131072 6291456"
