"""What is found on a host, on folders that stand for /proc and /sys."""

import errno
import fcntl
import json
import socket
import struct
import subprocess
from contextlib import nullcontext
from ipaddress import ip_address
from pathlib import Path

import pytest

from hostagent.doctor import survey
from hostagent.doctor.buffers import Numbers
from hostagent.doctor.survey import OtherNamespace
from hostagent.kernel.leftovers import lock_path
from topology.protocol import MOST_INTERFACES


def process(proc: Path, pid: int, namespace: str, name: str) -> None:
    (proc / f"{pid}/ns").mkdir(parents=True)
    (proc / f"{pid}/ns/net").symlink_to(f"net:[{namespace}]")
    (proc / f"{pid}/comm").write_text(f"{name}\n")


def test_other_namespaces_are_found_by_their_processes(tmp_path):
    for pid, namespace, name in ((1, "1", "init"), (20, "7", "nginx"), (30, "7", "worker"), (40, "1", "sshd")):
        process(tmp_path, pid, namespace, name)
    (tmp_path / "self").symlink_to("40")
    (tmp_path / "50/ns").mkdir(parents=True)  # somebody else's: may not be looked at
    assert survey.other_namespaces(tmp_path) == (OtherNamespace(20, "nginx", 2),)


def test_what_this_namespace_does_not_show_is_left_out(tmp_path):
    (tmp_path / "tcp_rmem").write_text("4096\t131072\t6291456\n")
    assert survey.sysctls(tmp_path, tmp_path) == {"tcp_rmem": Numbers((4096, 131072, 6291456))}


def test_settings_of_a_protocol_are_seen_where_its_module_is_loaded(tmp_path):
    for folder in ("ipv4", "core", "sctp"):
        (tmp_path / folder).mkdir()
    (tmp_path / "sctp" / "pf_enable").write_text("0\n")
    assert survey.sysctls(tmp_path / "ipv4", tmp_path / "core") == {"sctp.pf_enable": Numbers((0,))}


def test_an_agent_is_found_by_its_lock(tmp_path):
    assert not survey.agent_runs(tmp_path, "1a")
    with lock_path(tmp_path, "1a").open("w") as lock:
        assert not survey.agent_runs(tmp_path, "1a"), "the file is left by one that has ended"
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert survey.agent_runs(tmp_path, "1a")


def test_a_host_whose_kernel_is_too_old_to_tell_namespaces_apart_can_be_looked_at(tmp_path, monkeypatch):
    """Linux 5.14 is the first that can; no agent runs on an older one."""

    def refused():
        raise OSError(errno.ENOPROTOOPT, "Protocol not available")

    monkeypatch.setattr(survey.Namespace, "of_this_process", refused)
    assert not survey.survey(None, tmp_path, "127.0.0.1").agent_runs


def test_this_host_can_be_looked_at(tmp_path):
    found = survey.survey(None, tmp_path, "127.0.0.1")
    assert found.interface is not None
    assert found.interface.name == "lo"
    assert found.memory_bytes >= found.available_bytes > 0
    assert "tcp_rmem" in found.settings
    assert survey.largest_mtu_bytes() >= 1500


def test_interfaces_are_told_with_their_addresses_as_the_kernel_has_them():
    shown = subprocess.run(["ip", "-json", "address"], check=True, capture_output=True, text=True, timeout=10).stdout
    known = {
        one["ifname"]: (one["mtu"], {ip_address(its["local"]) for its in one["addr_info"]})
        for one in json.loads(shown)
        if one["ifname"] != "lo" and one["addr_info"]
    }
    told = survey.host_interfaces()
    assert {one.name: (one.mtu_bytes, set(one.addresses)) for one in told} == known


def test_interfaces_that_others_reach_are_told_before_seventy_that_only_their_own_link_does(monkeypatch):
    addresses = {2: "192.0.2.1", **{index: f"fe80::{index:x}" for index in range(3, 73)}, 73: "10.1.0.5"}

    def answer(*_):
        for index, text in addresses.items():
            packed = ip_address(text).packed
            yield struct.pack("=BBBBI", 0, 0, 0, 0, index) + struct.pack("=HH", 4 + len(packed), 1) + packed

    monkeypatch.setattr(survey.netlink, "connected", nullcontext)
    monkeypatch.setattr(survey.netlink, "dumped", answer)
    monkeypatch.setattr(socket, "if_nameindex", lambda: [(index, f"if{index}") for index in addresses])
    told = [one.name for one in survey.host_interfaces()]
    assert (told[:3], len(told)) == (["if2", "if73", "if3"], MOST_INTERFACES)


def test_what_is_no_address_is_refused():
    with pytest.raises(ValueError, match="base20"):
        survey.route_interface("base20")
