"""For tests: one run of a scenario in the lab."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mininet_tests.lab import commands


def played(module: str, out: Path, *arguments: str, dilation: int = 1, timeout_s: int, report: str) -> Any:
    """Run a scenario's ``module`` with ``--out out`` in the lab and return the JSON file ``report`` that it left there.

    The test fails, with the ends of its logs, if the scenario ended with an error.
    """
    options = "--dilation", str(dilation), "--timeout", str(timeout_s), "--out", str(out)
    scenario = commands.module(module, "--out", str(out), *arguments)
    done = subprocess.run(commands.in_lab(*options, command=scenario), check=False)
    logs = "\n".join(f"== {log.name}\n{log.read_text()[-2000:]}" for log in sorted(out.rglob("logs/*.log")))
    if done.returncode:
        pytest.fail(f"{module}: exit code {done.returncode}\n{logs}")
    return json.loads((out / report).read_text())
