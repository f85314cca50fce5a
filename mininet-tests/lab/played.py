"""For tests: one run of a scenario in the lab."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mininet_tests.lab import commands


def relayed(name: str, command: Sequence[str]) -> int:
    """Run a program, show each line of it on standard error behind ``name``, and return its exit code.

    Tests of the lab run side by side; where pytest distributes them, standard output leads nowhere.
    """
    with subprocess.Popen(
        [*commands.DIES_WITH_US, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None  # noqa: S101 it is a pipe
        try:
            for line in process.stdout:
                print(f"{name}: {line.decode(errors='replace').rstrip()}", file=sys.stderr, flush=True)
        except BaseException:
            process.terminate()
            raise
    return process.returncode


def played(module: str, out: Path, *arguments: str, dilation: int = 1, timeout_s: int, report: str) -> Any:
    """Run a scenario's ``module`` with ``--out out`` in the lab and return the JSON file ``report`` that it left there.

    The test fails, with the ends of its logs, if the scenario ended with an error.
    """
    options = "--dilation", str(dilation), "--timeout", str(timeout_s), "--out", str(out)
    scenario = commands.module(module, "--out", str(out), *arguments)
    code = relayed(module.split(".")[1], commands.in_lab(*options, command=scenario))
    logs = "\n".join(f"== {log.name}\n{log.read_text()[-2000:]}" for log in sorted(out.rglob("logs/*.log")))
    if code:
        pytest.fail(f"{module}: exit code {code}\n{logs}")
    return json.loads((out / report).read_text())


def is_long_tier(request: pytest.FixtureRequest) -> bool:
    """Return whether tests of the long tier that stand in the same file are asked for: one boot then does for all."""
    own = (item for item in request.session.items if item.path == request.path)
    return any(item.get_closest_marker("long") for item in own)
