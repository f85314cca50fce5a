"""What ``headway what-if`` prints of others' flows beside what the lab has published of the rivals on the bare line.

The lab's line carries nothing but the rival and has no plan: in the scenario, the class of the unplanned may have the
whole circuit. Each row goes through the scenario's file, and is what the command prints of its ``others``.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from controller.whatif.file import scenario_of
from controller.whatif.response import ALGORITHMS
from controller.whatif.summary import strangers_us
from mininet_tests.papers.freemon.summary import contestant
from mininet_tests.testing.aims import Aim, equal, within
from mininet_tests.testing.networks import FILES

S = 1_000_000
CELLS = Path(__file__).parents[3] / "docs" / "results" / "cells.jsonl"


@dataclass(frozen=True, slots=True)
class RivalRow:
    """A rival of docs/results.md, and what is printed of it.

    Attributes:
        name: algorithm and number of streams.
        runs_s: what each run took, seconds.
        least_s: the least that is printed.
        most_s: the most.
    """

    name: str
    runs_s: tuple[float, ...]
    least_s: float
    most_s: float

    @property
    def aim(self) -> Aim:
        """The median that is published is within the range."""
        return within(round(median(self.runs_s), 3), round(self.least_s, 3), round(self.most_s, 3))

    @property
    def runs_within(self) -> int:
        """How many of its runs are within the range."""
        return sum(self.least_s <= took_s <= self.most_s for took_s in self.runs_s)


def rival_rows() -> list[RivalRow]:
    """Return each published rival that there is a response function of, with the pacing that suits it best."""
    best: dict[str, dict[str, Any]] = {}
    for cell in published():
        name = contestant(cell)
        if name not in best or _median_s(cell) < _median_s(best[name]):
            best[name] = cell
    return [
        RivalRow(name, tuple(run["s"] for run in cell["runs_seen"]), *printed_s(cell)) for name, cell in best.items()
    ]


def published() -> list[dict[str, Any]]:
    """Return the cells of rivals that nobody holds, each by an algorithm that there is a response function of.

    Where all connections ask for a rate of their own (``pooled``), and in programs with blocks or a transport of their
    own, it is not congestion control that decides.
    """
    cells: list[dict[str, Any]] = [json.loads(line) for line in CELLS.read_text().splitlines()]
    return [
        cell
        for cell in cells
        if cell["experiment"] == "rivals"
        and cell["algorithm"] in ALGORITHMS
        and not cell["pooled"]
        and "program" not in cell
    ]


def printed_s(cell: dict[str, Any]) -> tuple[float, float]:
    """Return the range that the command prints of a rival, seconds: the least and the most."""
    other = {
        "name": "rival",
        "from": "base20",
        "to": "arch",
        "bytes": f"{cell['size_bytes']} B",
        "algorithm": cell["algorithm"],
        "streams": cell["connections"],
        "loss": cell["loss_percent"] / 100,
    }
    said = {
        "network": FILES["chile-illinois"].name,
        "from": "2026-12-01T02:00:00Z",
        "until": "2026-12-01T03:00:00Z",
        "policy": {"unplanned": {"guarantee": "0.1%", "cap": "100%"}},
        "flows": [{"name": "database", "class": "predictable", "from": "base22", "to": "arch"}],
        "circuits": {"chile-illinois": {"rate": f"{cell['rate_bps']} bit/s", "delay": f"{cell['rtt_ms'] / 2} ms"}},
        "others": [other],
    }
    (variant,) = scenario_of(said, "rival", FILES["chile-illinois"].parent).variants
    least_us, most_us = strangers_us(variant.supposed)["rival"]
    return least_us / S, most_us / S


def rival_aims(rows: list[RivalRow]) -> dict[str, Aim]:
    """Return the aim that no published rival is outside the printed range, and that of each."""
    missed = {row.name: row.aim.seen for row in rows if not row.aim.ok}
    aims: dict[str, Aim] = {"rivals outside the printed range": equal(missed, {})}
    return aims | {f"{row.name}, not held, s": row.aim for row in rows}


def _median_s(cell: dict[str, Any]) -> float:
    found: float = median(run["s"] for run in cell["runs_seen"])
    return found
