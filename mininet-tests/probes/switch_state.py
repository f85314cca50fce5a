"""What the switches hold, as they say themselves, so that a rule put again can be told from one that stayed."""

import re
import shlex
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from controller.southbound.openflow.circuit_ports import QUEUE_ID, meter_id
from mininet_tests.site.topos import Realised, queue_rates_bps
from topology.protocol import FlowClass

CLOCK_S = 0.5  # an age is older than its telling by no more than this


@dataclass(frozen=True, slots=True)
class SwitchesSeen:
    """Rules, meters and queues of all switches at one moment.

    Attributes:
        state: all of it as text, without counters and ages.
        put_s: by rule, the earliest and the latest time at which the switch can have taken it in, of time.monotonic():
            its age was told at some time while it was asked.
    """

    state: tuple[str, ...]
    put_s: dict[str, tuple[float, float]]

    @classmethod
    def now(cls, realised: Realised) -> Self:
        """Return what there is now."""
        state, put_s = [str(queue_rates_bps(realised))], {}
        for switch in realised.network.switches:
            asked_s = time.monotonic()
            flows = _asked("dump-flows", switch.name)
            told_s = time.monotonic()
            for age_s, table, rule in re.findall(
                r"duration=([\d.]+)s, (table=\d+),.*?n_bytes=\d+,(?: idle_age=\d+,)? (.*)", flows
            ):
                put_s[f"{switch.name} {table} {rule}"] = asked_s - float(age_s), told_s - float(age_s)
            state += [
                f"{switch.name} {line.strip()}" for line in sorted(_asked("dump-meters", switch.name).splitlines()[1:])
            ]
        return cls((*state, *sorted(put_s)), put_s)

    @property
    def rules(self) -> int:
        """How many rules there are."""
        return len(self.put_s)

    def younger_than(self, before: Self) -> int:
        """Return how many rules that were there before have been put again since."""
        known = {rule: latest_s for rule, (_, latest_s) in before.put_s.items()}
        return sum(earliest_s > known[rule] + CLOCK_S for rule, (earliest_s, _) in self.put_s.items() if rule in known)


def applied_messages(log: Path, from_byte: int) -> int:
    """Return how many messages changed switches, by the controller's own log from some place on."""
    with log.open("rb") as text:
        text.seek(from_byte)
        return sum(int(count) for count in re.findall(rb"switch\.applied\b.*?\bmessages=(\d+)", text.read()))


def dropped_planned(realised: Realised) -> dict[str, int]:
    """Return, by meter and by queue of the planned classes, the packets dropped there so far.

    A meter's count begins anew with its switch; one whose switch does not answer is not there.
    """
    planned = [c for c in FlowClass if c is not FlowClass.UNPLANNED]
    found: dict[str, int] = {}
    for tail, head, link in realised.network.circuit_links:
        classes = _said("tc", "-s", "class", "show", "dev", link.port_name)
        dropped = dict(re.findall(r"class htb 1:([0-9a-f]+) .*?\(dropped (\d+)", classes, re.DOTALL))
        meters = _said("ovs-ofctl", "--timeout=1", "-O", "OpenFlow13", "meter-stats", tail)
        policed = dict(re.findall(r"meter:(\d+) .*?packet_count:(\d+)", meters, re.DOTALL))
        for flow_class in planned:
            minor, meter = f"{QUEUE_ID[flow_class] + 1:x}", str(meter_id(realised.network, (tail, head), flow_class))
            found |= {f"{link.port_name} queue {flow_class}": int(dropped[minor])} if minor in dropped else {}
            found |= {f"{link.port_name} meter {flow_class}": int(policed[meter])} if meter in policed else {}
    return found


def _asked(command: str, bridge: str) -> str:
    """Return what a switch answers.

    Raises:
        RuntimeError: it does not; the text has what ovs-ofctl says of that.
    """
    asked = ["ovs-ofctl", "-O", "OpenFlow13", command, bridge]
    done = subprocess.run(asked, check=False, capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(asked)}: {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def _said(*command: str) -> str:
    """Return what a command prints, nothing if it fails."""
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60).stdout
