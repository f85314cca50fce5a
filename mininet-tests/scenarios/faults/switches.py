"""A controller and two userspace switches of Open vSwitch, without hosts: what faults do to rules and meters.

Run inside ``isolated.sh``, on any machine. Prints as JSON what came of the parts that are asked for: the faults, or a
group of what users meet (``points.py``); ``run.py`` has the traffic.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from mininet_tests.probes.switch_state import SwitchesSeen, applied_messages
from mininet_tests.scenarios.faults.points import GROUPS, replayed
from mininet_tests.site.openvswitch import Directories, PrivateOvs
from mininet_tests.site.running import Running, running
from mininet_tests.site.topos import Realised
from mininet_tests.site.userspace_switches import add_switches
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import chile_illinois

RATE = "100 Mbit/s"
FLOWS = [{"name": "raw-images", "class": "background", "from": "base23", "to": "arch"}]
SETTLED_WITHIN_S = 90.0  # beside three guests 30 were too few
AWAY_S = 3.0
LEASE_S = 3.0
AT_REST_S = 2.0
FAULTS = "faults"


def run(directory: Path, parts: Sequence[str]) -> dict[str, Any]:
    """Return what each fault did if the faults are among the parts, and what came of the points of the other parts.

    Raises:
        AssertionError: something did not come about in time.
    """
    with (
        PrivateOvs(Directories.standard()) as ovs,
        running(directory, f"sqlite:///{directory / 'headway.db'}", rate=RATE, flows=FLOWS) as controller,
    ):
        port = yaml.safe_load(controller.config.read_text())["listen"]["openflow"].rpartition(":")[2]
        add_switches(ovs, chile_illinois(), port)
        faults: dict[str, tuple[Callable[[], object], ...]] = {
            "openflow cut": (partial(subprocess.run, ["ss", "-K", "dport", "=", port], check=True, stdout=-3),),
            "vswitchd killed": (ovs.kill_switch, ovs.start_switch),
            "vswitchd restarted": (ovs.end_switch, ovs.start_switch),
            "database away": (ovs.stop_database, partial(time.sleep, AWAY_S), ovs.start_database),
        }
        _wait_for(controller, 2)
        time.sleep(LEASE_S + 1)  # there are no agents: from here on their hosts are absent
        _wait_for_rest(controller)
        played = {name: _played(controller, acts) for name, acts in faults.items() if FAULTS in parts}
        groups = [part for part in parts if part != FAULTS]
        return {"faults": played, "points": replayed(ovs, controller, directory / "headway.db", groups)}


def _played(controller: Running, acts: Sequence[Callable[[], object]]) -> dict[str, Any]:
    log, realised = controller.config.with_suffix(".log"), Realised(None, chile_illinois(), {})
    before, log_bytes, ups = SwitchesSeen.now(realised), log.stat().st_size, _ups(controller)
    for act in acts:
        act()
    _wait_for(controller, ups + 2)
    after = SwitchesSeen.now(realised)
    return {
        "rules": after.rules,
        "rules_put_again": after.younger_than(before),
        "messages": applied_messages(log, log_bytes),
        "state_as_before": after.state == before.state,
    }


def _ups(controller: Running) -> int:
    """Return how often a switch has connected so far."""
    return controller.config.with_suffix(".log").read_text().count("event=switch.up")


def _wait_for_rest(controller: Running) -> None:
    """Wait until no plan has been put for a while: on a busy machine the one without hosts is put later."""
    log = controller.config.with_suffix(".log")

    def rests() -> bool:
        steps = log.read_text().count("place=meters us=")
        time.sleep(AT_REST_S)
        return log.read_text().count("place=meters us=") == steps

    eventually(rests, within_s=SETTLED_WITHIN_S, what="no plan is being put")


def _wait_for(controller: Running, ups: int) -> None:
    """Wait until switches have connected so often, and have confirmed the plan since."""

    def settled() -> bool:
        log = controller.config.with_suffix(".log").read_text()
        since = log.rpartition("event=switch.up")[2]
        health = controller.asks("GET", "/healthz").json()
        return _ups(controller) >= ups and "place=meters us=" in since and bool(health["ok"])

    eventually(settled, within_s=SETTLED_WITHIN_S, what=f"{ups} connections, and the plan is in force")


def main() -> None:
    """Run the parts that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", choices=(FAULTS, *GROUPS))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headway-") as scratch:
        json.dump(run(Path(scratch), asked.parts), sys.stdout)


if __name__ == "__main__":
    main()
