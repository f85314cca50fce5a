"""How long a switch takes to accept a changed plan: userspace Open vSwitch, by the number of hosts that send.

All hosts of a site send by one circuit, whose capacity is halved and given back: the meter of each sender changes, and
those of the classes. From the first message until the switch has confirmed the last; beside it the CPU time of this
process, which is the controller's part, and which other load does not lengthen much.
"""

import argparse
import platform
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from apps.process import SWITCH_S
from controller.plan.plan import PlanInput
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.southbound.openflow.desired import switch_state
from controller.southbound.openflow.state import SwitchState
from mininet_tests.bench.growth import sending
from mininet_tests.site.userspace_switch import DPID, connected_switch
from mininet_tests.testing.aims import Aim, at_most, stated
from mininet_tests.testing.networks import STAR_BPS, star
from mininet_tests.testing.reports import write_report
from topology.network import Hop

SIZES = (50, 100, 400)
CHANGES = 20
TIMEOUT_S = 60.0
MOST_MS = 100


def states(hosts: int) -> tuple[SwitchState, SwitchState]:
    """Return what the switch of so many senders holds with a circuit that is whole, and with half of it."""
    network = star(hosts, 1)
    switch = next(switch for switch in network.switches if switch.name == "s0")
    flows = sending(network)
    whole, half = (
        planned(2, network, DEFAULT_POLICY, PlanInput(flows, {Hop("s0", "m"): bps}))
        for bps in (STAR_BPS, STAR_BPS // 2)
    )
    return tuple(switch_state(network, switch, plan, DEFAULT_POLICY) for plan in (whole, half))  # type: ignore[return-value]


def measured(hosts: int, changes: int) -> dict[str, Any]:
    """Return how long the changes of one size took."""
    both, wall_ms, cpu_ms, messages = states(hosts), [], [], 0
    with tempfile.TemporaryDirectory() as name, connected_switch(Path(name)) as switch:
        for state in (*both, *both):  # warm
            switch.sessions.apply(DPID, state, TIMEOUT_S)
        for change in range(changes):
            began, began_cpu = time.perf_counter(), time.process_time()
            messages = switch.sessions.apply(DPID, both[change % 2], TIMEOUT_S)
            wall_ms.append((time.perf_counter() - began) * 1e3)
            cpu_ms.append((time.process_time() - began_cpu) * 1e3)
    return {
        "hosts": hosts,
        "rules": len(both[0].rules),
        "messages": messages,
        "ms": {"least": round(min(wall_ms), 1), "median": round(median(wall_ms), 1), "most": round(max(wall_ms), 1)},
        "cpu_ms": {"least": round(min(cpu_ms), 1), "median": round(median(cpu_ms), 1), "most": round(max(cpu_ms), 1)},
    }


def aims(sizes: list[dict[str, Any]]) -> dict[str, Aim]:
    """Return the aims of a report."""
    largest = sizes[-1]
    return {f"a changed plan of {largest['hosts']} senders, median, ms": at_most(largest["ms"]["median"], MOST_MS)}


def main() -> None:
    """Run it all, write the file, print what it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/changed-plan"), help="folder (default: %(default)s)")
    parser.add_argument("--changes", type=int, default=CHANGES, help="of each size (default: %(default)s)")
    asked = parser.parse_args()
    sys.setswitchinterval(SWITCH_S)  # as the controller
    sizes = [measured(hosts, asked.changes) for hosts in SIZES]
    machine = {"python": platform.python_version(), "kernel": platform.release(), "cpu": platform.machine()}
    write_report(asked.out, {"sizes": sizes, "machine": machine, **stated(aims(sizes))})
    for one in sizes:
        print(f"{one['hosts']} hosts: {one['messages']} messages, ms {one['ms']}, of CPU {one['cpu_ms']}")
    print(f"written: {asked.out / 'report.json'}")


if __name__ == "__main__":
    main()
