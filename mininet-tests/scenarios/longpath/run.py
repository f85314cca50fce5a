"""The agent on a long line: what arrives as connections, plan, path and controller change, and as packets are lost.

Run inside ``isolated.sh``, best in the lab: its figures are exact. Writes what it saw to ``NAME.json`` for each
scenario that is asked for, and what all come to to ``report.json``; it does not know whether it is in the lab.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from mininet_tests.scenarios.longpath import change, demand, faults, one_percent, rtt, sharing, start, tail
from mininet_tests.scenarios.longpath.aims import aims
from mininet_tests.site.tcp_flows import SWITCH_S
from mininet_tests.testing.aims import stated
from mininet_tests.testing.reports import write_report

SHARING, ONE_PERCENT = "sharing", "one-percent"
PLAIN = "tail-plain"  # without an agent, to compare with
SCENARIOS: dict[str, Callable[[Path], dict[str, Any]]] = {
    SHARING: partial(sharing.run, few=False),
    "rtt": rtt.run,
    "queue": rtt.run_queue,
    "fq": rtt.run_fq,
    "start": start.run,
    "change": change.run,
    "demand": demand.run,
    "faults": faults.run,
    "loss": faults.run_loss,
    "tail": tail.run,
    ONE_PERCENT: one_percent.run,
    PLAIN: tail.run_plain,
}


def main() -> int:
    """Run, and keep what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for what was seen, and the agents' logs")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"{', '.join(SCENARIOS)}; none: all of ours")
    parser.add_argument("--rounds", type=int, default=one_percent.ROUNDS, help="of one-percent (default: %(default)s)")
    parser.add_argument("--few", action="store_true", help="sharing without the numbers between the least and the most")
    args = parser.parse_args()
    if not set(args.scenarios) <= set(SCENARIOS):
        parser.error(f"there are {', '.join(SCENARIOS)}")
    scenarios = dict(SCENARIOS)
    scenarios[ONE_PERCENT] = partial(one_percent.run, rounds=args.rounds)
    scenarios[SHARING] = partial(sharing.run, few=args.few)
    sys.setswitchinterval(SWITCH_S)
    args.out.mkdir(parents=True, exist_ok=True)
    # While it runs, all is written to memory: the lab's host files answer in real time, not in its own.
    with tempfile.TemporaryDirectory(prefix="headway-") as scratch:
        names = args.scenarios or [name for name in SCENARIOS if name != PLAIN]
        for name in names:
            folder = Path(scratch) / name
            folder.mkdir()
            try:
                began_s = time.monotonic()
                (folder / f"{name}.json").write_text(json.dumps(scenarios[name](folder)))
                print(f"longpath: {name}: {time.monotonic() - began_s:.0f} s", flush=True)
            except (AssertionError, RuntimeError, TimeoutError) as error:
                print(f"longpath: {name}: {error}", file=sys.stderr, flush=True)
                os._exit(1)  # its threads and agents may still run; the namespaces end with this process
            finally:
                _keep(folder, args.out)
    seen = {name: json.loads((args.out / f"{name}.json").read_text()) for name in names}
    write_report(args.out, {"scenarios": names} | stated(aims(seen)))
    return 0


def _keep(folder: Path, out: Path) -> None:
    """Copy what a scenario has seen, and the logs."""
    for seen in folder.glob("*.json"):
        shutil.copyfile(seen, out / seen.name)
    for log in folder.rglob("log"):
        shutil.copyfile(log, out / f"{'-'.join(log.parent.relative_to(folder.parent).parts)}-log")


if __name__ == "__main__":
    sys.exit(main())
