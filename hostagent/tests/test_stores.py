"""Stores: what of them is in the configuration, and what is learnt of one between two looks."""

import os
import threading
import time
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostagent.doctor.connections import ReceivingConnection
from hostagent.errors import AgentConfigError
from hostagent.settings import parsed_settings
from hostagent.stores import disk, estimate, paths
from hostagent.stores.disk import Disk
from hostagent.stores.estimate import LEAST_DIRTY_BYTES, DiskState, PressureState, SocketIntake, StoreLook, intake
from hostagent.stores.settings import IntakeStore, PortRange
from hostagent.stores.stores import Stores
from topology.protocol import parsed_from_agent, to_bytes
from topology.telemetry import LONGEST_NAME, StoreBrake, Telemetry

S_NS, MB, MBIT = 10**9, 10**6, 10**6
GOOD = 'host: arch\ncontrollers: ["unix:/run/c.sock"]\n'


def test_a_store_says_where_what_is_received_is_put(tmp_path):
    stores = f"stores:\n- {{path: {tmp_path}, ports: 5000-5100, from: [10.1.0.0/24], rate: 280Mbps, buffer: 750MB}}\n"
    (one,) = parsed_settings(GOOD + stores).stores
    assert (one.called, one.ports, one.rate, one.buffer) == (tmp_path.name, PortRange(5000, 5100), 280 * MBIT, 750 * MB)
    assert one.takes(5000, IPv4Address("10.1.0.9"))
    assert not one.takes(5101, IPv4Address("10.1.0.9"))
    assert not one.takes(5000, IPv4Address("10.2.0.9"))
    assert IntakeStore(tmp_path).takes(1, IPv4Address("10.2.0.9")), "without ports and senders it takes all"


def test_all_that_is_wrong_with_stores_is_told_at_once():
    with pytest.raises(AgentConfigError) as caught:
        parsed_settings(
            f"{GOOD}stores:\n- {{path: /tmp, ports: 70000, rate: 0bps}}\n- {{path: /tmp, ports: 9-5, size: 3}}\n"
        )
    assert set(caught.value.problems) == {
        'stores[0].ports: "70000" is no port or range of ports, try "5000-5100"',
        "stores[0].rate: must be more than 0",
        'stores[1].ports: "9-5" is no port or range of ports, try "5000-5100"',
        "stores[1].size: no such key",
    }
    with pytest.raises(AgentConfigError) as caught:
        parsed_settings(f"{GOOD}stores: [{{path: /tmp}}, {{path: /tmp}}, {{path: data}}, {{path: /no/such/place}}]\n")
    assert set(caught.value.problems) == {
        'stores[1].name: there is already a store "tmp": give one of them a name',
        'stores[2].path: "data" is not absolute, try "/data"',
        "stores[3].path: there is no /no/such/place: make it, or mount what is to be there",
    }


def test_a_store_whose_file_system_hangs_is_named_and_the_agent_goes_on(tmp_path, monkeypatch, capsys):
    """As a hard mount of NFS does whose server is away. Its disk is not known."""
    hanging, release = tmp_path / "nfs", threading.Event()
    stat, resolve = Path.stat, Path.resolve
    monkeypatch.setattr(Path, "stat", lambda path, **how: stat(path, **how) if path != hanging else release.wait())
    monkeypatch.setattr(Path, "resolve", lambda path: resolve(path) if path != hanging else release.wait())
    monkeypatch.setattr(paths, "WITHIN_S", 0.2)
    began_s = time.monotonic()
    try:
        settings = parsed_settings(f"{GOOD}stores: [{{path: {hanging}}}, {{path: {tmp_path}, name: data}}]\n")
        stores = Stores(settings.stores, lambda: ())
        stores.told()
        assert [one.name for one in stores.told()] == ["nfs", "data"]
        assert time.monotonic() - began_s < 5
        logged = capsys.readouterr().err
        assert "agent.store_hangs" in logged
        assert f"path={hanging}" in logged
        with pytest.raises(AgentConfigError, match="there is no /no/such/place"):
            parsed_settings(f"{GOOD}stores: [{{path: {hanging}}}, {{path: /no/such/place}}]\n")
    finally:
        release.set()


@pytest.mark.parametrize("name", ["x" * 41, "two words", "a/b"])
def test_a_stores_name_is_one_short_word(tmp_path, name):
    with pytest.raises(AgentConfigError, match=r"stores\[0\]\.name: "):
        parsed_settings(f"{GOOD}stores: [{{path: {tmp_path}, name: {name}}}]\n")


def test_a_folder_whose_name_is_longer_than_what_can_be_told_needs_another_name(tmp_path):
    path = tmp_path / ("d" * (LONGEST_NAME + 1))
    path.mkdir()
    with pytest.raises(AgentConfigError) as caught:
        parsed_settings(f"{GOOD}stores: [{{path: {path}}}]\n")
    problem = f'stores[0].name: "{path.name}" is longer than {LONGEST_NAME} characters: give it a name'
    assert caught.value.problems == (problem,)
    assert parsed_settings(f"{GOOD}stores: [{{path: {path}, name: data}}]\n").stores[0].called == "data"


def look(at_s, received_mb, unread_mb, disk_state=None, room_mb=10):
    connection = SocketIntake(received_mb * MB, unread_mb * MB, room_mb * MB)
    return StoreLook(at_s * S_NS, {1: connection}, disk_state)


def test_a_reader_that_leaves_data_waiting_shows_its_rate():
    seen = intake(look(0, 100, 20), look(1, 112, 20))
    assert (seen.drained_bps, seen.is_waiting, seen.brake) == (96 * MBIT, True, StoreBrake.READER)
    assert (seen.unread_bytes, seen.room_bytes) == (20 * MB, 10 * MB)


def test_what_is_read_while_nothing_waits_is_a_lower_bound_and_is_called_so():
    assert not intake(look(0, 100, 0), look(1, 112, 0)).is_waiting
    assert not intake(look(0, 100, 0), look(1, 112, 12)).is_waiting, "it may have waited for a moment only"


def disk_at(written_mb, busy_ms, dirty_mb):
    return DiskState(written_mb * MB, busy_ms, dirty_mb * MB, 500 * MB)


def test_a_disk_that_is_waited_for_is_the_rate_however_fast_the_page_cache_takes_it():
    seen = intake(look(0, 100, 0, disk_at(0, 0, 200)), look(1, 145, 0, disk_at(35, 980, 210)))
    assert (seen.drained_bps, seen.is_waiting, seen.brake) == (280 * MBIT, True, StoreBrake.DISK)
    assert seen.room_bytes == 290 * MB - 7 * MB, (
        "the page cache's, but for what is drained while a full one is waited for"
    )


def test_of_the_room_that_its_operator_knows_what_waits_for_the_disk_has_a_part():
    before, now = look(0, 100, 0, disk_at(0, 0, 200)), look(1, 145, 5, disk_at(35, 980, 210))
    seen = intake(before, now, buffer_bytes=300 * MB)
    assert (seen.most_bytes, seen.room_bytes) == (300 * MB, 85 * MB)
    assert intake(before, now, buffer_bytes=200 * MB).room_bytes == 0


@pytest.mark.parametrize(
    "after", [disk_at(35, 500, 210), disk_at(35, 980, LEAST_DIRTY_BYTES // MB - 10)], ids=["idle", "little waits"]
)
def test_a_disk_that_is_not_waited_for_says_nothing_of_its_rate(after):
    assert not intake(look(0, 100, 0, disk_at(0, 0, 200)), look(1, 145, 0, after)).is_waiting


def test_what_others_write_to_the_same_disk_is_not_taken_for_the_stores_own():
    seen = intake(look(0, 100, 20, disk_at(0, 0, 200)), look(1, 110, 20, disk_at(35, 980, 200)))
    assert (seen.drained_bps, seen.is_waiting, seen.brake) == (80 * MBIT, True, StoreBrake.DISK)


def test_a_page_cache_with_a_backlog_is_waited_for_though_nothing_is_unread():
    seen = intake(look(0, 100, 0, disk_at(0, 0, 450)), look(1, 133, 0, disk_at(35, 980, 448)))
    assert (seen.drained_bps, seen.is_waiting, seen.brake) == (280 * MBIT, True, StoreBrake.DISK)
    less = intake(look(0, 100, 0, disk_at(0, 0, 450)), look(1, 112, 0, disk_at(35, 980, 427)))
    assert (less.drained_bps, less.is_waiting) == (280 * MBIT, True), "the writer is held up, and the backlog written"
    little = intake(look(0, 100, 0, disk_at(0, 0, 450)), look(1, 120, 0, disk_at(35, 980, 450)))
    assert not little.is_waiting, "it is what others write"


@pytest.mark.parametrize(("dirty_mb", "is_waiting"), [(3, True), (1, False)])
def test_of_a_small_page_cache_a_quarter_is_a_backlog(dirty_mb, is_waiting):
    before, now = (DiskState(n * 3_500_000, n * 980, dirty_mb * MB, 8 * MB) for n in range(2))
    seen = intake(look(0, 100, 0, before), look(1, 103, 0, now))
    assert seen.is_waiting is is_waiting
    assert not is_waiting or seen.drained_bps == 24 * MBIT, "what was read: the disk has written more than that"


def pressed(one, memory_ms, io_ms):
    return replace(one, pressure=PressureState(memory_ms * 1000, io_ms * 1000))


@pytest.mark.parametrize(
    ("memory_ms", "io_ms", "disk_state", "brake"),
    [
        (100, 900, None, StoreBrake.MEMORY),
        (99, 500, None, StoreBrake.DISK),
        (99, 499, None, StoreBrake.READER),
        (0, 900, disk_at(35, 100, 200), StoreBrake.READER),
    ],
    ids=["memory", "a disk that is not counted", "neither", "another disk than its own"],
)
def test_what_programs_wait_for_says_why_a_store_is_slow(memory_ms, io_ms, disk_state, brake):
    before = pressed(look(0, 100, 20, disk_at(0, 0, 200) if disk_state else None), 0, 0)
    seen = intake(before, pressed(look(1, 112, 20, disk_state), memory_ms, io_ms))
    assert (seen.drained_bps, seen.is_waiting, seen.brake) == (96 * MBIT, True, brake)


def test_pressure_is_read_where_the_kernel_tells_it(tmp_path):
    assert disk.pressure(tmp_path) is None
    (tmp_path / "pressure").mkdir()
    for name, total in (("memory", 4711), ("io", 99)):
        (tmp_path / "pressure" / name).write_text(
            f"some avg10=0.00 avg60=0.00 avg300=0.00 total={total}\nfull total=1\n"
        )
    assert disk.pressure(tmp_path) == PressureState(4711, 99)


@given(
    st.integers(1, 200), st.integers(0, 400), st.lists(st.integers(0, 400), min_size=1, max_size=30), st.integers(0, 64)
)
def test_what_is_drained_is_the_receivers_rate_while_data_waits_and_never_more_than_it(drains, first, comes, buffer):
    """A reader of so many Mbit/s behind a buffer; each second so many come, as far as there is room."""
    drain_bytes, unread, received = drains * MBIT // 8, min(first, buffer) * MB, 0
    looks = []
    for mbit in [0, *comes]:
        arrived = min(mbit * MBIT // 8, buffer * MB - unread + drain_bytes)
        received += arrived
        unread = max(0, unread + arrived - drain_bytes)
        looks.append(StoreLook(len(looks) * S_NS, {1: SocketIntake(received, unread, buffer * MB - unread)}))
    for before, now in pairwise(looks):
        seen = intake(before, now)
        assert seen.drained_bps <= drains * MBIT
        if seen.is_waiting:
            assert seen.drained_bps == drains * MBIT


@given(
    st.integers(8, 200),
    st.lists(st.integers(0, 400), min_size=1, max_size=30),
    st.integers(40, 500),
    st.integers(1, 99),
)
def test_what_waits_for_a_disk_shows_its_rate_and_never_another(drains, comes, limit_mb, held_up_percent):
    """A disk of so many Mbit/s behind a page cache; each second so many come, as far as there is room."""
    drain_bytes, dirty, received, written, busy_ms = drains * MBIT // 8, 0, 0, 0, 0
    looks = []
    for mbit in [0, *comes]:
        arrived = min(mbit * MBIT // 8, limit_mb * MB - dirty + drain_bytes)
        goes = min(drain_bytes, dirty + arrived)
        received, written, dirty = received + arrived, written + goes, dirty + arrived - goes
        busy_ms += 1_000 * goes // drain_bytes
        state = DiskState(written, busy_ms, dirty, limit_mb * MB)
        looks.append(StoreLook(len(looks) * S_NS, {1: SocketIntake(received, 0, MB)}, state))
    for before, now in pairwise(looks):
        seen = intake(before, now)
        if seen.is_waiting:
            assert seen.drained_bps == drain_bytes * 8
        if min(before.disk.dirty_bytes, now.disk.dirty_bytes) == limit_mb * MB:
            assert seen.is_waiting, "the page cache was full all the time"


def connections(*looks):
    left = list(looks)
    return lambda: left.pop(0)


def receives(cookie, port, received_mb, unread_mb, peer="10.1.0.9"):
    return ReceivingConnection(cookie, IPv4Address(peer), port, received_mb * MB, unread_mb * MB, 5 * MB)


def test_each_connection_counts_for_the_first_store_that_takes_it(tmp_path):
    first = IntakeStore(tmp_path, name="first", ports="5000")
    stores = Stores(
        [first, IntakeStore(tmp_path, name="rest", senders=(IPv4Network("10.1.0.0/24"),))],
        connections(
            (receives(1, 5000, 10, 5), receives(2, 5001, 10, 5), receives(3, 5001, 10, 5, "10.2.0.9")),
            (receives(1, 5000, 20, 5), receives(2, 5001, 40, 5), receives(4, 5001, 7, 1)),
        ),
        iter([0, S_NS]).__next__,
    )
    assert stores.told() == (), "nothing can be said of one look"
    first_told, rest = stores.told()
    assert (first_told.name, first_told.drained_bps, first_told.is_waiting) == ("first", 80 * MBIT, True)
    assert (first_told.first_port, first_told.last_port) == (5000, 5000)
    assert (rest.drained_bps, rest.unread_bytes) == ((30 + 6) * 8 * MBIT, 6 * MB)


def test_a_store_that_becomes_slower_or_faster_is_news_and_noise_or_a_stall_is_not(tmp_path):
    def is_news(then_mb, unread_mb=20, **settings):
        """Whether it is, once 10 MB/s were told, and so much is read in the half second after that."""
        at_mb = (100, 110, 110 + then_mb, 110 + then_mb, 110 + 2 * then_mb, 110 + 2 * then_mb, 110 + 3 * then_mb)
        looks = connections(*[(receives(1, 9, mb, unread_mb),) for mb in at_mb])
        times = iter([halves * S_NS // 2 for halves in (0, 2, 3, 3, 4, 4, 5)])
        stores = Stores([IntakeStore(tmp_path, **settings)], looks, times.__next__)
        assert not stores.told()
        assert stores.told()
        found = stores.has_news()
        if found:
            stores.told()
            assert stores.has_news(), "what was news is told twice"
            stores.told()
            assert not stores.has_news()
        return found

    assert is_news(3)
    assert is_news(7)
    assert not is_news(4)
    assert not is_news(6)
    assert not is_news(0), "it stands still, as a disk does that flushes"
    assert not is_news(3, unread_mb=0), "nothing waits: that is only what came"
    assert not is_news(3, rate="80Mbps"), "its operator has said what it takes"


def test_what_its_operator_knows_is_said_in_place_of_what_was_measured():
    store = IntakeStore(Path("/proc"), rate="280Mbps", buffer="750MB")
    stores = Stores([store], connections((), (receives(1, 9, 30, 10),)), iter([0, S_NS]).__next__)
    stores.told()
    (told,) = stores.told()
    assert (told.rate_bps, told.room_bytes, told.most_bytes) == (280 * MBIT, 740 * MB, 750 * MB)
    message = Telemetry(1, 0, stores=(told,))
    assert parsed_from_agent(to_bytes(message)) == message


def test_stores_that_cannot_be_seen_hold_nothing_up(tmp_path):
    def refused():
        raise OSError(1, "sock_diag")

    stores = Stores([IntakeStore(tmp_path)], refused)
    assert stores.told() == stores.told() == ()


def test_a_host_without_stores_looks_at_nothing():
    def looked():
        raise AssertionError("nobody was to look")

    stores = Stores((), looked)
    assert stores.told() == ()
    assert not stores.has_news()


def disks_in(proc, mounted):
    """Return /proc of a host with the disks 8:1 and 8:2, and what is mounted where."""
    (proc / "self").mkdir(parents=True, exist_ok=True)
    mounts = (f"{n} 1 {device} / {place} rw - ext4 /dev/disk rw\n" for n, (place, device) in enumerate(mounted))
    (proc / "self" / "mountinfo").write_text("".join(mounts))
    fields = "1 0 8 1 9 0 {0}00 7 0 {0}500 8 0 0 0 0"
    (proc / "diskstats").write_text("".join(f" 8 {n} sda{n} {fields.format(n)}\n" for n in (1, 2)))
    limits = "nr_dirty_threshold 100000\nnr_dirty_background_threshold 60000\n"
    (proc / "vmstat").write_text(f"nr_dirty 1000\nnr_writeback 24\n{limits}")
    return proc


def test_the_disk_under_a_path_is_found_by_what_is_mounted_there(tmp_path):
    proc = disks_in(tmp_path / "proc", [("/", "8:2"), (tmp_path.parent, "8:1"), (f"{tmp_path}-other", "8:2")])
    page = os.sysconf("SC_PAGE_SIZE")
    state = Disk(tmp_path, proc).state()
    assert state == DiskState(100 * 512, 1500, 1024 * page, 90_000 * page, "8:1"), "the kernel steers below its limit"
    disks_in(proc, [("/", "0:27")])
    assert Disk(tmp_path, proc).state() is None
    assert Disk(Path("/proc")).state() is None, "no disk is under /proc"


def test_a_disk_that_is_mounted_later_or_replaced_is_the_one_that_is_asked(tmp_path):
    proc = disks_in(tmp_path / "proc", [("/", "8:1")])
    under = Disk(tmp_path, proc)
    seen = [under.state()]
    for mounted in ([("/", "8:1"), (tmp_path, "8:2")], [("/", "8:2"), (tmp_path, "8:2"), (tmp_path, "8:1")]):
        disks_in(proc, mounted)
        seen.append(under.state())
    assert [one.device for one in seen] == ["8:1", "8:2", "8:1"], "of two at one place the later covers the other"
    assert [one.written_bytes for one in seen] == [100 * 512, 200 * 512, 100 * 512]


def test_a_place_is_found_whatever_its_name(tmp_path):
    proc = disks_in(tmp_path / "proc", [("/", "8:1"), ("/of\\040two\\134words\\040\u2028", "8:2")])
    assert Disk(Path("/of two\\words \u2028/data"), proc).state().device == "8:2"


def test_what_two_disks_have_written_is_not_compared():
    before, now = disk_at(500, 5000, 200), replace(disk_at(35, 9000, 200), device="8:2")
    seen = intake(look(0, 100, 0, before), look(1, 112, 0, now))
    assert (seen.drained_bps, seen.is_waiting) == (96 * MBIT, False)


def test_a_store_without_a_disk_has_the_room_of_its_sockets():
    assert estimate.intake(look(0, 1, 0), look(1, 1, 0)).room_bytes == 10 * MB


def test_a_disks_room_is_what_the_page_cache_takes_beyond_what_is_on_its_way_there():
    idle = disk_at(0, 0, 300)
    two = look(0, 1, 0, idle), look(1, 3, 2, idle)
    limit_bytes = idle.limit_bytes
    assert estimate.intake(*two).room_bytes == limit_bytes - 300 * MB - 2 * MB, "nothing is known of its rate"
    known = estimate.intake(*two, 400 * MBIT)
    assert known.room_bytes == limit_bytes - 300 * MB - 2 * MB - 10 * MB
    assert known.most_bytes == limit_bytes - 10 * MB, "when nothing waits there"
    assert estimate.intake(*two, 10**12).room_bytes == 0
