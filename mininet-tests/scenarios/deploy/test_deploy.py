"""The packages' whole life in a Debian of their own; and what is said to be left of them is what is left."""

import os
import shutil
import sys

import pytest

from mininet_tests.scenarios.deploy.left import Found
from mininet_tests.testing.reports import report_of

BEFORE = Found(frozenset({"/etc"}), frozenset({"root"}), frozenset({"dbus.service"}), {"net.core.rmem_max": "1"})


@pytest.mark.parametrize(
    ("now", "seen"),
    [
        (BEFORE, []),
        (Found(frozenset({"/etc", "/etc/x"}), BEFORE.users, BEFORE.units, BEFORE.settings), ["/etc/x"]),
        (Found(frozenset(), BEFORE.users, BEFORE.units, BEFORE.settings), ["gone: /etc"]),
        (Found(BEFORE.files, frozenset({"root", "a"}), frozenset({"b", "dbus.service"}), BEFORE.settings), ["a", "b"]),
        (Found(BEFORE.files, BEFORE.users, BEFORE.units, {"x": "2"}), ["net.core.rmem_max: 1 -> None", "x: None -> 2"]),
    ],
)
def test_all_that_is_left_is_told(now, seen):
    assert now.since(BEFORE) == seen


@pytest.mark.root
@pytest.mark.long
@pytest.mark.timeout(2200)
@pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("systemd-nspawn", "mmdebstrap", "umoci", "runc"))),
    reason="needs root, and Debian's packages systemd-container, mmdebstrap, umoci and runc",
)
def test_packages_are_installed_upgraded_killed_booted_removed_and_purged_and_leave_only_their_users(tmp_path):
    command = [sys.executable, "-m", "mininet_tests.scenarios.deploy.run", "--out", tmp_path]
    seen = report_of(command, tmp_path)
    timed = {name for name in seen["aims"] if "delivered over" in name}  # a busy machine is late; the run judges that
    assert {name: seen["aims"][name]["seen"] for name in set(seen["falls_short"]) - timed} == {}
    assert len(seen["aims"]) > 30
