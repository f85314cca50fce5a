"""One SCTP association over two paths at once, in two network namespaces."""

import ctypes
import json
import os
import subprocess
import sys

import pytest

from mininet_tests.scenarios.lanes.cmt_mover import LIBRARY, MESSAGE_BYTES
from mininet_tests.testing.eventually import eventually

SENDER, RECEIVER = ("10.20.20.20", "10.20.20.120"), ("10.20.20.100", "10.20.20.200")
PORT, SIZE_BYTES, WINDOW_BYTES = 6001, 10_000_000, 100_000
MOVER = (sys.executable, "-m", "mininet_tests.scenarios.lanes.cmt_mover")


def _library_is_missing():
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return True
    return False


pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(_library_is_missing(), reason=f"no {LIBRARY}: Debian's package libusrsctp2 has it"),
]


def ip(*words):
    """What a command of iproute2 says."""
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def hosts():
    """Two hosts, with a line from each address of the one to the address of the other that has the same number."""
    names = [f"hwcmt{os.getpid()}{end}" for end in "sr"]
    for name in names:
        ip("netns", "add", name)
    try:
        for number, ends in enumerate(zip(SENDER, RECEIVER, strict=True)):
            line = f"v{number}"
            ip("link", "add", line, "netns", names[0], "type", "veth", "peer", line, "netns", names[1])
            for name, own, far in zip(names, ends, reversed(ends), strict=True):
                ip("-n", name, "address", "add", f"{own}/32", "dev", line)
                ip("-n", name, "link", "set", line, "up")
                ip("-n", name, "route", "add", far, "dev", line, "src", own)
        yield names
    finally:
        for name in names:
            ip("netns", "delete", name)


def sent_bytes(host):
    """How many bytes a host has sent by each line."""
    shown = json.loads(ip("-n", host, "-s", "-j", "link", "show"))
    return [one["stats64"]["tx"]["bytes"] for one in shown if one["ifname"].startswith("v")]


def listens(host):
    """Whether a host takes SCTP in UDP."""
    shown = subprocess.run(["ip", "netns", "exec", host, "ss", "-Hnul"], check=True, capture_output=True, text=True)
    return ":9899" in shown.stdout


def transfer(hosts, taken_bytes):
    """What a transfer says of which the receiver takes so many bytes first; and how the sender ends."""
    sender, receiver = (["ip", "netns", "exec", host, *MOVER] for host in hosts)
    serving = subprocess.Popen([*receiver, "serve", ",".join(RECEIVER), str(PORT), str(taken_bytes)])
    try:
        eventually(lambda: listens(hosts[1]), within_s=20, what="the receiver listens")
        sending = [*sender, "send", ",".join(SENDER), str(PORT), str(SIZE_BYTES), "--to", RECEIVER[0]]
        sending += ["--window", str(WINDOW_BYTES)]
        return subprocess.run(sending, check=False, capture_output=True, text=True, timeout=60)
    finally:
        serving.kill()
        serving.wait()


def test_all_bytes_come_as_they_were_sent_and_by_both_paths(hosts):
    done = transfer(hosts, SIZE_BYTES)
    assert done.returncode == 0, done.stderr
    by_line = sent_bytes(hosts[0])
    assert sum(by_line) == pytest.approx(1.05 * SIZE_BYTES, rel=0.03)
    assert min(by_line) > 0.3 * SIZE_BYTES, by_line


def test_a_sender_is_told_when_not_all_has_come(hosts):
    done = transfer(hosts, SIZE_BYTES // MESSAGE_BYTES * MESSAGE_BYTES)
    assert done.returncode
    assert "what has come is not what was sent" in done.stderr
