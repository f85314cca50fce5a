"""What a host may lack."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hostagent.kernel.probe import Facts, facts, lacking

REPOSITORY = Path(__file__).parents[2]

ALL_CAPABILITIES = (1 << 41) - 1
GOOD = Facts(kernel="6.1.0-21-amd64", capabilities=ALL_CAPABILITIES, btf=True, libbpf=True, cgroup=True)


def test_a_good_host_lacks_nothing():
    assert lacking(GOOD) == ()


def test_three_capabilities_are_enough():
    assert lacking(replace(GOOD, capabilities=1 << 12 | 1 << 38 | 1 << 39)) == ()


@pytest.mark.parametrize(
    ("host", "words"),
    [
        (replace(GOOD, kernel="5.15.0-101-generic"), "Linux 6.0"),
        (replace(GOOD, kernel="nonsense"), "Linux 6.0"),
        (replace(GOOD, btf=False), "CONFIG_DEBUG_INFO_BTF"),
        (replace(GOOD, libbpf=False), "apt install libbpf1"),
        (replace(GOOD, cgroup=False), "mount -t cgroup2"),
        (replace(GOOD, shifted_clocks=("boottime",)), "in the host's time namespace"),
        (replace(GOOD, capabilities=1 << 12 | 1 << 39), "AmbientCapabilities=CAP_PERFMON"),
        (replace(GOOD, capabilities=1 << 21), "AmbientCapabilities=CAP_NET_ADMIN"),
    ],
    ids=["old", "unreadable", "btf", "libbpf", "cgroup", "clocks", "perfmon", "net_admin"],
)
def test_each_lack_says_what_to_do(host, words):
    (lack,) = lacking(host)
    assert words in str(lack)


def test_all_lacks_are_told_together():
    assert len(lacking(Facts("4.4.0", 0, btf=False, libbpf=False, cgroup=False))) == 5


def test_this_host_can_be_looked_at():
    assert facts(None).kernel


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a time namespace")
@pytest.mark.root
@pytest.mark.parametrize(
    ("options", "shifted"), [((), ()), (("--boottime", "7"), ("boottime",)), (("--monotonic", "-1"), ("monotonic",))]
)
def test_a_time_namespace_whose_clocks_are_the_host_s_is_as_good_as_none(options, shifted):
    shown = "from hostagent.kernel.probe import facts; print(facts(None).shifted_clocks)"
    command = ["unshare", "--time", "--fork", *options, sys.executable, "-c", shown]
    ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == str(shifted)
