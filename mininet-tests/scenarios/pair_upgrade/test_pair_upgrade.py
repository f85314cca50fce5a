"""A pair from its Debian packages is upgraded in turn, and nobody who asks notices."""

import os
import shutil
import sys

import pytest

from mininet_tests.site.postgresql import binaries
from mininet_tests.testing.reports import report_of


@pytest.mark.root
@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.skipif(
    os.geteuid() != 0
    or binaries() is None
    or not all(map(shutil.which, ("systemd-nspawn", "mmdebstrap", "ovs-vswitchd"))),
    reason="needs root, PostgreSQL, Open vSwitch, and Debian's packages systemd-container and mmdebstrap",
)
def test_a_pair_from_the_packages_is_upgraded_in_turn_and_nothing_is_lost(tmp_path):
    command = [sys.executable, "-m", "mininet_tests.scenarios.pair_upgrade.run", "--out", tmp_path]
    seen = report_of(command, tmp_path)
    timed = {name for name in seen["aims"] if ", s" in name}  # a busy machine is late; the run itself judges that
    assert {name: seen["aims"][name]["seen"] for name in set(seen["falls_short"]) - timed} == {}
    assert len(seen["aims"]) > 10
