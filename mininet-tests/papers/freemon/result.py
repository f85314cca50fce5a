"""One cell's transfers, and what they come to beside what the line allows. Pure."""

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from mininet_tests.lab.cells import Cell
from mininet_tests.lab.saturation import LEAST_IDLE_SHARE
from mininet_tests.papers.freemon.limits import ideal_s, way_of


@dataclass(frozen=True, slots=True)
class Result:
    """One cell's transfers.

    Attributes:
        cell: what was asked for, and what was seen.
        times_s: of each transfer.
        limit_s: the least time that the line allows; on new connections of senders, nearly one round trip more: their
            first 64 KiB must be confirmed before the window is known.
    """

    cell: Cell
    times_s: tuple[float, ...]
    limit_s: float

    @property
    def median_s(self) -> float:
        """The median."""
        return statistics.median(self.times_s)

    @property
    def mean_s(self) -> float:
        """The mean."""
        return statistics.fmean(self.times_s)

    @property
    def deviation_s(self) -> float:
        """The sample's standard deviation; 0 of one run."""
        return statistics.stdev(self.times_s) if len(self.times_s) > 1 else 0.0

    @property
    def p95_s(self) -> float:
        """The smallest time that 95% of the transfers have not exceeded: of five, the largest."""
        return sorted(self.times_s)[math.ceil(0.95 * len(self.times_s)) - 1]

    def ideal_s(self, share: float) -> float:
        """By when a perfect sender has so many of its transfers confirmed, if segments are lost one by one."""
        way, size_bytes = way_of(self.cell), self.cell["size_bytes"]
        waits_s = self.limit_s - way.limit_s(size_bytes)
        return ideal_s(way, size_bytes, self.cell["loss_percent"] / 100, share) + waits_s

    def over_limit_rtts(self, time_s: float) -> float:
        """Return how far a time is above the limit, in round trips."""
        rtt_s: float = self.cell["rtt_ms"] / 1000
        return (time_s - self.limit_s) / rtt_s

    @property
    def not_noted_s(self) -> tuple[float, ...]:
        """The times of those of which it was not noted whether they ran by the host's own congestion control."""
        return tuple(run["s"] for run in self.cell["runs_seen"] if "fallback" not in run)

    @property
    def again_share(self) -> float:
        """Which part of the segments was sent again."""
        runs = self.cell["runs_seen"]
        again, sent = (sum(int(run[of]) for run in runs) for of in ("again_segments", "sent_segments"))
        return again / sent

    @property
    def again_bytes(self) -> float:
        """What was sent again in a transfer, in the mean; each segment counted as a full one."""
        again_segments = statistics.fmean(run["again_segments"] for run in self.cell["runs_seen"])
        return again_segments * way_of(self.cell).framing.mss_bytes


def result(cell: Cell) -> Result | None:
    """Return what a cell's transfers came to; None if it failed or the CPU was full, which makes no result."""
    if "failed" in cell or cell["idle_share"] < LEAST_IDLE_SHARE:
        return None
    way = way_of(cell)
    waits_s = way.unscaled_wait_s if cell.get("connection") == "sender connects" else 0.0
    times_s = tuple(run["s"] for run in cell["runs_seen"])
    return Result(cell, times_s, way.limit_s(cell["size_bytes"]) + waits_s)


def results(seen: Iterable[Cell]) -> dict[str, Result]:
    """Return all results by name."""
    found = {cell["name"]: result(cell) for cell in seen}
    return {name: one for name, one in found.items() if one is not None}


def grid(found: dict[str, Result], connection: str, model: str) -> dict[tuple[int, float], Result]:
    """Return the measured part of a table in one loss model, by latency (ms) and loss (%).

    Without loss the models are the same.
    """
    return {
        (one.cell["rtt_ms"], one.cell["loss_percent"]): one
        for one in found.values()
        if one.cell["experiment"] == "table"
        and one.cell["connection"] == connection
        and one.cell["loss_model"] in (model, None)
    }
