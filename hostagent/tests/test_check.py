"""The table of what a host needs: a host that is right, and each thing that may be wrong with it."""

from dataclasses import replace
from ipaddress import ip_address

import pytest

from hostagent.doctor.buffers import Numbers, Wanted
from hostagent.doctor.check import rows, settings_for, sysctl_file
from hostagent.doctor.connections import OpenConnection
from hostagent.doctor.hardware import Coalescing, Drops, Hardware, PauseFrames, Rings
from hostagent.doctor.row import FitnessVerdict
from hostagent.doctor.survey import Interface, OtherNamespace, Survey
from hostagent.kernel.probe import Facts
from topology.wire import Framing

WANTED = Wanted(10**10, 180_000, Framing())
DEBIAN = {  # a machine of 24 GiB as it comes
    "tcp_rmem": "4096 131072 6291456",
    "tcp_wmem": "4096 16384 4194304",
    "tcp_mem": "287901 383869 575802",
    "rmem_max": "212992",
    "wmem_max": "212992",
    "tcp_moderate_rcvbuf": "1",
    "tcp_window_scaling": "1",
    "tcp_timestamps": "1",
    "tcp_sack": "1",
    "tcp_no_metrics_save": "0",
    "tcp_slow_start_after_idle": "1",
    "tcp_mtu_probing": "0",
    "tcp_early_retrans": "3",
    "tcp_recovery": "1",
    "tcp_retries2": "15",
}
FACTS = Facts("6.1.0-21-amd64", (1 << 41) - 1, btf=True, libbpf=True, cgroup=True)
LINK = Interface("eth0", 1500, "fq", 65536, 25 * 10**9)
AS_IT_COMES = Survey(
    FACTS, {name: Numbers.parsed(text) for name, text in DEBIAN.items()}, LINK, 24 * 2**30, 20 * 2**30, timer_ns=1
)


def set_up(survey: Survey = AS_IT_COMES, wanted: Wanted = WANTED, **settings: str) -> Survey:
    """The host after the printed file was loaded, its agent holding a plan, and some settings spoilt again."""
    now = survey.settings | settings_for(survey, wanted)
    now["tcp_rmem"] = Numbers((4096, wanted.receive_buffer_bytes, wanted.receive_buffer_bytes))
    return replace(survey, settings=now | {name: Numbers.parsed(text) for name, text in settings.items()})


RIGHT = set_up()


def verdicts(
    survey: Survey, wanted: Wanted = WANTED, *, but: FitnessVerdict = FitnessVerdict.OK
) -> dict[str, FitnessVerdict]:
    return {row.what: row.verdict for row in rows(survey, wanted) if row.verdict is not but}


def row(survey: Survey, what: str, wanted: Wanted = WANTED):
    return next(row for row in rows(survey, wanted) if row.what == what)


def test_a_host_that_is_set_up_has_nothing_to_cure():
    assert verdicts(RIGHT) == {}
    assert not any(row.fix for row in rows(RIGHT, WANTED))


def test_debian_as_it_comes_does_not_carry_ten_gigabit_over_180_ms():
    bad = verdicts(AS_IT_COMES)
    failing = {what for what, verdict in bad.items() if verdict is FitnessVerdict.FAIL}
    assert failing == {"tcp_rmem[2]", "window scale", "tcp_wmem[2]", "tcp_mem"}
    assert bad["rmem_max"] is FitnessVerdict.WARN, "it matters only to applications that set SO_RCVBUF"


def test_debian_as_it_comes_carries_100_megabit_over_10_ms():
    small = Wanted(10**8, 10_000, Framing())
    assert FitnessVerdict.FAIL not in verdicts(AS_IT_COMES, small).values()


@pytest.mark.parametrize(
    ("setting", "value", "row_name", "verdict"),
    [
        ("tcp_rmem", "4096 131072 2000000000", "tcp_rmem[1]", FitnessVerdict.WARN),
        ("tcp_rmem", "4096 1300000000 1000000", "tcp_rmem[2]", FitnessVerdict.FAIL),
        ("tcp_wmem", "4096 16384 4194304", "tcp_wmem[2]", FitnessVerdict.FAIL),
        ("tcp_mem", "287901 383869 575802", "tcp_mem", FitnessVerdict.FAIL),
        ("rmem_max", "212992", "rmem_max", FitnessVerdict.WARN),
        ("wmem_max", "212992", "wmem_max", FitnessVerdict.WARN),
        ("tcp_window_scaling", "0", "tcp_window_scaling", FitnessVerdict.FAIL),
        ("tcp_timestamps", "0", "tcp_timestamps", FitnessVerdict.FAIL),
        ("tcp_sack", "0", "tcp_sack", FitnessVerdict.FAIL),
        ("tcp_no_metrics_save", "0", "tcp_no_metrics_save", FitnessVerdict.WARN),
        ("tcp_mtu_probing", "2", "tcp_mtu_probing", FitnessVerdict.WARN),
        ("tcp_early_retrans", "0", "tcp_early_retrans", FitnessVerdict.WARN),
        ("tcp_recovery", "0", "tcp_recovery", FitnessVerdict.WARN),
        ("tcp_retries2", "3", "tcp_retries2", FitnessVerdict.WARN),
    ],
)
def test_each_setting_that_is_wrong_has_the_command_that_sets_it_right(setting, value, row_name, verdict):
    found = row(set_up(**{setting: value}), row_name)
    assert found.verdict is verdict
    assert "sysctl -w net." in found.fix
    assert found.why


@pytest.mark.parametrize(
    ("setting", "value"),
    [("tcp_timestamps", "2"), ("tcp_recovery", "5"), ("tcp_mtu_probing", "1"), ("tcp_retries2", "8")],
)
def test_a_setting_that_is_right_in_another_way_stays(setting, value):
    survey = set_up(**{setting: value})
    assert verdicts(survey) == {}
    assert str(settings_for(survey, WANTED)[setting]) == value


@pytest.mark.parametrize(
    ("survey", "what", "words"),
    [
        (replace(RIGHT, facts=replace(FACTS, kernel="5.15.0")), "kernel", "Linux 6.0"),
        (replace(RIGHT, facts=replace(FACTS, capabilities=1 << 12)), "capabilities", "CAP_BPF CAP_PERFMON"),
        (replace(RIGHT, facts=replace(FACTS, libbpf=False)), "libbpf", "apt install libbpf1"),
        (replace(RIGHT, timer_ns=4_000_000), "timers", "HIGH_RES_TIMERS"),
        (replace(RIGHT, interface=replace(LINK, mtu_bytes=1400)), "eth0 MTU", "ip link set eth0 mtu 1500"),
        (replace(RIGHT, interface=replace(LINK, speed_bps=10**9)), "eth0 speed", "faster"),
        (replace(RIGHT, memory_bytes=3 * 10**9), "memory", "memory"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_makes_the_rate_impossible_fails(survey, what, words):
    found = row(survey, what)
    assert found.verdict is FitnessVerdict.FAIL
    assert words in found.fix


def test_open_connections_that_cannot_announce_the_window_are_named():
    narrow, wide = OpenConnection(ip_address("192.0.2.7"), 443, 7), OpenConnection(ip_address("192.0.2.8"), 443, 14)
    found = row(replace(RIGHT, connections=(narrow, wide)), "open connections")
    assert (found.verdict, found.now) == (FitnessVerdict.WARN, "1 of 2 narrower: 192.0.2.7")
    assert found.fix == "restart what keeps them: ss -tnp dst 192.0.2.7"


def test_more_than_a_window_can_hold_needs_more_connections():
    fat = replace(WANTED, rate_bps=10**11, connections=1)
    assert row(RIGHT, "connections", fat).fix == "send over 2 connections at once"


def test_memory_that_only_paused_readers_would_take_is_a_warning():
    assert row(RIGHT, "memory", replace(WANTED, connections=20)).verdict is FitnessVerdict.WARN


def test_in_another_namespace_the_kernels_limit_is_said_to_be_hidden():
    hidden = {name: value for name, value in RIGHT.settings.items() if name != "tcp_mem"}
    found = row(replace(RIGHT, settings=hidden), "tcp_mem")
    assert (found.verdict, found.now) == (FitnessVerdict.WARN, "not visible here")
    assert found.fix.startswith('there: sysctl -w net.ipv4.tcp_mem="')
    assert "tcp_mem" not in sysctl_file(replace(RIGHT, settings=hidden), WANTED)
    assert "rmem_max" not in sysctl_file(replace(RIGHT, settings=hidden), WANTED), "nor may it be written there"


def test_an_older_kernel_that_hides_rmem_max_in_a_namespace_is_no_trouble():
    hidden = {name: value for name, value in RIGHT.settings.items() if not name.endswith(("_max", "tcp_mem"))}
    assert set(verdicts(replace(RIGHT, settings=hidden))) == {"tcp_mem"}


def test_containers_whose_connections_are_not_held_are_named_with_the_command():
    found = row(replace(RIGHT, others=(OtherNamespace(4711, "nginx", 3),)), "other namespaces")
    assert found.verdict is FitnessVerdict.WARN
    assert "nginx (pid 4711)" in found.now
    assert "nsenter --net=/proc/4711/ns/net headway agent" in found.fix


def test_a_container_and_a_missing_route_are_warnings():
    survey = replace(RIGHT, container="/.dockerenv", interface=None)
    assert verdicts(survey) == {"container": FitnessVerdict.WARN, "interface": FitnessVerdict.WARN}


def test_a_shaping_qdisc_is_a_warning_and_fq_is_said_to_pace():
    assert row(replace(RIGHT, interface=replace(LINK, qdisc="htb")), "eth0 qdisc").verdict is FitnessVerdict.WARN
    assert "fq paces" in row(RIGHT, "eth0 qdisc").why
    assert "TCP paces" in row(replace(RIGHT, interface=replace(LINK, qdisc="fq_codel")), "eth0 qdisc").why


def test_the_printed_file_sets_what_fails_and_lowers_nothing():
    text = sysctl_file(AS_IT_COMES, WANTED)
    values = dict(line.split(" = ") for line in text.splitlines() if not line.startswith("#"))
    assert values["net.ipv4.tcp_rmem"] == f"4096 131072 {WANTED.receive_buffer_bytes}", (
        "the first buffer is the agent's"
    )
    assert int(values["net.ipv4.tcp_mem"].split()[1]) > 383869
    assert values["net.core.rmem_max"] == str(WANTED.window_bytes)
    again = sysctl_file(set_up(), Wanted(10**6, 1000, Framing()))
    assert str(WANTED.window_bytes) in again, "a smaller path later leaves it as it is"


@pytest.mark.parametrize(
    ("hardware", "what", "now", "fix"),
    [
        (
            Hardware(rings=Rings(512, 4096, 512, 4096)),
            "eth0 rings",
            "receive 512 of 4096, send 512 of 4096",
            "ethtool -G eth0 rx 4096",
        ),
        (Hardware(coalescing=Coalescing(3000, True)), "eth0 coalescing", "3000 us, adaptive", "rx-usecs 50"),
        (Hardware(drops=Drops(queued=7)), "eth0 drops", "queue 7, sent 0, received 0", "txqueuelen 2000"),
        (Hardware(drops=Drops(received=2)), "eth0 drops", "queue 0, sent 0, received 2", "ethtool -S eth0"),
    ],
)
def test_hardware_that_loses_or_delays_is_named_with_its_cure(hardware, what, now, fix):
    survey = replace(RIGHT, interface=replace(LINK, hardware=hardware))
    assert verdicts(survey) == {what: FitnessVerdict.WARN}
    assert row(survey, what).now == now
    assert fix in row(survey, what).fix


def test_a_ring_says_how_long_the_processor_may_be_elsewhere():
    survey = replace(RIGHT, interface=replace(LINK, hardware=Hardware(rings=Rings(4096, 4096, 256, 256))))
    assert "5 ms at the rate" in row(survey, "eth0 rings").why, "4096 frames of 1538 B on the wire at 10 Gbit/s"


def test_pause_frames_are_shown_and_are_no_fault():
    survey = replace(RIGHT, interface=replace(LINK, hardware=Hardware(pause=PauseFrames(obeyed=True, sent=False))))
    assert verdicts(survey) == {}
    assert row(survey, "eth0 PAUSE").now == "obeyed, not sent"


def test_what_a_path_s_death_would_cost_mptcp_and_sctp_is_said_with_the_cure():
    mptcp, sctp = {"mptcp.enabled": "0", "mptcp.stale_loss_cnt": "4"}, {"sctp.pf_enable": "0", "sctp.pf_retrans": "0"}
    spoilt = set_up(**mptcp, **sctp)
    assert verdicts(spoilt) == dict.fromkeys((*mptcp, "sctp.pf_enable"), FitnessVerdict.WARN)
    assert row(spoilt, "mptcp.stale_loss_cnt").fix == 'sysctl -w net.mptcp.stale_loss_cnt="1"'
    assert row(spoilt, "sctp.pf_enable").fix == 'sysctl -w net.sctp.pf_enable="1"'
    assert "net.sctp.pf_enable = 1" in sysctl_file(spoilt, WANTED)
