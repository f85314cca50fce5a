"""Faults of two userspace switches and of their database on this machine, without traffic."""

import json
import os
import shutil
import subprocess
import time

import pytest

from controller.plan.flows import flow_on
from controller.plan.keys import FlowId
from controller.plan.plan import PlanInput
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.southbound.errors import DatabaseGone, NoSuchPort
from controller.southbound.openflow.desired import switch_state
from controller.southbound.ovsdb.writer import QueueWriter
from mininet_tests.lab import commands
from mininet_tests.scenarios.faults.aims import of_points
from mininet_tests.site.openvswitch import Directories, PrivateOvs
from mininet_tests.testing.aims import stated
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import chile_illinois
from topology.protocol import FlowClass

SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
_NETWORK = chile_illinois()
_RAW_IMAGES = flow_on(_NETWORK, FlowId("raw-images"), FlowClass.BACKGROUND, _NETWORK.path("base23", "arch"))
_PLAN = planned(2, _NETWORK, DEFAULT_POLICY, PlanInput((_RAW_IMAGES,)))
_STATES = [switch_state(_NETWORK, s, _PLAN, DEFAULT_POLICY) for s in _NETWORK.switches]
RULES, METERS = sum(len(s.rules) for s in _STATES), sum(len(s.meters) for s in _STATES)  # of both switches

AWAY_S, BACK_WITHIN_S = 10.5, 3.0  # the ovs package's own attempts would be about 1, 3, 8 and 16 s after the end

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ovs-vswitchd") is None, reason="needs root and Open vSwitch"),
    pytest.mark.timeout(600),
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


@pytest.fixture(scope="module")
def switches():
    """What faults did to two userspace switches."""
    command = commands.isolated(*commands.module("scenarios.faults.switches"))
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


@pytest.mark.parametrize("fault", ["openflow cut", "database away"])
def test_nothing_is_put_again_that_was_right(switches, fault):
    assert switches["faults"][fault] == {
        "rules": RULES,
        "rules_put_again": 0,
        "messages": 0,
        "state_as_before": True,
    }


@pytest.mark.parametrize("fault", ["vswitchd killed", "vswitchd restarted"])
def test_a_switch_that_lost_all_gets_all_of_it_once(switches, fault):
    seen = switches["faults"][fault]
    # not their ages: of two restarts within a second both generations of rules are as old
    assert (seen["rules"], seen["state_as_before"]) == (RULES, True)
    assert seen["messages"] == RULES + METERS  # one a rule, one a meter, in one phase without a barrier


def test_what_once_went_wrong_for_users_goes_as_it_should(switches):
    found = stated(of_points(switches["points"]))
    assert len(found["aims"]) > 20
    assert found["falls_short"] == [], {name: found["aims"][name] for name in found["falls_short"]}
