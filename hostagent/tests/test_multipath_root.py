"""Multipath TCP's endpoints and limits are seen as the kernel has them, in a network namespace of our own."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.root

TWO_INTERFACES = """
set -eu
ip link add h0 type veth peer name h1
ip link set h0 up
ip link set h1 up
ip address add 10.99.0.1/24 dev h0
ip address add 2001:db8:99::1/64 dev h1 nodad
ip mptcp limits set subflow 3 add_addr_accepted 1
ip mptcp endpoint add 10.99.0.1 dev h0 subflow
ip mptcp endpoint add 2001:db8:99::1 dev h1 signal
"""
SEEN = """
from pathlib import Path
from hostagent.doctor import survey
found = survey.survey(None, Path("/run"), "10.99.0.2")
print(found.mptcp.subflows, found.mptcp.accepted, *found.mptcp.endpoints, *sorted(one.name for one in found.lanes))
"""


def test_the_kernel_s_endpoints_and_limits_are_seen():
    course = f"{TWO_INTERFACES}\nexec {sys.executable} -c '{SEEN}'"
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", course], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["3", "1", "10.99.0.1", "2001:db8:99::1", "h0", "h1"]
