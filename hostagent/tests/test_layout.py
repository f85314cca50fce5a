"""Values of the plan as the kernel part reads them."""

import hashlib
import re
import shutil
import struct
import subprocess
from dataclasses import astuple, replace
from ipaddress import IPv6Network

import pytest

from hostagent.errors import LayoutDiffers
from hostagent.kernel.btf import Btf, Member
from hostagent.kernel.image import named_image, object_image
from hostagent.kernel.layout import NO_DSCP, SLOT, Layout, layout_of
from hostagent.kernel.leftovers import CONNECTIONS_MAP
from hostagent.kernel.plan import MAX_ENTRIES, KernelEntry, Match, Tuning
from hostagent.tests.rig import REPOSITORY

BPF = REPOSITORY / "hostagent/bpf"
HEADER = (BPF / "headway.h").read_text()
TYPES = Btf(object_image())
MAPS = TYPES.maps()
LAYOUT = layout_of(object_image())
ENTRY = KernelEntry(1, 2, 3, 4, 5, 7, 8, tail_coded=True)
MATCH = Match(IPv6Network("::ffff:10.1.2.0/120"), dest_port=443, local_port=1)
SHARED = ("host", "match", "matched", "control", "entry", "demanded", "counters", "turn", "dealt")
ADOPTED = {"hw_conns_8": "793f"}  # the map that a new agent takes over from a dead one, and its struct's digest


def with_entry(*members: Member) -> Layout:
    """The layout of an object whose ``struct entry`` has these members."""
    entries = replace(MAPS["hw_entries"], value=replace(MAPS["hw_entries"].value, members=members))
    return Layout(TYPES.record("host"), MAPS | {"hw_entries": entries})


def test_numbers_agree_with_the_shared_header_and_the_object():
    defined = dict(re.findall(r"#define (HEADWAY_\w+) (\d+)", HEADER))
    assert int(defined["HEADWAY_MAX_ENTRIES"]) == MAX_ENTRIES
    assert int(defined["HEADWAY_NO_DSCP"]) == NO_DSCP
    assert {MAPS[f"hw_{name}"].max_entries for name in ("plan", "entries", "counters", "demand")} == {MAX_ENTRIES}


@pytest.mark.parametrize("name", SHARED)
def test_the_object_has_the_structs_of_the_shared_header(name):
    (body,) = re.findall(rf"struct {name} {{(.*?)\n}};", HEADER, re.DOTALL)
    written = re.findall(r"^\s*__[a-z0-9]+ (\w+)|^\s*char (\w+)", re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL), re.M)
    names = [number or text for number, text in written]
    assert [member.name for member in TYPES.record(name).members] == [one for one in names if one != "padding"]


def test_every_array_is_indexed_by_a_slot():
    arrays = ("hw_control", "hw_entries", "hw_counters", "hw_demand")
    assert {MAPS[name].key.size_bytes for name in arrays} == {SLOT.size}


def test_a_map_that_outlives_its_agent_is_called_otherwise_once_its_struct_is_another():
    members = repr([astuple(member) for member in MAPS[CONNECTIONS_MAP.decode()].value.members])
    assert {CONNECTIONS_MAP.decode(): hashlib.sha256(members.encode()).hexdigest()[:4]} == ADOPTED


def test_an_entry_is_written_member_by_member():
    words = ((1, 8), (2, 4), (3, 4), (4, 8), (5, 8), (6, 8), (7, 4), (8, 4), (1, 4), (0, 4))
    assert LAYOUT.entry_bytes(ENTRY, grant=6) == b"".join(value.to_bytes(size, "little") for value, size in words)
    assert LAYOUT.entry_bytes(replace(ENTRY, dscp=None), grant=6)[12] == NO_DSCP


def test_where_two_members_of_an_entry_are_swapped_so_are_their_bytes():
    rate, window, dscp, standby, size, *rest = MAPS["hw_entries"].value.members
    swapped = with_entry(rate, window, dscp, replace(size, offset_bytes=16), replace(standby, offset_bytes=24), *rest)
    before, after = (one.entry_bytes(ENTRY, grant=6) for one in (LAYOUT, swapped))
    assert (
        (after[16:24], after[24:32]) == (before[24:32], before[16:24]) == (b"\5".ljust(8, b"\0"), b"\4".ljust(8, b"\0"))
    )
    assert after[:16] + after[32:] == before[:16] + before[32:]


def test_a_member_of_another_size_has_that_size():
    rate, *rest = MAPS["hw_entries"].value.members
    assert with_entry(replace(rate, code="I"), *rest).entry_bytes(ENTRY, 6) == LAYOUT.entry_bytes(ENTRY, 6)
    with pytest.raises(struct.error):
        with_entry(replace(rate, code="I"), *rest).entry_bytes(replace(ENTRY, rate_bytes_per_s=1 << 32), 6)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda rate, *rest: (replace(rate, name="speed"), *rest), "has no rate_bytes_per_s, has speed, which is not"),
        (lambda _rate, *rest: rest, "struct entry of the kernel part has no rate_bytes_per_s"),
        (lambda *members: (*members, Member("extra", 60, "I")), "has extra, which is not known here"),
    ],
    ids=["renamed", "missing", "new"],
)
def test_members_that_the_daemon_does_not_know_are_an_error(change, why):
    layout = with_entry(*change(*MAPS["hw_entries"].value.members))
    with pytest.raises(LayoutDiffers, match=why):
        layout.entry_bytes(ENTRY, grant=6)


def test_counters_of_other_members_are_an_error():
    value = MAPS["hw_counters"].value
    counters = replace(MAPS["hw_counters"], value=replace(value, members=value.members[1:]))
    with pytest.raises(LayoutDiffers, match="struct counters of the kernel part has no delivered_bytes"):
        Layout(TYPES.record("host"), MAPS | {"hw_counters": counters}).counters(bytes(value.size_bytes))


@pytest.mark.skipif(shutil.which("clang") is None, reason="needs clang")
def test_what_is_swapped_in_the_header_is_swapped_for_the_daemon(tmp_path):
    folder = shutil.copytree(BPF, tmp_path / "bpf", ignore=shutil.ignore_patterns("*.o"))
    lines = HEADER.splitlines(keepends=True)
    first, second = (
        next(n for n, line in enumerate(lines) if f" {name};" in line) for name in ("window_segments", "dscp")
    )
    lines[first], lines[second] = lines[second], lines[first]
    (folder / "headway.h").write_text("".join(lines))
    subprocess.run(["make", "-s", "-C", folder], check=True)
    written = layout_of((folder / "headway.bpf.o").read_bytes()).entry_bytes(ENTRY, grant=6)
    assert (written[8], written[12]) == (ENTRY.dscp, ENTRY.window_segments)


def test_a_host_is_told_who_we_are_and_what_loss_is_catastrophic():
    host = LAYOUT.host_bytes(9, "headway1", "cubic", Tuning(1, 2, 3, 4, 5, tail_copies=True))
    names = b"headway1".ljust(16, b"\0") + b"cubic".ljust(16, b"\0")
    numbers = ((2000, 8), (4000, 8), (1, 4), (3, 4), (5, 4), (1, 4))
    assert host == (9).to_bytes(8, "little") + names + b"".join(n.to_bytes(size, "little") for n, size in numbers)


def test_a_match_is_bits_then_ports_in_network_order_the_mark_and_the_address():
    told_by = b"\x01\xbb\x00\x01" + b"\xff" + bytes(3)
    expected = (312).to_bytes(4, "little") + told_by + bytes(16) + bytes(10) + b"\xff\xff\x0a\x01\x02\x00"
    assert LAYOUT.match_bytes(MATCH) == expected
    assert LAYOUT.match_bytes(replace(MATCH, own_dscp=1))[8] == 1
    assert LAYOUT.matched_bytes(MATCH, slot=3) == b"\3\0\0\0\x78\0\0\0"


def test_the_greedy_and_the_lesser_share_an_allocation():
    data = (7).to_bytes(8, "little") + bytes(24) + b"".join(n.to_bytes(4, "little") for n in (3, 1, 9, 180_000))
    counters = LAYOUT.counters(data.ljust(len(LAYOUT.zero_counters), b"\0"))
    assert (counters.delivered_bytes, counters.active, counters.connections, counters.rtt_us) == (7, 4, 9, 180_000)


def test_the_least_round_trip_is_the_last_that_is_counted():
    whole = len(LAYOUT.zero_counters)
    assert LAYOUT.counters(bytes(whole - 4) + (179_000).to_bytes(4, "little")).least_rtt_us == 179_000


def test_the_counters_of_a_new_allocation_are_zero_but_for_its_term():
    fresh = LAYOUT.counters(LAYOUT.fresh_counters(7))
    assert fresh == replace(LAYOUT.counters(LAYOUT.zero_counters), term=7)


def test_what_is_demanded_stands_behind_the_timer():
    data = (
        bytes(16) + b"".join(n.to_bytes(8, "little") for n in (1, 2, 3, 4)) + b"\xff" * 4 + b"\5\0\0\0".ljust(12, b"\0")
    )
    assert astuple(LAYOUT.demanded(data)) == (1, 2, 3, 4, -1, 5, 0, 0)


def test_the_prebuilt_object_holds_the_placeholder_once():
    image = object_image()
    named = named_image(image, "headway1")
    assert len(named) == len(image)
    assert b"headway1\0\0\0\0\0\0\0\0" in named


def test_what_is_no_object_file_is_an_error():
    with pytest.raises(ValueError, match="no ELF file"):
        Btf(b"text")
