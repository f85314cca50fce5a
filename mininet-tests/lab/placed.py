"""A scenario run where it can be: on this machine if its kernel has what is needed and we are root, else in the lab."""

import argparse
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from mininet_tests.lab import commands

EXIT_FAILED, EXIT_INTERRUPTED = 1, 130
LEAST_DILATION = 6  # 6e9 instructions a second are what one core of a server does: the controller is as quick as there


def dilation_for(rate_bps: int, *, single_packets: bool) -> int:
    """Return the dilation that a run needs: how many 1e9 instructions a second its programs and packets take.

    Seen: programs and measurements 0.7e9; packets of 1 Gbit/s 0.3e9 as super-packets, 2.5e9 one by one. Half as much
    again is left idle.

    >>> dilation_for(10**9, single_packets=False), dilation_for(10**10, single_packets=True)
    (6, 39)
    """
    packets = rate_bps * (25 if single_packets else 3) // 10
    return max(LEAST_DILATION, -(-3 * (700_000_000 + packets) // (2 * 10**9)))


def add_places(parser: argparse.ArgumentParser) -> None:
    """Let a command line say where."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--lab", action="store_true", help="in the lab, even if this machine could")
    where.add_argument("--native", action="store_true", help="right here, or fail and say why not")


def played_where_it_can_be(
    command: list[str], args: argparse.Namespace, dilation: int, out: Path, native_problem: Callable[[], str | None]
) -> tuple[int, str]:
    """Run a scenario; return its exit code (0, 1, 130), and where it ran: "lab" or "native".

    Args:
        command: the scenario's, the same in both places.
        args: with what :func:`add_places` adds.
        dilation: of the lab.
        out: the folder it writes to.
        native_problem: says why this machine's kernel would not do, None if it would.
    """
    problem = native_problem()
    if args.native and problem is not None:
        print(f"demo: cannot run here: {problem}; leave --native out to run in the lab", file=sys.stderr)
        return EXIT_FAILED, "native"
    in_lab = args.lab or problem is not None
    print(f"running in the lab, dilation {dilation}: {problem or 'asked for'}" if in_lab else "running on this machine")
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # leaves by subprocess.run, which ends it
    options = ("--dilation", str(dilation), "--out", str(out))
    started = commands.in_lab(*options, command=command) if in_lab else commands.isolated(*command)
    where = "lab" if in_lab else "native"
    try:
        code = subprocess.run([*commands.DIES_WITH_US, *started], check=False).returncode
    except KeyboardInterrupt:
        print("demo: interrupted; nothing is left running", file=sys.stderr)
        return EXIT_INTERRUPTED, where
    if code:
        print(f"demo: the scenario ended with {code}; logs are in {out / 'logs'}", file=sys.stderr)
        return EXIT_FAILED, where
    return 0, where
