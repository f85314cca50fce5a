"""What the host agent costs, and how fast a plan reaches it; all into one JSON file.

CPU time a gigabyte in the lab, side by side with cubic and bbr (there a nanosecond is an instruction, so the figures
do not depend on how busy this machine is); nanoseconds of the kernel part on an ACK and the way of a plan here.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from mininet_tests.lab import commands
from mininet_tests.testing.aims import Aim, at_most, stated
from mininet_tests.testing.reports import write_report

CONNECTIONS = ("1", "100")
OVER_CUBIC, PUSHED_WITHIN_MS = 1.03, 20


def in_lab(out: Path) -> Any:
    """Return the cost of a gigabyte under each contestant."""
    scenario = commands.module("bench.agent_cpu", "--out", str(out))
    subprocess.run(commands.in_lab("--dilation", "2", "--out", str(out), command=scenario), check=True)
    return json.loads((out / "agent_cpu.json").read_text())


def here(module: str) -> Any:
    """Return what one of the modules prints, run in namespaces of its own on this machine."""
    command = commands.isolated(*commands.module(module))
    with (Path(os.devnull)).open("w") as nowhere:  # the log of the agents' coming and going
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=nowhere).stdout)


def say(line: str) -> None:
    """Tell how far it is."""
    print(f"bench-agent: {line}", file=sys.stderr, flush=True)


def aims(result: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of a report."""
    found = {f"CPU over cubic, {n} connections": at_most(result["cpu_over_cubic"][n], OVER_CUBIC) for n in CONNECTIONS}
    return found | {"a plan to 200 hosts, p99, ms": at_most(result["push_ms"]["p99_200"], PUSHED_WITHIN_MS)}


def main() -> int:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/agent"), help="folder (default: %(default)s)")
    out: Path = parser.parse_args().out.resolve()
    if os.geteuid():
        say("needs root: namespaces, BPF and the lab")
        return 1
    out.mkdir(parents=True, exist_ok=True)
    say("a plan to 1 host and to 200 (1 of 3, half a minute)")
    push_ms = here("bench.agent_push")
    say("the kernel part on an ACK (2 of 3, half a minute)")
    ack_ns = here("bench.agent_ack")
    say("CPU time a gigabyte, in the lab (3 of 3, some minutes)")
    cpu = in_lab(out)
    per_gb = cpu["cpu_s_per_gb"]

    def ratio(rival: str) -> dict[str, float]:
        return {n: round(per_gb["headway"][n] / per_gb[rival][n], 3) for n in CONNECTIONS}

    result = {
        "cpu_over_cubic": ratio("cubic"),
        "cpu_over_cubic_paced": ratio("cubic paced"),
        "cpu_over_bbr": ratio("bbr"),
        "bpf_ns_per_ack": ack_ns["1"],
        "bpf_ns_per_ack_100": ack_ns["100"],
        "push_ms": push_ms,
        "cpu": cpu,
        "machine": {"kernel": platform.release(), "cpus": os.cpu_count(), "python": platform.python_version()},
    }
    write_report(out, result | stated(aims(result)))
    print(json.dumps({key: result[key] for key in list(result)[:6]}, indent=2))
    say(f"written to {out / 'report.json'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
