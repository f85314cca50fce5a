"""What the figures of scenarios are made from: a folder that a run has left."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

HOST_COLOURS = {"base20": "tab:blue", "base21": "tab:red", "base22": "tab:green", "base23": "tab:orange"}


def folder_drawn(
    name: str, drawn: Callable[[dict[str, Any], dict[str, Any], Path], None], printed: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Draw and print what the folder on the command line has; return its report.

    Args:
        name: of the scenario, whose run is in ``NAME.json``; the figure is ``NAME.png`` beside it.
        drawn: makes the figure of the run and its report.
        printed: prints the report as a table.
    """
    parser = argparse.ArgumentParser(description=f"Draw and print a run of {name}.")
    parser.add_argument("folder", type=Path, help=f"where {name}.json and report.json are")
    folder = parser.parse_args().folder
    seen, report = (json.loads((folder / file).read_text()) for file in (f"{name}.json", "report.json"))
    drawn(seen, report, folder / f"{name}.png")
    printed(report)
    found: dict[str, Any] = report
    return found
