"""What a run has shown, kept in the documentation: aims, key figures, commit and date."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mininet_tests.lab.commit import CHANGED

SHARED = ("aims", "falls_short")
LONGEST_FIGURE = 2_000
"""Characters of JSON; what is longer is raw, stays in ``report.json``, and is named in ``left_out``."""


def publish(
    name: str, commit: str, arguments: list[str], report: dict[str, Any], root: Path, dilation: int | None = None
) -> Path:
    """Write ``docs/results/NAME.json`` below a folder and return it.

    Args:
        name: of the experiment.
        commit: what was measured, as it stood when that began: a run that publishes changes pages of its own.
        arguments: that it was given.
        report: what it has shown.
        root: the checkout's.
        dilation: of the lab that the launcher has booted; None if it has booted none.

    Raises:
        ValueError: the report has no aims, or is of what nobody can have again: files that were changed.
    """
    if not set(SHARED) <= set(report):
        raise ValueError(f"{name}: its report.json has no aims, so there is nothing to publish")
    found = record(report, commit, datetime.now(UTC).isoformat(timespec="seconds"), arguments, dilation)
    if CHANGED in str(found["commit"]):
        raise ValueError(f"{name}: files were changed when it was measured, so nobody can have them: {found['commit']}")
    target = root / "docs" / "results" / f"{name}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(found, indent=1) + "\n")
    return target


def record(
    report: dict[str, Any], commit: str, date: str, arguments: list[str], dilation: int | None
) -> dict[str, Any]:
    """Return what is published of a report, and the names of what is too long for that. Pure."""
    figures = {key: value for key, value in report.items() if key not in {*SHARED, "commit"}}
    left_out = [key for key, value in figures.items() if len(json.dumps(value)) > LONGEST_FIGURE]
    return {
        "commit": report.get("commit", commit),  # a report of what was measured at several times says which
        "date": date,
        "arguments": arguments,
        **({} if dilation is None else {"dilation": dilation}),
        **{key: report[key] for key in SHARED},
        "figures": {key: value for key, value in figures.items() if key not in left_out},
        "left_out": left_out,
    }
