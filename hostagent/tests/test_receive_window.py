"""TCP buffers, on files that stand for the sysctls."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostagent.doctor.buffers import LARGEST_BYTES, Numbers, receive_buffer, send_buffer
from hostagent.doctor.receive_window import TcpBuffers, Windows, wanted_sysctls
from hostagent.log import log

USUAL = Numbers((4096, 131072, 6291456))
NOTHING = Windows(0, (), 1448)
GIGABYTE = 10**9


@pytest.fixture
def sysctl(tmp_path: Path) -> Path:
    """The settings of a namespace that is not the first: the kernel's own limits are not seen."""
    (tmp_path / "tcp_rmem").write_text("4096\t131072\t6291456\n")
    (tmp_path / "tcp_wmem").write_text("4096\t16384\t4194304\n")
    return tmp_path


@pytest.fixture
def first(sysctl: Path) -> Path:
    """The settings of the first namespace."""
    (sysctl / "tcp_mem").write_text("100\t200\t300\n")
    (sysctl / "rmem_max").write_text("212992\n")
    return sysctl


def buffers_in(sysctl: Path) -> TcpBuffers:
    return TcpBuffers(sysctl / "state.json", sysctl, sysctl)


def now(sysctl: Path, name: str = "tcp_rmem") -> list[str]:
    return (sysctl / name).read_text().split()


def windows(receive_bytes: int, *segments: int) -> Windows:
    return Windows(receive_bytes, segments, 1448)


@given(st.integers(0, 2**40), st.integers(0, 2**30))
def test_buffers_never_shrink_and_never_overflow(window_bytes, segments):
    for ours in (receive_buffer(USUAL, window_bytes), send_buffer(USUAL, segments)):
        assert USUAL.of[0] <= ours.of[1] <= ours.of[2] <= LARGEST_BYTES
        assert ours.of[1] >= USUAL.of[1]
        assert ours.of[2] >= USUAL.of[2]


def test_what_was_there_comes_back(first):
    buffers = buffers_in(first)
    buffers.fit(windows(20_000_000, 1000))
    assert now(first) == ["4096", "40000000", "40000000"]
    assert now(first, "rmem_max") == ["20000000"]
    buffers.close()
    assert now(first) == ["4096", "131072", "6291456"]
    assert now(first, "tcp_wmem") == ["4096", "16384", "4194304"]
    assert now(first, "tcp_mem") == ["100", "200", "300"]
    assert now(first, "rmem_max") == ["212992"]
    assert not (first / "state.json").exists()


def test_no_window_asked_puts_the_hosts_own_back(sysctl):
    buffers = buffers_in(sysctl)
    buffers.fit(windows(20_000_000))
    buffers.fit(NOTHING)
    assert now(sysctl) == ["4096", "131072", "6291456"]


def test_after_a_kill_the_next_start_puts_back(first):
    buffers_in(first).fit(windows(20_000_000))
    buffers_in(first)
    assert now(first) == ["4096", "131072", "6291456"]
    assert now(first, "tcp_mem") == ["100", "200", "300"]


def test_what_somebody_else_has_set_since_stays(sysctl):
    buffers = buffers_in(sysctl)
    buffers.fit(windows(20_000_000))
    (sysctl / "tcp_rmem").write_text("4096 1 2")
    buffers.close()
    assert now(sysctl) == ["4096", "1", "2"]


def test_what_somebody_else_takes_back_is_set_again_with_the_next_renewal(first):
    buffers = buffers_in(first)
    with log.captured() as logs:
        for _ in range(3):
            buffers.fit(windows(20_000_000, 1000))
        assert not [one for one in logs if one["event"] == "buffers.changed"]
        (first / "tcp_rmem").write_text("4096 87380 6291456")  # sysctl --system
        (first / "tcp_mem").write_text("100 200 300")
        for _ in range(2):
            buffers.fit(windows(20_000_000, 1000))
    said = [(one["log_level"], one["setting"], one["to"]) for one in logs if one["event"] == "buffers.changed"]
    assert said == [
        ("warning", "net.ipv4.tcp_rmem", "4096 87380 6291456"),
        ("warning", "net.ipv4.tcp_mem", "100 200 300"),
    ]
    assert now(first) == ["4096", "40000000", "40000000"] == buffers.shown["tcp_rmem"].split()
    assert int(now(first, "tcp_mem")[1]) > 200
    buffers.close()
    assert now(first) == ["4096", "87380", "6291456"], "what the host has set last is its own"


@pytest.mark.parametrize("asked", [windows(20_000_000), NOTHING], ids=["a plan", "no plan"])
def test_what_somebody_else_has_set_wider_than_the_plan_stays(sysctl, asked):
    buffers = buffers_in(sysctl)
    buffers.fit(asked)
    (sysctl / "tcp_rmem").write_text("4096 90000000 90000000")
    with log.captured() as logs:
        for window in (asked, windows(30_000_000, 1000), NOTHING):
            buffers.fit(window)
            assert now(sysctl) == ["4096", "90000000", "90000000"]
    assert not [one for one in logs if one["event"] == "buffers.changed"]
    buffers.close()
    assert now(sysctl) == ["4096", "90000000", "90000000"]
    assert not (sysctl / "state.json").exists()


def test_after_a_kill_what_the_host_has_set_last_is_put_back(sysctl):
    killed = buffers_in(sysctl)
    killed.fit(windows(20_000_000))
    (sysctl / "tcp_rmem").write_text("4096 87380 6291456")
    killed.fit(windows(20_000_000))
    buffers_in(sysctl)
    assert now(sysctl) == ["4096", "87380", "6291456"]


def test_a_setting_of_its_own_that_may_not_be_written_is_said_once_and_the_others_are_set(sysctl):
    buffers = buffers_in(sysctl)
    (sysctl / "tcp_rmem").unlink()
    (sysctl / "tcp_rmem").mkdir()
    with log.captured() as logs:
        for receive_bytes in (20_000_000, 20_000_000, 30_000_000):
            buffers.fit(windows(receive_bytes, 1000))
    assert len([one for one in logs if one["event"] == "buffers.refused"]) == 1
    assert int(now(sysctl, "tcp_wmem")[2]) > 4194304
    assert buffers.shown["tcp_rmem"] == "4096 131072 6291456"


def test_another_boots_state_is_not_put_back(sysctl):
    buffers_in(sysctl).fit(windows(20_000_000))
    state = json.loads((sysctl / "state.json").read_text())
    (sysctl / "state.json").write_text(json.dumps(state | {"boot_id": "another"}))
    buffers_in(sysctl)
    assert now(sysctl) == ["4096", "40000000", "40000000"]


def test_the_kernels_limit_makes_room_for_what_all_windows_may_take():
    ours = wanted_sysctls(
        {"tcp_rmem": USUAL, "tcp_wmem": USUAL, "tcp_mem": Numbers((1, 2, 3))}, windows(10**8, 500), GIGABYTE * 9
    )
    assert ours["tcp_mem"].of[1] * 4096 >= 4 * 2 * 10**8 + 2_304_000
    assert ours["tcp_mem"].of[1] * 4096 <= 9 * GIGABYTE // 2, "half of the memory stays for others"


def test_a_limit_that_may_not_be_written_is_said_once_with_the_command(first):
    limit = first / "tcp_mem"
    buffers = buffers_in(first)
    limit.unlink()
    limit.mkdir()  # cannot be written, by root either
    with log.captured() as logs:
        buffers.fit(windows(20_000_000))
        buffers.fit(windows(20_000_000))
        buffers.fit(windows(30_000_000))
    said = [one for one in logs if one["event"] == "buffers.limited"]
    assert [log["by"] for log in said] == ["net.ipv4.tcp_mem"]
    assert said[0]["fix"].startswith('sysctl -w net.ipv4.tcp_mem="')
    assert now(first) == ["4096", "60000000", "60000000"], "the namespace's own are set all the same"


def test_a_limit_that_cannot_be_seen_is_said_once_with_the_place(sysctl):
    buffers = buffers_in(sysctl)
    with log.captured() as logs:
        buffers.fit(windows(20_000_000))
        buffers.fit(windows(30_000_000))
    (said,) = [one for one in logs if one["event"] == "buffers.limited"]
    assert "in the host's first network namespace" in said["fix"]


def test_a_namespace_that_only_shows_rmem_max_is_left_its_rmem_max(sysctl):
    (sysctl / "rmem_max").write_text("212992\n")
    with log.captured() as logs:
        buffers_in(sysctl).fit(windows(20_000_000))
    assert now(sysctl, "rmem_max") == ["212992"]
    assert [one["by"] for one in logs if one["event"] == "buffers.limited"] == ["net.ipv4.tcp_mem"]


def test_windows_larger_than_half_of_the_memory_are_warned_of(sysctl):
    buffers = buffers_in(sysctl)
    with log.captured() as logs:
        buffers.fit(windows(1_000_000, 10_000_000_000))
    assert [one["log_level"] for one in logs if one["event"] == "buffers.large"] == ["warning"]


def test_the_memory_it_may_cost_is_said_with_what_was_set(sysctl):
    with log.captured() as logs:
        buffers_in(sysctl).fit(windows(20_000_000, 500, 500))
    (said,) = [one for one in logs if one["event"] == "buffers.set"]
    assert said["may_take_bytes"] == 4 * 40_000_000 + 2 * 2_304_000
