"""``report.json``, which every run leaves: written in one place."""

import json
from collections.abc import Mapping
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
