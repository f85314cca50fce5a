"""A switch database that was away for long, on this machine."""

import os
import shutil
import subprocess
import time

import pytest

from controller.southbound.errors import DatabaseGone, NoSuchPort
from controller.southbound.ovsdb.writer import QueueWriter
from mininet_tests.site.openvswitch import Directories, PrivateOvs
from mininet_tests.testing.eventually import eventually

SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
AWAY_S, BACK_WITHIN_S = 10.5, 3.0  # the ovs package's own attempts would be about 1, 3, 8 and 16 s after the end

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ovs-vswitchd") is None, reason="needs root and Open vSwitch"),
]


def test_a_database_that_was_away_for_long_is_used_as_soon_as_it_is_back(tmp_path):
    ovs = PrivateOvs(Directories.under(tmp_path))
    subprocess.run(["ovsdb-tool", "create", tmp_path / "conf.db", SCHEMA], check=True)
    ovs.start_database()
    ovs.vsctl("--no-wait", "init")
    with QueueWriter(ovs.remote) as writer:
        assert answers(writer, 10)
        ovs.stop_database()
        gone_s = time.monotonic()
        eventually(lambda: time.monotonic() > gone_s + AWAY_S, within_s=2 * AWAY_S, what="it was away for long")
        assert not answers(writer, 0.1)
        ovs.start_database()
        assert answers(writer, BACK_WITHIN_S)
    ovs.stop_database()


def answers(writer: QueueWriter, within_s: float) -> bool:
    """Whether the database says in time that it has no such port."""
    try:
        writer.installed("no-such-port", within_s)
    except NoSuchPort:
        return True
    except DatabaseGone:
        return False
    raise AssertionError("it has the port")
