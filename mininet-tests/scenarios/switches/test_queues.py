"""Queues through OVSDB, down to the kernel's HTB classes on a real port."""

import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from controller.southbound.errors import (
    DatabaseGone,
    ForeignQos,
    NoSuchPort,
    QueuesNotApplied,
    RateTooHigh,
)
from controller.southbound.ovsdb.queues import PortQueues, Queue
from controller.southbound.ovsdb.writer import QueueWriter
from mininet_tests.site.openvswitch import PrivateOvs
from mininet_tests.site.userspace_switch import NAMESPACE, NEEDS_OVS, private_ovs
from mininet_tests.testing.eventually import eventually
from topology.units import rate_bps

pytestmark = NEEDS_OVS

GIGABIT = 1_000_000_000


_CLASS = re.compile(r"class htb (\S+) .*?rate (\S+) ceil (\S+) burst (\d+)(K?)b")


def _bps(shown: str) -> int:
    """A rate as tc shows it, in bit/s."""
    return rate_bps(shown.replace("Kbit", "kbit"))


@dataclass(frozen=True, slots=True)
class ShapedSwitch:
    """A switch with two shaped ports and a writer connected to it."""

    ovs: PrivateOvs
    writer: QueueWriter

    def classes(self, port_name: str) -> dict[str, dict[str, int]]:
        """The HTB classes of a port as the kernel has them: rate and ceil in bit/s, burst in bytes."""
        command = ["tc", "-n", NAMESPACE, "class", "show", "dev", port_name]
        shown = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        return {
            handle: {"rate": _bps(rate), "ceil": _bps(ceil), "burst": int(burst) * (1024 if kilo else 1)}
            for handle, rate, ceil, burst, kilo in _CLASS.findall(shown)
        }

    def queue_rows(self) -> set[str]:
        """Identities of all queue rows."""
        return set(self.ovs.vsctl("--bare", "--columns=_uuid", "list", "queue").split())


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[ShapedSwitch]:
    """Two veth ports, p1 and p2."""
    with private_ovs(tmp_path, {"p1": "p2"}) as ovs:
        bridge = ["add-br", "s1", "--", "set", "bridge", "s1", "datapath_type=netdev"]
        ovs.vsctl(*bridge, "--", "add-port", "s1", "p1", "--", "add-port", "s1", "p2")
        with QueueWriter(ovs.remote) as writer:
            yield ShapedSwitch(ovs, writer)


def shares(port_bps: int, *percent: int) -> PortQueues:
    """Queues of a port with these shares, which may borrow up to the port; a millisecond of burst."""
    return PortQueues(
        port_bps,
        tuple(Queue(number, port_bps * each // 100, port_bps, port_bps // 1000) for number, each in enumerate(percent)),
    )


@pytest.mark.parametrize("version", ["", "3.1.0"], ids=["unknown", "before 3.2"])
def test_a_rate_that_open_vswitch_would_cut_to_32_bits_is_not_set(rig, version):
    if version:
        rig.ovs.vsctl("set", "Open_vSwitch", ".", f"ovs_version={version}")
    wanted = {"p1": shares(100 * GIGABIT, 1, 5, 90, 4), "p2": shares(34 * GIGABIT, 1, 5, 90, 4)}
    lacks = "at most 34,359,738,360" if version else "ovs_version=VERSION"
    eventually(lambda: lacks in refused(rig, wanted), within_s=10, what="why it is not set")
    assert (rig.classes("p1"), rig.writer.installed("p1")) == ({}, None)
    assert rig.writer.installed("p2") == wanted["p2"]
    rig.ovs.vsctl("set", "Open_vSwitch", ".", "ovs_version=3.2.0")
    eventually(lambda: not refused(rig, wanted), within_s=10, what="it is known to keep 64 bits")
    assert rig.writer.installed("p1") == wanted["p1"]


def refused(rig: ShapedSwitch, wanted: dict[str, PortQueues]) -> str:
    """Why queues are not set; "" if they are."""
    try:
        rig.writer.apply(wanted, timeout_s=10)
    except RateTooHigh as why:
        return str(why)
    return ""


@pytest.mark.parametrize("port_bps", [GIGABIT, 10 * GIGABIT], ids=["1 Gbit/s", "10 Gbit/s"])
def test_the_kernel_has_each_rate_exactly_and_the_burst_nearly(rig, port_bps):
    wanted = shares(port_bps, 1, 5, 90, 4)
    rig.writer.apply({"p1": wanted}, timeout_s=10)
    assert rig.writer.installed("p1") == wanted
    classes = rig.classes("p1")
    assert classes["1:fffe"]["rate"] == classes["1:fffe"]["ceil"] == port_bps
    for queue in wanted.queues:
        leaf = classes[f"1:{queue.queue_id + 1:x}"]
        assert (leaf["rate"], leaf["ceil"]) == (queue.min_bps, queue.max_bps)
        # tc keeps a burst as the time it takes at the rate, in ticks of 64 ns
        assert 0.999 < leaf["burst"] * 8 / queue.burst_bits <= 1


def test_a_change_of_shares_keeps_every_row_and_class(rig):
    rig.writer.apply({"p1": shares(GIGABIT, 5, 90, 5)}, timeout_s=10)
    rows = rig.queue_rows()
    rig.writer.apply({"p1": shares(GIGABIT, 5, 5, 90)}, timeout_s=10)
    assert rig.queue_rows() == rows
    assert [rig.classes("p1")[f"1:{leaf}"]["rate"] for leaf in (1, 2, 3)] == [50_000_000, 50_000_000, 900_000_000]


def test_a_queue_that_is_no_longer_wanted_goes_and_a_new_one_comes(rig):
    rig.writer.apply({"p1": shares(GIGABIT, 5, 90, 5)}, timeout_s=10)
    rig.writer.apply({"p1": shares(GIGABIT, 5, 95)}, timeout_s=10)
    assert (len(rig.queue_rows()), sorted(rig.classes("p1"))) == (2, ["1:1", "1:2", "1:fffe"])
    rig.writer.apply({"p1": shares(GIGABIT, 5, 90, 5)}, timeout_s=10)
    assert rig.writer.installed("p1") == shares(GIGABIT, 5, 90, 5)


def test_the_same_queues_again_write_nothing(rig):
    rig.writer.apply({"p1": shares(GIGABIT, 5, 95)}, timeout_s=10)
    before = rig.ovs.vsctl("get", "open_vswitch", ".", "next_cfg")
    rig.writer.apply({"p1": shares(GIGABIT, 5, 95)}, timeout_s=10)
    assert int(rig.ovs.vsctl("--no-wait", "get", "open_vswitch", ".", "next_cfg")) == int(before)


def test_a_change_made_behind_our_back_is_seen_and_put_right(rig):
    rig.writer.apply({"p1": shares(GIGABIT, 5, 95)}, timeout_s=10)
    for row in rig.queue_rows():
        rig.ovs.vsctl("set", "queue", row, "other_config:max-rate=1e+09")
    eventually(lambda: rig.writer.installed("p1") != shares(GIGABIT, 5, 95), within_s=5, what="the change is seen")
    rig.writer.apply({"p1": shares(GIGABIT, 5, 95)}, timeout_s=10)
    assert rig.writer.installed("p1") == shares(GIGABIT, 5, 95)
    assert rig.classes("p1")["1:1"]["ceil"] == GIGABIT


def test_somebody_else_s_qos_is_an_error_that_names_it_and_stays_and_other_ports_have_their_queues(rig):
    made = rig.ovs.vsctl(
        "--id=@q",
        "create",
        "qos",
        "type=linux-htb",
        "other-config:max-rate=5000000",
        "--",
        "set",
        "port",
        "p2",
        "qos=@q",
    ).strip()
    for call in (
        lambda: rig.writer.apply({"p1": shares(GIGABIT, 5, 95), "p2": shares(GIGABIT, 5, 95)}, timeout_s=10),
        lambda: rig.writer.installed("p2"),
    ):
        with pytest.raises(ForeignQos) as foreign:
            call()
        assert (foreign.value.port_name, foreign.value.qos_uuid) == ("p2", made)
    assert rig.writer.installed("p1") == shares(GIGABIT, 5, 95)


@pytest.mark.parametrize("wanted", [(5, 95), (5, 90, 5)], ids=["the same numbers", "one more"])
def test_somebody_else_s_queue_in_our_qos_is_taken_out_of_it_and_stays_as_it_is(rig, wanted):
    rig.writer.apply({"p1": shares(GIGABIT, 5, 95)}, timeout_s=10)
    theirs = rig.ovs.vsctl("create", "queue", "other-config:max-rate=5000000").strip()
    qos = rig.ovs.vsctl("get", "port", "p1", "qos").strip()
    rig.ovs.vsctl("set", "qos", qos, f"queues:1={theirs}")
    eventually(lambda: rig.writer.installed("p1") != shares(GIGABIT, 5, 95), within_s=5, what="the change is seen")
    rig.writer.apply({"p1": shares(GIGABIT, *wanted)}, timeout_s=10)
    assert rig.writer.installed("p1") == shares(GIGABIT, *wanted)
    assert rig.ovs.vsctl("get", "queue", theirs, "other_config").strip() == '{max-rate="5000000"}'
    assert theirs not in rig.ovs.vsctl("get", "qos", qos, "queues")


def test_a_port_that_is_not_there_is_named(rig):
    with pytest.raises(NoSuchPort, match="p9"):
        rig.writer.apply({"p9": shares(GIGABIT, 5, 95)}, timeout_s=10)


def test_a_missing_port_keeps_no_other_port_of_its_database_from_its_queues(rig):
    wanted = {"p9": shares(GIGABIT, 5, 95), "p1": shares(GIGABIT, 20, 80)}
    failed = rig.writer.apply_each(wanted, timeout_s=10)
    assert [(name, str(why)) for name, why in failed.items()] == [
        ("p9", f"the OVSDB server at {rig.ovs.remote} knows no port p9")
    ]
    assert rig.writer.installed("p1") == shares(GIGABIT, 20, 80)
    assert rig.classes("p1")["1:2"]["rate"] == GIGABIT * 8 // 10


def test_queues_that_vswitchd_does_not_take_up_are_not_called_applied(rig):
    rig.ovs.kill_switch()
    for _ in range(2):  # the second finds nothing to write, and must not take that for applied
        with pytest.raises(QueuesNotApplied):
            rig.writer.apply({"p1": shares(GIGABIT, 5, 95)}, timeout_s=1.5)
    rig.ovs.start_switch()
    rig.writer.apply({"p1": shares(GIGABIT, 5, 95)}, timeout_s=10)
    assert rig.classes("p1")["1:2"]["rate"] == 950_000_000


def test_a_database_that_went_away_is_said_and_used_again_when_it_is_back(rig):
    rig.writer.apply({"p1": shares(GIGABIT, 5, 95)}, timeout_s=10)
    rig.ovs.stop_database()
    for call in (
        lambda: rig.writer.apply({"p1": shares(GIGABIT, 95, 5)}, timeout_s=0.3),
        lambda: rig.writer.installed("p1", timeout_s=0.3),
    ):
        with pytest.raises(DatabaseGone):
            call()
    rig.ovs.start_database()
    rig.writer.apply({"p1": shares(GIGABIT, 95, 5)}, timeout_s=20)
    assert rig.classes("p1")["1:1"]["rate"] == 950_000_000


def test_a_change_is_applied_within_milliseconds(rig):
    rig.writer.apply({port: shares(GIGABIT, 5, 90, 5) for port in ("p1", "p2")}, timeout_s=10)
    times_ms = []
    for number in range(100):
        wanted = shares(GIGABIT, 5, 90 - number % 2, 5 + number % 2)
        started_s = time.perf_counter()
        rig.writer.apply({"p1": wanted, "p2": wanted}, timeout_s=5)
        times_ms.append((time.perf_counter() - started_s) * 1000)
    times_ms.sort()
    print(f"queues of two ports applied: median {times_ms[50]:.2f} ms, worst {times_ms[-1]:.2f} ms")
    assert times_ms[50] < 50
