"""What a call of the command costs in CPU time, from its start to its end, beside a bare start of Python.

Each call is a process of its own against a controller on loopback; what the kernel counts for it is what it cost.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mininet_tests.site.command import HEADWAY
from mininet_tests.site.running import running
from mininet_tests.testing.aims import at_most, stated
from mininet_tests.testing.reports import print_aims, write_report

CALLS = 15
WITHIN_S = 0.4
NIGHT = ("--rate", "1Mbps", "--from", "la-serena", "--to", "champaign", "--start", "tomorrow 22:00", "--for", "1h")
COMMANDS = {
    "plan": ("plan",),
    "hosts --json": ("hosts", "--json"),
    "reservations": ("reservations",),
    "reserve": ("reserve", *NIGHT),
    "availability": ("availability", "--from", "la-serena", "--to", "champaign"),
    "--help": ("--help",),
}


def cpu_s(command: Sequence[str | Path], environment: dict[str, str]) -> float:
    """Return the CPU time that a process has used, seconds.

    Raises:
        AssertionError: it failed.
    """
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise AssertionError(f"{command} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime


def median_s(command: Sequence[str | Path], environment: dict[str, str]) -> float:
    """Return what one of several calls costs, at the median; the first, which may compile, is not counted."""
    cpu_s(command, environment)
    return round(statistics.median(cpu_s(command, environment) for _ in range(CALLS)), 3)


def report() -> dict[str, Any]:
    """Return all that was measured."""
    with tempfile.TemporaryDirectory() as name, running(Path(name), f"sqlite:///{name}/headway.db") as controller:
        environment = os.environ | {"HEADWAY_URL": controller.url, "COLUMNS": "100"}
        bare_s = median_s([sys.executable, "-c", ""], environment)
        found = {said: median_s([HEADWAY, *words], environment) for said, words in COMMANDS.items()}
    machine = {"python": platform.python_version(), "kernel": platform.release(), "cpu": platform.machine()}
    aims = {f"headway {said}, CPU s": at_most(seconds, WITHIN_S) for said, seconds in found.items()}
    return {"cpu_s": found, "python_alone_cpu_s": bare_s, "machine": machine, **stated(aims)}


def main() -> None:
    """Run it all, write the file, print what it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/command"), help="folder (default: %(default)s)")
    asked = parser.parse_args()
    result = report()
    write_report(asked.out, result)
    print(f"Python alone: {result['python_alone_cpu_s']}")
    print_aims(asked.out, result)


if __name__ == "__main__":
    main()
