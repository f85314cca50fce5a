"""The same rows at an earlier commit, measured in the same run on the same machine."""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[2]


def measured_before(commit: str, *arguments: str) -> dict[str, Any]:
    """Return what the bench of an earlier commit reports, which runs that commit's code.

    Raises:
        subprocess.CalledProcessError: there is no such commit, or its bench fails.
    """
    with TemporaryDirectory() as name:
        subprocess.run(["git", "archive", "--output", f"{name}/all.tar", commit], cwd=ROOT, check=True)
        subprocess.run(["tar", "-xf", "all.tar"], cwd=name, check=True)
        command = [sys.executable, "-m", "mininet_tests.bench.growth", "--out", f"{name}/out", *arguments]
        subprocess.run(command, cwd=name, env=os.environ | {"PYTHONPATH": name}, check=True, stdout=subprocess.DEVNULL)
        report = json.loads((Path(name) / "out" / "report.json").read_text())
    return {"commit": commit, "rows": report["rows"]}
