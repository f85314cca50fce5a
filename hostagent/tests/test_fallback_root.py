"""Catastrophic loss on this machine's kernel: when its connections are given back, and when that is over."""

import os
import subprocess

import pytest

from hostagent.tests.rates import LEASE_MS, assert_rate, ours, started
from hostagent.tests.rig import MBIT, Bulk, RunningAgent, allocation
from mininet_tests.testing.eventually import eventually
from topology.protocol import Allocations

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF")]

DEST = "10.77.0.2/32"
LOST = """
table inet lost {
    chain arriving { type filter hook input priority 0; meta l4proto tcp numgen random mod 10 < 4 drop; }
}
"""
SETTINGS = {"fallback": {"over": "1 s", "hold": "2 s"}}


def test_a_fallback_is_over_when_none_of_its_connections_is_left_and_the_next_one_is_held_at_once(
    hosts, tmp_path, cleanup
):
    agent = RunningAgent(hosts[0], tmp_path / "agent", **SETTINGS)
    cleanup.callback(agent.close)
    agent.obey(Allocations(1, LEASE_MS, (allocation("10.77.9.0/24", 50), allocation(DEST, 200))))
    bulk = started(cleanup, Bulk(*hosts))[0]
    eventually(lambda: bulk.info.bytes_acked > 10_000_000, within_s=5, what="data flows")
    hosts[1].inside(lambda: subprocess.run(["nft", "-f", "-"], input=LOST, text=True, check=True))
    eventually(lambda: "agent.fallback " in agent.log, within_s=15, what="so much loss is a catastrophe")
    eventually(lambda: not ours(bulk), within_s=3, what="it is given back")
    bulk.close()
    eventually(lambda: "agent.fallback_over" in agent.log, within_s=15, what="nobody is left who has fallen back")
    told = eventually(
        lambda: (one := agent.controller.entry(DEST)) and not one.fallback and one, within_s=5, what="that is told"
    )
    assert told.delivered_bytes > 10_000_000, "counts go on"
    hosts[1].inside(lambda: subprocess.run(["nft", "delete", "table", "inet", "lost"], check=True))
    following = Bulk(*hosts)
    cleanup.callback(following.close)
    assert ours(following)
    following.start()
    assert_rate([following], 200 * MBIT)
