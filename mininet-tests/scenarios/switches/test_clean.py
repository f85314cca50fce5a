"""``headway clean`` on a bridge that has other people's rules, meters, groups and queues beside ours."""

import os
import subprocess

import pytest

from controller.southbound.openflow.state import cookie
from controller.southbound.ovsdb.queues import PortQueues, Queue
from controller.southbound.ovsdb.writer import QueueWriter
from mininet_tests.site.command import HEADWAY
from mininet_tests.site.userspace_switch import (
    BRIDGE,
    DPID,
    NEEDS_OVS,
    bridge_settings,
    connected_switch,
    private_ovs,
)
from mininet_tests.testing.eventually import eventually

pytestmark = NEEDS_OVS

OTHER = "s2"
QUEUES = PortQueues(10**9, tuple(Queue(n, 10**8, 10**9, 10**6) for n in (0, 1)))
OURS = (f"cookie={cookie(5):#x},table=1,in_port=1,actions=meter:1000,group:1000", f"cookie={cookie(6):#x},actions=drop")
THEIRS = ("priority=9,in_port=1,actions=drop", "cookie=0x4856,priority=8,actions=meter:7,NORMAL")


@pytest.fixture
def ovs(tmp_path):
    """Bridge s1 with p1 and p3, s2 with p2; ours and theirs on both."""
    with private_ovs(tmp_path, {"p1": "p2", "p3": "p4"}) as ovs:
        for number, bridge in enumerate((BRIDGE, OTHER)):
            ovs.vsctl("add-br", bridge, "--", "set", "bridge", bridge, *bridge_settings(DPID + number))
        ovs.vsctl("add-port", BRIDGE, "p1", "--", "add-port", BRIDGE, "p3", "--", "add-port", OTHER, "p2")
        with QueueWriter(ovs.remote) as writer:
            writer.apply({"p1": QUEUES, "p2": QUEUES}, timeout_s=30)
        theirs = ["--id=@k", "create", "queue", "other_config:max-rate=1000000"]
        theirs += ["--", "--id=@q", "create", "qos", "type=linux-htb", "queues:0=@k", "external_ids:owner=them"]
        ovs.vsctl(*theirs, "--", "set", "port", "p3", "qos=@q")
        for bridge in (BRIDGE, OTHER):
            for meter in (7, 1000, 2000):
                ovs.ofctl("add-meter", bridge, f"meter={meter},kbps,band=type=drop,rate=1000")
            for group in (7, 1000):
                ovs.ofctl("add-group", bridge, f"group_id={group},type=all,bucket=output:1")
            for rule in (*THEIRS, *OURS):
                ovs.ofctl("add-flow", bridge, rule)
        yield ovs


def seen(ovs, bridge):
    """All that a bridge and its ports have."""
    there = {"rules": ovs.ofctl("--no-stats", "dump-flows", bridge)}
    there |= {kind: ovs.ofctl(f"dump-{kind}", bridge) for kind in ("meters", "groups")}
    starts = ("meter=", "group_id=", "actions=")  # of entries; the other lines are heads and bands
    kept = {
        kind: sorted(line.strip() for line in text.splitlines() if any(each in line for each in starts))
        for kind, text in there.items()
    }
    return kept | {port: ovs.vsctl("get", "port", port, "qos") for port in ovs.vsctl("list-ports", bridge).split()}


def rows(ovs):
    """How many QoS rows and queue rows the database has."""
    return [len(ovs.vsctl("--bare", "--columns=_uuid", "list", table).split()) for table in ("qos", "queue")]


def clean(ovs, *arguments, code=0):
    """What the command says."""
    command = [HEADWAY, "clean", *arguments]
    done = subprocess.run(command, env=ovs.environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_all_that_is_ours_goes_and_nothing_else(ovs):
    before, beside = seen(ovs, BRIDGE), seen(ovs, OTHER)
    counts = "2 rules, 2 meters, 1 groups, 1 QoS, 2 queues"
    said = clean(ovs, BRIDGE, "--dry-run").splitlines()
    assert (len(said), said[-1]) == (3, f"{BRIDGE}: {counts} would be taken out")
    assert seen(ovs, BRIDGE) == before
    assert rows(ovs) == [3, 5]
    assert clean(ovs, BRIDGE) == f"{BRIDGE}: {counts} taken out\n"
    assert seen(ovs, BRIDGE) == {
        "rules": [line for line in before["rules"] if "0x4857" not in line],
        "meters": [line for line in before["meters"] if "meter=1000" not in line and "meter=2000" not in line],
        "groups": [line for line in before["groups"] if "group_id=1000" not in line],
        "p1": "[]\n",
        "p3": before["p3"],
    }
    assert len(seen(ovs, BRIDGE)["rules"]) == 2
    assert seen(ovs, OTHER) == beside
    assert rows(ovs) == [2, 3]  # theirs, and ours of the other bridge
    assert clean(ovs, BRIDGE) == f"{BRIDGE}: nothing is ours\n"


def test_a_number_of_ours_that_rules_of_others_use_stays_for_they_would_go_with_it(ovs):
    ovs.ofctl("add-flow", BRIDGE, "priority=4,actions=meter:1000,group:1000")
    assert "rules of others use meter 1000, group 1000: left" in clean(ovs, BRIDGE)
    after = seen(ovs, BRIDGE)
    assert len(after["rules"]) == 3
    assert "meter=1000" in str(after["meters"])
    assert "meter=2000" not in str(after["meters"])


def test_what_a_port_that_is_gone_has_left_goes_too(ovs):
    ovs.vsctl("del-port", BRIDGE, "p1")
    clean(ovs, BRIDGE)
    assert rows(ovs) == [2, 3]


def test_while_a_controller_is_connected_only_force_does_it(tmp_path):
    with connected_switch(tmp_path) as switch:
        ovs = switch.ovs
        ovs.ofctl("add-flow", BRIDGE, f"cookie={cookie(5):#x},table=9,in_port=1,actions=drop")
        connected = ("--bare", "--columns=is_connected", "list", "controller")
        eventually(lambda: "true" in ovs.vsctl(*connected), within_s=60, what="the database shows the connection")
        assert "a controller is connected" in clean(ovs, BRIDGE, code=1)
        assert "0x4857" in ovs.ofctl("dump-flows", BRIDGE, "table=9")
        clean(ovs, BRIDGE, "--force")
        assert "0x4857" not in ovs.ofctl("dump-flows", BRIDGE, "table=9")


def test_no_such_bridge_is_one_line(ovs):
    said = clean(ovs, "nowhere", code=1)
    assert "nowhere" in said
    assert len(said.splitlines()) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else")
def test_a_socket_that_is_roots_is_said_with_what_to_do(ovs):
    reads = "+dac_read_search"  # whatever folder the checkout is in; it opens no socket
    somebody = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
    command = [*somebody, "--inh-caps", reads, "--ambient-caps", reads, HEADWAY, "clean", BRIDGE]
    done = subprocess.run(command, env=ovs.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Permission denied" in done.stderr
    assert done.stderr.endswith("do it by sudo\n")
