"""What a host with several interfaces lacks for Multipath TCP and SCTP, and what a path's death costs it."""

import os
from dataclasses import replace
from ipaddress import ip_address

import pytest

from hostagent.doctor import multipath, several_paths
from hostagent.doctor.buffers import Numbers, Wanted
from hostagent.doctor.check import rows, settings_for, sysctl_file
from hostagent.doctor.multipath import MptcpPaths
from hostagent.doctor.row import FitnessVerdict, Row
from hostagent.doctor.survey import Interface, Survey
from hostagent.kernel.probe import Facts
from hostagent.tests.service import NOBODY
from topology.protocol import HostInterface
from topology.wire import Framing

WANTED = Wanted(1_500_000_000, 200_000, Framing())
NORTH, SOUTH, SOUTH6 = ip_address("10.0.1.20"), ip_address("10.0.2.20"), ip_address("2001:db8:2::20")
LANES = (HostInterface("eth0", (NORTH,)), HostInterface("eth1", (SOUTH, SOUTH6)))
FACTS = Facts("6.12.0", (1 << 41) - 1, btf=True, libbpf=True, cgroup=True)
ONE = Survey(
    FACTS,
    {
        "tcp_rmem": Numbers((4096, 131072, 6291456)),
        "tcp_wmem": Numbers((4096, 16384, 4194304)),
        "mptcp.enabled": Numbers((1,)),
    },
    Interface("eth0", 1500, "fq", 65536, None),
    24 * 2**30,
    20 * 2**30,
    timer_ns=1,
    mptcp=MptcpPaths(2, 0),
)
TWO = replace(ONE, lanes=LANES)
SCTP = {"pf_enable": 1, "pf_retrans": 0, "rto_min": 1000, "rto_max": 60_000, "path_max_retrans": 5}


def found(survey: Survey) -> dict[str, Row]:
    return {row.what: row for row in rows(survey, WANTED)}


def with_sctp(survey: Survey = ONE, **other: int) -> Survey:
    its = {f"sctp.{name}": Numbers((number,)) for name, number in (SCTP | other).items()}
    return replace(survey, settings=survey.settings | its)


def test_a_host_with_one_interface_is_told_nothing_of_endpoints_and_modules():
    assert not {"MPTCP endpoints", "MPTCP limits", "MPTCP", "SCTP"} & found(ONE).keys()


def test_an_interface_without_an_endpoint_has_no_second_subflow():
    row = found(TWO)["MPTCP endpoints"]
    assert (row.verdict, row.now, row.needed) == (FitnessVerdict.WARN, "none", "one of eth1")
    assert row.fix.startswith("ip mptcp endpoint add 10.0.2.20 dev eth1 subflow; ")


def test_the_interface_that_the_first_subflow_leaves_by_needs_no_endpoint():
    assert found(replace(TWO, mptcp=MptcpPaths(2, 0, (SOUTH,))))["MPTCP endpoints"].verdict is FitnessVerdict.OK
    assert found(replace(TWO, mptcp=MptcpPaths(2, 0, (NORTH,))))["MPTCP endpoints"].verdict is FitnessVerdict.WARN


def test_where_no_route_says_which_interface_is_first_each_needs_an_endpoint():
    row = found(replace(TWO, interface=None))["MPTCP endpoints"]
    assert row.needed == "one of eth0, eth1 each"
    assert "add 10.0.1.20 dev eth0 subflow; ip mptcp endpoint add 10.0.2.20 dev eth1 subflow" in row.fix


def test_an_endpoint_of_the_other_ip_version_has_no_second_subflow():
    row = found(replace(TWO, mptcp=MptcpPaths(2, 0, (SOUTH6,))))["MPTCP endpoints"]
    assert (row.verdict, row.now) == (FitnessVerdict.WARN, "2001:db8:2::20")
    assert row.fix.startswith("ip mptcp endpoint add 10.0.2.20 dev eth1 subflow; nothing")


def test_limits_below_the_lanes_are_named_with_the_command():
    row = found(replace(TWO, mptcp=MptcpPaths(0, 4)))["MPTCP limits"]
    assert (row.verdict, row.now) == (FitnessVerdict.WARN, "subflows 0, add_addr_accepted 4")
    assert row.fix.startswith("ip mptcp limits set subflow 1 add_addr_accepted 4")
    assert found(TWO)["MPTCP limits"].verdict is FitnessVerdict.OK


def test_what_the_kernel_does_not_tell_or_does_not_have_is_said():
    assert found(replace(TWO, mptcp=None))["MPTCP endpoints"].now == "not visible here"
    without = {name: its for name, its in TWO.settings.items() if name != "mptcp.enabled"}
    assert found(replace(TWO, settings=without))["MPTCP"].fix.startswith("boot a kernel with CONFIG_MPTCP=y")


def test_the_receive_buffer_that_is_asked_for_has_room_for_what_waits_for_another_lane():
    row = found(TWO)["tcp_rmem[2]"]
    assert "MPTCP" in row.why
    assert "MPTCP" not in found(ONE)["tcp_rmem[2]"].why
    assert settings_for(TWO, WANTED)["tcp_rmem"].of[2] >= 3 * 2 * WANTED.bdp_bytes


@pytest.mark.parametrize(
    ("other", "cost", "fix"),
    [
        ({}, "1 s", ""),
        ({"pf_enable": 0}, "63 s", 'sysctl -w net.sctp.pf_enable="1"'),
        ({"pf_retrans": 2}, "7 s", 'sysctl -w net.sctp.pf_retrans="0"'),
        ({"rto_min": 3000}, "3 s", 'sysctl -w net.sctp.rto_min="1000"'),
        ({"pf_enable": 0, "rto_max": 4000}, "19 s", 'sysctl -w net.sctp.pf_enable="1"'),
        ({"pf_enable": 0, "path_max_retrans": 2}, "7 s", 'sysctl -w net.sctp.pf_enable="1"'),
        ({"rto_min": 200, "rto_max": 1000, "path_max_retrans": 2}, "0.2 s", ""),
    ],
)
def test_what_a_path_s_death_costs_sctp_follows_from_its_timeouts(other, cost, fix):
    row = found(with_sctp(**other))["SCTP, a path's death"]
    assert (row.now, row.fix) == (f"{cost} without a byte", fix)
    assert (row.verdict is FitnessVerdict.OK) == (not fix)


@pytest.mark.parametrize(("name", "spoilt"), [("rto_min", 3000), ("rto_max", 120_000), ("path_max_retrans", 10)])
def test_a_timeout_above_linux_s_own_has_the_command_that_puts_it_back(name, spoilt):
    survey = with_sctp(**{name: spoilt})
    row = found(survey)[f"sctp.{name}"]
    assert (row.verdict, row.fix) == (FitnessVerdict.WARN, f'sysctl -w net.sctp.{name}="{SCTP[name]}"')
    assert f"net.sctp.{name} = {SCTP[name]}" in sysctl_file(survey, WANTED)


def test_a_shorter_timeout_stays():
    assert "net.sctp.rto_min = 200" in sysctl_file(with_sctp(rto_min=200), WANTED)


def test_sctp_that_is_not_loaded_is_told_from_sctp_that_is_not_there():
    assert found(replace(TWO, has_sctp_module=True))["SCTP"].fix.startswith("modprobe sctp")
    assert found(TWO)["SCTP"].now == "this kernel has no module sctp"
    assert "kernel-modules-extra" in found(TWO)["SCTP"].fix, "where RHEL has it"
    assert found(replace(TWO, has_sctp_module=None))["SCTP"].now == "modules not visible here"
    assert "SCTP" not in found(with_sctp(TWO))


def test_the_module_is_looked_for_among_those_of_the_kernel(tmp_path):
    assert multipath.has_sctp_module(tmp_path, "6.12.0") is None
    (tmp_path / "6.12.0").mkdir()
    (tmp_path / "6.12.0/modules.builtin").write_text("kernel/net/ipv6/ipv6.ko\n")
    assert multipath.has_sctp_module(tmp_path, "6.12.0") is False
    (tmp_path / "6.12.0/modules.dep").write_text("kernel/net/sctp/sctp.ko.xz: kernel/lib/libcrc32c.ko.xz\n")
    assert multipath.has_sctp_module(tmp_path, "6.12.0")


def test_a_service_that_may_not_look_at_modules_says_that_they_cannot_be_seen(tmp_path):
    (tmp_path / "modules").mkdir(mode=0)  # so does systemd hide them: ProtectKernelModules=
    user = os.geteuid()
    os.seteuid(user or NOBODY)
    try:
        assert multipath.has_sctp_module(tmp_path / "modules", "6.12.0") is None
    finally:
        os.seteuid(user)


def test_bridges_and_link_local_addresses_are_no_lanes(tmp_path):
    (tmp_path / "docker0/bridge").mkdir(parents=True)
    local = ip_address("fe80::1")
    interfaces = (
        HostInterface("eth0", (NORTH, local)),
        HostInterface("docker0", (ip_address("172.17.0.1"),)),
        HostInterface("veth7", (local,)),
        HostInterface("eth1", (SOUTH, SOUTH6)),
    )
    assert multipath.lane_interfaces(interfaces, tmp_path) == LANES


def test_an_old_kernel_that_shows_fewer_of_sctp_s_settings_has_linux_s_defaults():
    shown = {name: its for name, its in with_sctp().settings.items() if "pf_" not in name}
    (row,) = several_paths.rows(replace(ONE, settings=shown))
    assert row.now == "1 s without a byte"
