"""What a group of a coded tail gives back: the one cell that it lacks, bit for bit, or nothing."""

import ctypes as c
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology.parities import most_parities

SOURCE = Path(__file__).parent / "parity.c"
BPF = SOURCE.parent.parent / "bpf"
WORDS, ROWS, MOST_GROUPS, LEAST_ROWS = 192, 64, 1024, 8  # as in parity.h
OWNER, KEY, OTHER_KEY = 7, 0x0123456789ABCDEF, 0xD1B54A32D192ED03
MASK = (1 << 64) - 1


class ParityPiece(c.Structure):
    """``struct piece``."""

    _fields_ = (("owner", c.c_uint64), ("seen", c.c_uint64), ("sum", c.c_uint64), ("words", c.c_uint64 * WORDS))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The kernel part's own C, for this machine."""
    built = tmp_path_factory.mktemp("parity") / "parity.so"
    subprocess.run(["cc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", f"-I{BPF}", SOURCE, "-o", built], check=True)
    found = c.CDLL(str(built))
    found.rows.restype = found.give_back.restype = c.c_uint64
    found.worth.restype = c.c_bool
    found.worth.argtypes = found.groups_of.argtypes = (c.c_uint32, c.c_uint64, c.c_uint64)
    found.due.argtypes = (c.POINTER(c.c_uint64), c.c_uint64, c.c_uint64, c.c_uint32, c.c_uint32)
    found.add.argtypes = (c.c_void_p, c.c_void_p, c.c_uint64, c.c_uint32, c.c_uint64)
    found.give_back.argtypes = (c.c_void_p, c.c_void_p, c.c_uint64, c.c_uint32, c.c_uint64)
    return found


def words_of(data):
    return (c.c_uint64 * WORDS).from_buffer_copy(data.ljust(8 * WORDS, b"\0"))


def group_of(library, cells, *, key=KEY, without=None, piece=None):
    """What cells come to, but for one row; ``piece`` may have belonged to another block."""
    piece = piece or ParityPiece()
    for row, cell in enumerate(cells):
        if row != without:
            library.add(c.byref(piece), words_of(cell), OWNER, row, key)
    return piece


def given_back(library, received, parity, row=0, key=KEY):
    """What a receiver makes of a parity, and whether the parity's sum agrees with it."""
    words = (c.c_uint64 * WORDS)(*parity.words)
    made = library.give_back(c.byref(received), words, OWNER, row, key)
    had = received.sum if received.owner == OWNER else 0
    return bytes(words), (parity.sum - had) & MASK == made


cells_of = st.lists(st.binary(min_size=1, max_size=1448), min_size=1, max_size=9)


@given(cells_of, st.data())
def test_any_single_cell_is_given_back_bit_for_bit_whatever_its_length(library, cells, data):
    lost = data.draw(st.integers(0, len(cells) - 1))
    stale = ParityPiece(owner=OWNER + 1, seen=MASK, sum=9, words=(c.c_uint64 * WORDS)(*[5] * WORDS))
    received = group_of(library, cells, without=lost, piece=stale)
    words, agrees = given_back(library, received, group_of(library, cells), lost)
    assert agrees
    assert words == cells[lost].ljust(8 * WORDS, b"\0")


@given(cells_of, st.data())
def test_a_parity_of_which_one_bit_is_wrong_gives_nothing(library, cells, data):
    lost, bit = data.draw(st.integers(0, len(cells) - 1)), data.draw(st.integers(0, 64 * WORDS - 1))
    parity = group_of(library, cells)
    parity.words[bit // 64] ^= 1 << bit % 64
    assert not given_back(library, group_of(library, cells, without=lost), parity, lost)[1]


@given(st.lists(st.binary(min_size=64, max_size=1448), min_size=3, max_size=9, unique=True))
def test_two_missing_cells_make_nothing_that_agrees_with_the_sum(library, cells):
    received = group_of(library, cells[2:])
    parity = group_of(library, cells)
    assert not any(given_back(library, received, parity, row)[1] for row in (0, 1))


@given(cells_of)
def test_who_does_not_know_the_key_makes_nothing_that_agrees(library, cells):
    forged = group_of(library, [*cells[:-1], bytes(b ^ 1 for b in cells[-1])], key=OTHER_KEY)
    assert not given_back(library, group_of(library, cells, without=len(cells) - 1), forged, len(cells) - 1)[1]


def test_two_cells_that_change_places_within_a_segment_do_not_agree(library):
    first, second = b"\1" * 8 + b"\2" * 8, b"\2" * 8 + b"\1" * 8
    parity = group_of(library, [first, b"x"])
    parity.words[0], parity.words[1] = parity.words[1], parity.words[0]
    received = group_of(library, [first, b"x"], without=0)
    assert given_back(library, received, parity)[0][:16] != first
    assert not given_back(library, received, parity)[1]
    assert second != first


@given(st.integers(1, 65535), st.integers(1, MOST_GROUPS))
def test_each_cell_of_a_block_is_in_one_row_of_one_group(library, cells, groups):
    if cells > ROWS * groups:
        return
    found = [library.rows(cells, groups, group) for group in range(groups)]
    assert sum(rows.bit_count() for rows in found) == cells
    for group, rows in enumerate(found):
        assert rows == sum(1 << row for row in range(ROWS) if row * groups + group < cells)


@given(st.integers(1, 65536), st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_block_has_groups_for_all_its_cells_and_parities_are_an_eighth_at_most(library, cells, again, sent):
    groups = library.groups_of(cells, min(again, sent), sent)
    assert 1 <= groups <= MOST_GROUPS
    assert groups * ROWS >= cells
    assert groups <= max(1, cells // LEAST_ROWS)
    assert groups <= most_parities(cells)


@pytest.mark.parametrize(
    ("cells", "loss", "groups"),
    # 14,560 segments are 1 Gbit/s x 180 ms, 64,700 x 800 ms; the losses of the reference's table
    [(14_560, 0.0, 228), (14_560, 1e-4, 228), (14_560, 2.5e-4, 331), (14_560, 1e-3, 1024), (64_700, 1e-4, 1024)],
)
def test_groups_grow_with_the_square_of_the_losses_that_are_expected(library, cells, loss, groups):
    assert library.groups_of(cells, int(loss * 10**8), 10**8) == pytest.approx(groups, abs=2)


@given(st.integers(8, 20_000), st.integers(1, MOST_GROUPS))
def test_a_cell_is_followed_by_a_packet_for_each_group_before_its_parity_comes(library, cells, groups):
    groups = min(groups, cells)
    position = {library.sent_as(cells, groups, number): number for number in range(groups)}
    assert len(position) == groups
    assert min(cells - 1 - cell + position[cell % groups] for cell in range(cells)) == groups - 1


@given(
    st.lists(st.integers(0, 400_000), min_size=50, max_size=200),  # ns
    st.sampled_from([2_000_000, 116_000_000, 1_160_000_000]),  # bytes per second
    st.sampled_from([1448, 8948]),
)
def test_parities_are_as_many_as_the_rate_has_packets_however_often_it_is_asked(library, pauses_ns, rate, cell_bytes):
    used_ns, now_ns, sent = c.c_uint64(10**12), 10**12, 0
    for pause_ns in pauses_ns:
        now_ns += pause_ns
        sent += library.due(c.byref(used_ns), now_ns, rate, cell_bytes, 10_000)
    packets = sum(pauses_ns) * rate / 10**9 / cell_bytes
    assert packets * 0.999 - 1 <= sent <= packets * 1.001


def test_after_a_long_silence_no_more_leave_at_once_than_may(library):
    used_ns = c.c_uint64(0)
    assert library.due(c.byref(used_ns), 10**9, 116_000_000, 1448, 44) == 44
    assert used_ns.value == 10**9


@pytest.mark.parametrize(
    ("cells", "loss", "worth"), [(14_560, 1e-3, True), (14_560, 1e-2, False), (64_700, 1e-3, False)]
)
def test_where_more_is_lost_than_parities_mend_there_are_none(library, cells, loss, worth):
    assert library.worth(cells, int(loss * 10**8), 10**8) == worth
    assert library.worth(cells, 0, 0), "nothing is known yet"
