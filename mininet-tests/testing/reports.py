"""``report.json``, which every run leaves: written in one place."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def write_report(folder: Path, report: Mapping[str, Any]) -> None:
    """Write ``report.json`` into a folder, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(json.dumps(report, indent=1) + "\n")


def print_aims(folder: Path, report: Mapping[str, Any]) -> None:
    """Print each aim of a report, what was seen of it, and where the report is."""
    for name, one in report["aims"].items():
        print(f"{name}: {one['seen']} ({one['aim']})")
    print(f"written: {folder / 'report.json'}")


def report_of(command: Sequence[str | Path], folder: Path, timeout_s: float | None = None) -> Any:
    """Run a command that leaves ``report.json`` in a folder; return that, whatever the exit code was.

    Raises:
        AssertionError: it has left none; with what it printed.
    """
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=timeout_s)
    report = folder / "report.json"
    if not report.exists():
        raise AssertionError(f"{ran.stdout}\n{ran.stderr}")
    return json.loads(report.read_text())
