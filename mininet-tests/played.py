"""For tests: one run of a scenario in the lab."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent


def played(script: str, out: Path, *arguments: str, dilation: int = 1, timeout_s: int, report: str) -> Any:
    """Run ``script`` with ``--out out`` in the lab and return the JSON file ``report`` that it left there.

    The test fails, with the ends of its logs, if the scenario ended with an error.
    """
    lab = [str(HERE / "lab"), "--dilation", str(dilation), "--timeout", str(timeout_s), "--out", str(out), "--"]
    scenario = [str(HERE / "isolated.sh"), sys.executable, str(HERE / script), "--out", str(out), *arguments]
    done = subprocess.run([*lab, *scenario], check=False)
    logs = "\n".join(f"== {log.name}\n{log.read_text()[-2000:]}" for log in sorted(out.rglob("logs/*.log")))
    if done.returncode:
        pytest.fail(f"{script}: exit code {done.returncode}\n{logs}")
    return json.loads((out / report).read_text())
