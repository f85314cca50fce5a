"""A network's file that says ports by name: the numbers are the switches' own, and may change."""

import json
import subprocess

import pytest

from mininet_tests.lab import commands
from mininet_tests.scenarios.switches.named_ports import MOVED_TO


@pytest.mark.root
def test_rules_have_the_numbers_that_the_switches_show_also_after_one_has_changed():
    command = commands.isolated(*commands.module("scenarios.switches.named_ports"))
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout)
    assert seen["before"] == {
        "sum1": {"said": [1, 2, 3, 4], "used": [1, 2, 3, 4]},
        "bas1": {"said": [11, 12, 13], "used": [11, 12, 13]},
    }
    assert any("port sum1-dtn1 to dtn1 is missing" in reason for reason in seen["missed"]), seen["missed"]
    assert seen["after"]["sum1"] == {"said": [1, 2, 3, MOVED_TO], "used": [1, 2, 3, MOVED_TO]}
