"""How experiments are started: where the programs are, and their command lines. Standard library only."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The checkout."""
BOOT = ROOT / "mininet-tests/lab/boot"
ISOLATED = ROOT / "mininet-tests/site/isolated.sh"

DIES_WITH_US = ("setpriv", "--pdeathsig", "TERM")
"""Before a command: even if this process is killed, what it started ends."""


def module(name: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of ``mininet_tests``, such as ``scenarios.ring.run``."""
    return [sys.executable, "-m", f"mininet_tests.{name}", *arguments]


def isolated(*command: str) -> list[str]:
    """Return the command that runs another one in namespaces of its own."""
    return [str(ISOLATED), *command]


def in_lab(*options: str, command: list[str]) -> list[str]:
    """Return the command that boots the lab and runs another one there, in namespaces of its own."""
    return [str(BOOT), *options, "--", *isolated(*command)]
