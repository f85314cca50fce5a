"""What a store takes, measured: by courses of writing that a bucket would give, and by a real file."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostagent.stores.measure import BLOCK_BYTES, NoSpace, Written, bend, measure_of, measured

MB, MBIT = 10**6, 10**6


def course(rate_bps, drain_bps, room_bytes, size_bytes, block=1_000_000):
    """How a bucket accepts blocks that are offered at a rate, and when all is drained."""
    at_s, found = 0.0, []
    for number in range(size_bytes // block):
        done = (number + 1) * block
        offered_s = number * block * 8 / rate_bps
        fits_s = max(0, done - room_bytes) * 8 / drain_bps  # until then there is no room for it
        at_s = max(at_s, offered_s, fits_s)
        found.append(Written(at_s, done))
    return found, max(at_s, found[-1].size_bytes * 8 / drain_bps)


@given(st.integers(100, 2_000), st.integers(2, 9), st.integers(50, 2_000))
def test_room_and_drain_of_a_bucket_are_found(rate_mbps, tenths, room_mb):
    rate_bps, drain_bps = rate_mbps * MBIT, rate_mbps * MBIT * tenths // 10
    until_held_up = room_mb * MB * 10 // (10 - tenths)
    found, kept_s = course(rate_bps, drain_bps, room_mb * MB, 2 * until_held_up + rate_bps // 8 * 6)
    seen = measure_of(found, rate_bps, kept_s)
    assert seen.is_held_up
    assert seen.drain_bps == pytest.approx(drain_bps, rel=0.02)
    assert seen.room_bytes == pytest.approx(room_mb * MB, rel=0.05, abs=3 * MB)
    assert seen.largest_bytes == pytest.approx(until_held_up, rel=0.1, abs=10 * MB)


def test_a_writer_that_is_a_moment_behind_from_its_first_blocks_on_is_not_held_up_by_that():
    found, kept_s = course(1_000 * MBIT, 280 * MBIT, 75 * MB, 300 * MB)
    behind = [replace(one, at_s=max(one.at_s, one.size_bytes * 8 / 1e9 + 0.03)) for one in found]
    seen = measure_of(behind, 1_000 * MBIT, kept_s)
    assert seen.room_bytes == pytest.approx(75 * MB, rel=0.05)


@pytest.mark.parametrize(("slept_s", "is_held_up"), [(0.01, False), (9.0, True)])
def test_a_writer_that_waits_for_a_cpu_is_not_held_up_by_the_store(slept_s, is_held_up):
    found, kept_s = course(1_000 * MBIT, 500 * MBIT, 0, 250 * MB)
    seen = measure_of([replace(one, slept_s=slept_s) for one in found], 1_000 * MBIT, kept_s)
    assert seen.is_held_up is is_held_up
    assert seen.came_bps == pytest.approx(500 * MBIT, rel=0.01)
    assert seen.is_short_of_cpu is not is_held_up


def test_a_disk_that_is_counted_says_itself_what_it_drains():
    found, kept_s = course(1_000 * MBIT, 280 * MBIT, 75 * MB, 300 * MB)
    idle_s = 0.2  # until its kernel begins to write; and the page cache fills up further while the writer is held up
    counted = [replace(one, on_disk_bytes=round(max(0, one.at_s - idle_s) * 275 * MBIT / 8)) for one in found]
    seen = measure_of(counted, 1_000 * MBIT, idle_s + 300 * MB * 8 / (275 * MBIT))
    assert seen.drain_bps == pytest.approx(275 * MBIT, rel=0.001)
    at = bend(counted, 1_000 * MBIT)
    assert seen.room_bytes == pytest.approx(at.size_bytes - at.on_disk_bytes, rel=0.001)
    assert idle_s < seen.idle_s < idle_s + 0.05
    assert measure_of(found, 1_000 * MBIT, kept_s).idle_s is None
    never = [replace(one, on_disk_bytes=0) for one in found]
    assert measure_of(never, 1_000 * MBIT, kept_s).idle_s == found[-1].at_s
    others = [replace(one, on_disk_bytes=one.size_bytes * 9) for one in found]
    assert measure_of(others, 1_000 * MBIT, kept_s).drain_bps == pytest.approx(280 * MBIT, rel=0.02)


def in_bursts(found, pause_s, drain_bps, idle_s):
    """The same, by a kernel that holds a writer up in pauses, and of a disk that is counted; ends after a pause."""
    held_up_s = bend(found, 1_000 * MBIT).at_s
    late = [
        one if one.at_s < held_up_s else replace(one, at_s=one.at_s // pause_s * pause_s + pause_s) for one in found
    ]
    late[-1] = replace(late[-1], at_s=late[-1].at_s + pause_s)
    return [replace(one, on_disk_bytes=round(max(0, one.at_s - idle_s) * drain_bps / 8)) for one in late]


@given(st.floats(0.02, 0.3), st.integers(150, 250), st.floats(0.05, 0.3))
def test_a_disk_s_rate_is_found_whatever_pauses_a_writer_is_held_up_in(pause_s, size_mb, idle_s):
    found, _ = course(1_000 * MBIT, 280 * MBIT, 75 * MB, size_mb * MB)
    counted = in_bursts(found, pause_s, 280 * MBIT, idle_s)
    seen = measure_of(counted, 1_000 * MBIT, idle_s + size_mb * MB * 8 / (280 * MBIT))
    assert seen.drain_bps == pytest.approx(280 * MBIT, rel=0.005)


def test_a_disk_that_writes_nothing_until_it_is_told_to_is_measured_by_what_it_does_then():
    found, _ = course(800 * MBIT, 200 * MBIT, 10**12, 400 * MB)
    waiting = [replace(one, on_disk_bytes=0) for one in found]
    seen = measure_of(waiting, 800 * MBIT, found[-1].at_s + 16)
    assert (seen.drain_bps, seen.room_bytes) == (200 * MBIT, 400 * MB)
    assert not seen.is_held_up


def test_a_store_that_is_never_held_up_has_at_least_what_waited_for_the_disk_at_the_end():
    found, kept_s = course(800 * MBIT, 200 * MBIT, 10**12, 1_000 * MB)
    seen = measure_of(found, 800 * MBIT, kept_s)
    assert not seen.is_held_up
    assert seen.drain_bps == pytest.approx(200 * MBIT, rel=0.02)
    assert seen.room_bytes == pytest.approx(750 * MB, rel=0.02)


def test_a_store_as_fast_as_the_rate_takes_any_file():
    found, kept_s = course(100 * MBIT, 100 * MBIT, 0, 100 * MB)
    seen = measure_of(found, 100 * MBIT, kept_s)
    assert seen.largest_bytes is None or seen.largest_bytes > 10**9


def test_a_real_file_is_written_and_gone_afterwards(tmp_path):
    told = []
    seen = measured(tmp_path, 800 * MBIT, 20 * BLOCK_BYTES, told.append)
    assert seen.written_bytes == 20 * BLOCK_BYTES
    assert seen.drain_bps > 0
    assert told
    assert all(one.slept_s is not None and one.slept_s <= one.at_s for one in told)
    assert list(tmp_path.iterdir()) == []


def test_it_is_gone_too_if_it_is_interrupted(tmp_path):
    def interrupt(_one):
        assert list(tmp_path.iterdir())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measured(tmp_path, 800 * MBIT, 20 * BLOCK_BYTES, interrupt)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_without_the_room_is_left_alone(tmp_path):
    with pytest.raises(NoSpace, match="bytes free"):
        measured(tmp_path, 800 * MBIT, 1 << 60, lambda one: None)
    assert list(Path(tmp_path).iterdir()) == []
