"""Bursts: what a port must hold, against a queue that is followed tick by tick; and what senders are told to do."""

import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.plan import bursts
from controller.plan.bursts import (
    MBIT,
    Choice,
    Sender,
    Source,
    chosen_unpaced,
    departure_bytes,
    needed_bytes,
    resumed_bytes,
)
from topology.wire import Framing

GIGABIT = 1000 * MBIT
WINDOW_BYTES = 22_500_000  # Freemon 2013: 1 Gbit/s, 180 ms
TICKS_PER_S = 200
rates = st.integers(5, 60).map(lambda n: n * 8 * TICKS_PER_S)  # whole bytes a tick
sources = st.builds(Source, rates, st.integers(0, 2_000))


def ticked_bytes(arrivals, port_bps):
    """The peak of a queue, followed tick by tick. Args: for each source the tick it starts at and itself; the port."""
    left = [[start, source.burst_bytes, source.nic_bps / (8 * TICKS_PER_S)] for start, source in arrivals]
    queue = peak = 0.0
    tick = 0
    while any(rest for _, rest, _ in left):
        for one in left:
            comes = min(one[1], one[2]) if tick >= one[0] else 0
            one[1] -= comes
            queue += comes
        queue = max(0.0, queue - port_bps / (8 * TICKS_PER_S))
        peak = max(peak, queue)
        tick += 1
    return peak


def a_tick_bytes(some, port_bps):
    """What one tick can be wrong by: all arrive, or the port sends, for the whole of it."""
    return (sum(s.nic_bps for s in some) + port_bps) / (8 * TICKS_PER_S)


@pytest.mark.parametrize(("senders", "printed_mb"), [(2, 11), (10, 20)])
def test_the_buffers_that_freemon_prints_are_those_of_the_formula(senders, printed_mb):
    need = needed_bytes([Source(GIGABIT, WINDOW_BYTES // senders)] * senders, GIGABIT)
    assert need == WINDOW_BYTES - WINDOW_BYTES // senders
    assert round(need / 1e6) == printed_mb


@settings(deadline=None)
@given(st.lists(sources, min_size=1, max_size=5), rates)
def test_the_formula_is_the_peak_of_a_queue_that_is_followed(some, port_bps):
    peak = ticked_bytes([(0, s) for s in some], port_bps)
    assert abs(needed_bytes(some, port_bps) - peak) <= a_tick_bytes(some, port_bps) + 1


@given(st.integers(1, 10**4), st.integers(1, 10**11), st.integers(1, 10**11), st.integers(1, 10**7))
def test_equal_senders_need_the_closed_form(senders, nic_bps, port_bps, each_bytes):
    need = needed_bytes([Source(nic_bps, each_bytes)] * min(senders, 50), port_bps)
    count = min(senders, 50)
    form = count * each_bytes * (1 - Fraction(port_bps, count * nic_bps))
    assert need - 1 < max(form, 0) <= need


def test_ever_more_senders_need_the_whole_window_and_never_more():
    need = [needed_bytes([Source(GIGABIT, WINDOW_BYTES // n)] * n, GIGABIT) for n in (1, 2, 10, 100, 1000)]
    assert need[0] == 0
    assert need == sorted(need)
    assert 0.998 * WINDOW_BYTES < need[-1] < WINDOW_BYTES


@given(st.lists(sources, min_size=1, max_size=5), rates, rates, st.integers(0, 2_000))
def test_more_bytes_faster_interfaces_another_sender_and_a_slower_port_never_need_less(some, port_bps, more_bps, more):
    need = needed_bytes(some, port_bps)
    first, *others = some
    assert needed_bytes([Source(first.nic_bps + more_bps, first.burst_bytes), *others], port_bps) >= need
    assert needed_bytes([Source(first.nic_bps, first.burst_bytes + more), *others], port_bps) >= need
    assert needed_bytes([*some, Source(more_bps, more)], port_bps) >= need
    assert needed_bytes(some, port_bps + more_bps) <= need


@given(st.lists(sources, min_size=1, max_size=5), rates)
def test_nothing_is_needed_for_what_comes_no_faster_than_it_leaves(some, port_bps):
    assert needed_bytes(some, sum(s.nic_bps for s in some)) == 0
    assert needed_bytes(some, port_bps) <= sum(s.burst_bytes for s in some)


@given(st.lists(st.tuples(rates, st.integers(0, 500), rates), min_size=1, max_size=4))
def test_those_who_go_on_at_the_rate_of_the_port_need_their_departures_and_no_more(drawn):
    some = [Source(nic_bps + then_bps, burst_bytes, then_bps) for nic_bps, burst_bytes, then_bps in drawn]
    need = needed_bytes(some, sum(s.then_bps for s in some))
    assert need == sum(s.burst_bytes for s in some)


@given(st.lists(sources, max_size=4), st.lists(st.tuples(rates, st.integers(0, 500), rates), max_size=4), rates)
def test_paced_and_others_need_no_more_than_each_with_its_own_part_of_the_port(some, drawn, left_bps):
    paced = [Source(nic_bps + then_bps, burst_bytes, then_bps) for nic_bps, burst_bytes, then_bps in drawn]
    own_bps = sum(s.then_bps for s in paced)
    apart = needed_bytes(paced, max(1, own_bps)) + needed_bytes(some, left_bps)
    assert needed_bytes([*paced, *some], own_bps + left_bps) <= apart


def test_no_buffer_is_enough_for_what_goes_on_above_the_rate():
    with pytest.raises(ValueError, match="has no end"):
        needed_bytes([Source(GIGABIT, 1, 2 * MBIT)], MBIT)


# What is chosen.


def hosts(*some):
    return [Sender(f"h{n}", source) for n, source in enumerate(some)]


def test_what_fits_is_left_as_it_is():
    chosen = chosen_unpaced(hosts(*[Source(GIGABIT, 1_000_000)] * 2), GIGABIT, 1_000_000)
    assert (chosen.choice, chosen.needed_bytes) == (Choice.NOTHING, 1_000_000)


def test_two_with_the_ports_own_speed_start_one_after_the_other():
    chosen = chosen_unpaced(hosts(*[Source(GIGABIT, 11_250_000)] * 2), GIGABIT, 6_250_000)
    assert (chosen.choice, chosen.offsets_us, chosen.needed_bytes) == (Choice.STAGGER, (0, 90_000), 0)
    assert chosen.reason == (
        "without an agent h0, h1 can put 11.2 MB at once into 6.2 MB; started at 0.0, 90.0 ms they need 0 B"
    )


def test_one_that_overruns_the_buffer_alone_has_its_interface_slowed():
    chosen = chosen_unpaced(hosts(Source(10 * GIGABIT, WINDOW_BYTES)), GIGABIT, 6_250_000)
    assert (chosen.choice, chosen.nic_bps) == (Choice.CAP, 1_384 * MBIT)  # 1 Gbit/s / (1 - 6.25 / 22.5) = 1384.6
    assert chosen.needed_bytes <= 6_250_000


some_hosts = st.lists(sources, min_size=1, max_size=5).map(lambda some: hosts(*some))


@settings(deadline=None)
@given(some_hosts, rates, st.integers(0, 3_000))
def test_what_is_chosen_fits_a_queue_that_is_followed(senders, port_bps, free_bytes):
    chosen = chosen_unpaced(senders, port_bps, free_bytes)
    some = [s.source for s in senders]
    offsets_us = chosen.offsets_us or (0,) * len(some)
    if chosen.nic_bps is not None:
        some = [Source(min(s.nic_bps, chosen.nic_bps), s.burst_bytes) for s in some]
    starts = [us * TICKS_PER_S // 1_000_000 for us in offsets_us]
    assert chosen.needed_bytes <= free_bytes
    peak = ticked_bytes(list(zip(starts, some, strict=True)), port_bps)
    assert peak <= chosen.needed_bytes + (len(some) + 1) * a_tick_bytes(some, port_bps)


@given(some_hosts, rates, st.integers(0, 3_000))
def test_a_cap_is_chosen_only_where_one_after_another_does_not_fit_and_that_only_where_all_at_once_do_not(
    senders, port_bps, free_bytes
):
    choice = chosen_unpaced(senders, port_bps, free_bytes).choice
    at_once = needed_bytes([s.source for s in senders], port_bps)
    alone = [needed_bytes([s.source], port_bps) for s in senders]
    assert (choice is Choice.NOTHING) is (at_once <= free_bytes)
    if choice is Choice.CAP:
        assert len(senders) == 1 or max(alone) > free_bytes


@given(some_hosts, rates, st.integers(0, 3_000))
def test_a_cap_is_as_high_as_the_buffer_allows(senders, port_bps, free_bytes):
    chosen = chosen_unpaced(senders, port_bps, free_bytes)
    if chosen.nic_bps is not None and chosen.nic_bps < MBIT:
        some = [Source(min(s.source.nic_bps, chosen.nic_bps + 1), s.source.burst_bytes) for s in senders]
        assert needed_bytes(some, port_bps) > free_bytes


def test_what_leaves_at_once_is_what_the_kernel_part_says():
    text = (Path(__file__).parents[3] / "hostagent/bpf/sharing.h").read_text()
    said = {name: int(value) for name, value in re.findall(r"^#define (\w+) (\d+)\b", text, re.MULTILINE)}
    assert said["UNIT_PER_S"] == bursts.UNITS_PER_S
    assert said["START_SEGMENTS"] == bursts.LEAST_UNIT_SEGMENTS
    assert said["LARGEST_UNIT_BYTES"] == bursts.LARGEST_UNIT_BYTES
    assert said["UNPACED_SEGMENTS"] == bursts.UNPACED_SEGMENTS


@given(st.integers(1, 10**11), st.sampled_from([1500, 9000]))
def test_above_its_rate_come_two_and_a_half_departures_of_a_millisecond_and_64_kb_at_most(payload_bps, mtu_bytes):
    framing = Framing(mtu_bytes)
    segments = resumed_bytes(payload_bps, framing) // (mtu_bytes + 14)
    assert 4 <= segments <= max(4, 1.75 * (65_536 // framing.mss_bytes + 1) + 1)
    assert (segments - 3) * framing.mss_bytes <= max(2 * framing.mss_bytes, 2.5 * payload_bps / 8 / 1024)
    new_segments = departure_bytes(payload_bps, framing) // (mtu_bytes + 14)
    assert new_segments == segments + bursts.UNPACED_SEGMENTS
