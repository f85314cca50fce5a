"""What a host may lack."""

from dataclasses import replace

import pytest

from hostagent.kernel.probe import Facts, facts, lacking

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
        (replace(GOOD, capabilities=1 << 12 | 1 << 39), "AmbientCapabilities=CAP_PERFMON"),
        (replace(GOOD, capabilities=1 << 21), "AmbientCapabilities=CAP_NET_ADMIN"),
    ],
    ids=["old", "unreadable", "btf", "libbpf", "cgroup", "perfmon", "net_admin"],
)
def test_each_lack_says_what_to_do(host, words):
    (lack,) = lacking(host)
    assert words in str(lack)


def test_all_lacks_are_told_together():
    assert len(lacking(Facts("4.4.0", 0, btf=False, libbpf=False, cgroup=False))) == 5


def test_this_host_can_be_looked_at():
    assert facts(None).kernel
