"""The report of a bench, as a file and for people."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_report(folder: Path, report: Mapping[str, Any]) -> None:
    """Write ``report.json`` into a folder, which is made if need be, and print each of its aims and what was seen."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(json.dumps(report, indent=2) + "\n")
    for name, one in report["aims"].items():
        print(f"{name}: {one['seen']} ({one['aim']})")
    print(f"written: {folder / 'report.json'}")
