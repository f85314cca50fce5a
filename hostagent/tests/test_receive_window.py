"""TCP buffers, on files that stand for the sysctls."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostagent.receive_window import LARGEST_BYTES, Buffers, TcpBuffers, receiving, sending

USUAL = Buffers(4096, 131072, 6291456)


@pytest.fixture
def sysctl(tmp_path: Path) -> Path:
    (tmp_path / "tcp_rmem").write_text("4096\t131072\t6291456\n")
    (tmp_path / "tcp_wmem").write_text("4096\t16384\t4194304\n")
    (tmp_path / "tcp_mem").write_text("1\t2\t3\n")
    return tmp_path


def buffers_in(sysctl: Path) -> TcpBuffers:
    return TcpBuffers(sysctl / "state.json", sysctl, sysctl)


def now(sysctl: Path, name: str = "tcp_rmem") -> list[str]:
    return (sysctl / name).read_text().split()


@given(st.integers(0, 2**40), st.integers(0, 2**30))
def test_buffers_never_shrink_and_never_overflow(window_bytes, segments):
    for wanted in (receiving(USUAL, window_bytes), sending(USUAL, segments)):
        assert USUAL.least <= wanted.default <= wanted.largest <= LARGEST_BYTES
        assert wanted.default >= USUAL.default
        assert wanted.largest >= USUAL.largest


def test_what_was_there_comes_back(sysctl):
    buffers = buffers_in(sysctl)
    buffers.fit(20_000_000, 1000)
    assert now(sysctl) == ["4096", "40000000", "40000000"]
    buffers.close()
    assert now(sysctl) == ["4096", "131072", "6291456"]
    assert now(sysctl, "tcp_wmem") == ["4096", "16384", "4194304"]
    assert not (sysctl / "state.json").exists()


def test_no_window_asked_puts_the_hosts_own_back(sysctl):
    buffers = buffers_in(sysctl)
    buffers.fit(20_000_000, 0)
    buffers.fit(0, 0)
    assert now(sysctl) == ["4096", "131072", "6291456"]


def test_after_a_kill_the_next_start_puts_back(sysctl):
    buffers_in(sysctl).fit(20_000_000, 0)
    buffers_in(sysctl)
    assert now(sysctl) == ["4096", "131072", "6291456"]


def test_what_somebody_else_has_set_since_stays(sysctl):
    buffers = buffers_in(sysctl)
    buffers.fit(20_000_000, 0)
    (sysctl / "tcp_rmem").write_text("4096 1 2")
    buffers.close()
    assert now(sysctl) == ["4096", "1", "2"]


def test_another_boots_state_is_not_put_back(sysctl):
    buffers_in(sysctl).fit(20_000_000, 0)
    state = json.loads((sysctl / "state.json").read_text())
    (sysctl / "state.json").write_text(json.dumps(state | {"boot_id": "another"}))
    buffers_in(sysctl)
    assert now(sysctl) == ["4096", "40000000", "40000000"]
