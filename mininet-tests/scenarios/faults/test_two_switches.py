"""Faults of two userspace switches on this machine, without traffic."""

import json
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from controller.plan.flows import flow_on
from controller.plan.keys import FlowId
from controller.plan.plan import PlanInput
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.southbound.openflow.desired import switch_state
from mininet_tests.lab import commands
from mininet_tests.scenarios.faults.aims import of_points
from mininet_tests.testing.aims import stated
from mininet_tests.testing.networks import chile_illinois
from topology.protocol import FlowClass

_NETWORK = chile_illinois()
_RAW_IMAGES = flow_on(_NETWORK, FlowId("raw-images"), FlowClass.BACKGROUND, _NETWORK.path("base23", "arch"))
_PLAN = planned(2, _NETWORK, DEFAULT_POLICY, PlanInput((_RAW_IMAGES,)))
_STATES = [switch_state(_NETWORK, s, _PLAN, DEFAULT_POLICY) for s in _NETWORK.switches]
RULES, METERS = sum(len(s.rules) for s in _STATES), sum(len(s.meters) for s in _STATES)  # of both switches

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ovs-vswitchd") is None, reason="needs root and Open vSwitch"),
    pytest.mark.timeout(600),
]


AT_ONCE = (("faults", "promises"), ("ports",), ("strangers",))  # each on a site of its own: they mostly wait


def played(parts):
    """What came of some parts on one site."""
    command = commands.isolated(*commands.module("scenarios.faults.switches", *parts))
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


@pytest.fixture(scope="module")
def switches():
    """What faults did to two userspace switches, and what users met there."""
    with ThreadPoolExecutor() as pool:
        sites = list(pool.map(played, AT_ONCE))
    return {key: {name: one for site in sites for name, one in site[key].items()} for key in ("faults", "points")}


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
