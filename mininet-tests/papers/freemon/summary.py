"""From what was seen of each cell to the numbers of ``summary.json``. Pure."""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mininet_tests.lab.cells import Cell
from mininet_tests.lab.saturation import LEAST_IDLE_SHARE
from mininet_tests.papers.freemon.cells import CONNECTIONS, MTUS_BYTES
from mininet_tests.papers.freemon.limits import (
    LATENCIES_MS,
    LOSSES_PERCENT,
    SEGMENTS,
    SUPER_PACKETS,
    ideal_s,
    rounded,
    table1,
    table2,
    way_of,
)
from mininet_tests.papers.freemon.section5 import figure3_numbers, starts_numbers

AIMS_RTTS = (1.0, 2.0)  # median and 95% of the transfers above the limit, in round trips
DEADLINE_S = 5.0  # Freemon 2013 section I
NOT_MEASURED = "none of its cells has been measured"


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


def summary(seen: Sequence[Cell], wanted: Sequence[Cell] = ()) -> dict[str, Any]:
    """Return what ``summary.json`` says of the cells that were seen; what was not measured is null, with a reason.

    Args:
        seen: the cells.
        wanted: all that were to be measured; those of them that were not are counted.
    """
    found = results(seen)
    reasons = {}
    parts: dict[str, Callable[[dict[str, Result]], dict[str, Any] | None]] = {
        "table1": _table1,
        "table2": _table2,
        "figure3": lambda some: figure3_numbers(_cells(some, "figure3")),
        "ten_gbit": _ten,
        "starts": lambda some: starts_numbers(_cells(some, "starts")),
        "figure2": _figure2,
        "rivals": _rivals,
        "night": _night,
        "tools": _tools,
        "sensitivity": _sensitivity,
    }
    numbers: dict[str, Any] = {}
    for name, part in parts.items():
        numbers[name] = part(found)
        if numbers[name] is None:
            reasons[name] = NOT_MEASURED
    return {
        **numbers,
        "reasons": reasons,
        "not_measured": _not_measured(seen, wanted),
        "failed": {cell["name"]: cell["failed"] for cell in seen if "failed" in cell},
        "saturated": [c["name"] for c in seen if "failed" not in c and c["idle_share"] < LEAST_IDLE_SHARE],
        "fallback_not_noted": sum(
            "fallback" not in run
            for cell in seen
            if cell.get("algorithm", "headway") == "headway"
            for run in cell.get("runs_seen", ())
        ),
        "on_fallback": {cell["name"]: count for cell in seen if (count := on_fallback(cell))},
        "runs_below_limit": [one.cell["name"] for one in found.values() if min(one.times_s) < one.limit_s],
        "cost": cost(seen),
        "versions": _one_or_all(cell["versions"] for cell in seen),
        "commit": _one_or_all(cell["commit"] for cell in seen),
    }


def on_fallback(cell: Cell) -> int:
    """Return how many of a cell's transfers ran by the host's own congestion control, because of catastrophic loss.

    >>> on_fallback({"runs_seen": [{"s": 2.5, "fallback": False}, {"s": 17.0, "fallback": True}]})
    1
    """
    return sum(run.get("fallback", False) for run in cell.get("runs_seen", ()))


def _not_measured(seen: Sequence[Cell], wanted: Sequence[Cell]) -> dict[str, str]:
    """Return, by experiment, how many of its cells were not measured.

    >>> _not_measured([{"name": "a"}], [{"name": "a", "experiment": "x"}, {"name": "b", "experiment": "x"}])
    {'x': '1 of 2'}
    """
    names = {cell["name"] for cell in seen}
    asked = Counter(cell["experiment"] for cell in wanted)
    missing = Counter(cell["experiment"] for cell in wanted if cell["name"] not in names)
    return {name: f"{count} of {asked[name]}" for name, count in missing.items()}


def _one_or_all(values: Iterable[Any]) -> Any:
    """Return what all have, or a list of what there is.

    >>> _one_or_all(["a", "a"]), _one_or_all(["a", "b", "a"])
    ('a', ['a', 'b'])
    """
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found[0] if len(found) == 1 else found


def _table2(found: dict[str, Result]) -> dict[str, Any] | None:
    whole, single = (grid(found, "reused", model) for model in (SUPER_PACKETS, SEGMENTS))
    printed = table2()
    if not whole and not single:
        return None
    long = [one for one in single.values() if one.cell["rtt_ms"]]  # without latency there is no round trip to count by
    return {
        "cells": len(whole),
        "cells_per_packet": len(single),
        "cells_of": len(LATENCIES_MS) * len(LOSSES_PERCENT),
        "cells_at_or_below_paper": sum(rounded(one.median_s) <= printed[key] for key, one in whole.items()),
        "worst_median_over_limit_rtts": max((one.over_limit_rtts(one.median_s) for one in long), default=None),
        "worst_p95_over_limit_rtts": max((one.over_limit_rtts(one.p95_s) for one in long), default=None),
        "cells_within_aims": sum(within_aims(one) for one in long),
        "cells_within_aims_at_best": sum(within_aims(one, ideal=True) for one in long),
        "worst_median_over_ideal_rtts": max((_over_ideal_rtts(one, one.median_s, 0.5) for one in long), default=None),
        "worst_p95_over_ideal_rtts": max((_over_ideal_rtts(one, one.p95_s, 0.95) for one in long), default=None),
    }


def within_aims(one: Result, *, ideal: bool = False) -> bool:
    """Return whether a cell, or a perfect sender in its place, is as near to the limit as is asked for."""
    times_s = (one.ideal_s(0.5), one.ideal_s(0.95)) if ideal else (one.median_s, one.p95_s)
    return all(one.over_limit_rtts(s) <= most for s, most in zip(times_s, AIMS_RTTS, strict=True))


def _over_ideal_rtts(one: Result, time_s: float, share: float) -> float:
    return one.over_limit_rtts(time_s) - one.over_limit_rtts(one.ideal_s(share))


def _table1(found: dict[str, Result]) -> dict[str, Any] | None:
    printed = table1()
    counts = {}
    for connection in CONNECTIONS[1:]:
        cells = grid(found, connection, SUPER_PACKETS)
        counts[connection.replace(" ", "_")] = {
            "cells": len(cells),
            "cells_at_or_below_paper": sum(rounded(one.median_s) <= printed[key].median for key, one in cells.items()),
            "cells_at_or_below_paper_by_mean": sum(
                rounded(one.mean_s) <= printed[key].mean for key, one in cells.items()
            ),
        }
    return counts if any(count["cells"] for count in counts.values()) else None


def _ten(found: dict[str, Result]) -> dict[str, Any] | None:
    """Return the whole image's times: with several numbers of senders, the longest of their medians."""
    medians: dict[str, list[float]] = {}
    for one in found.values():
        if one.cell["experiment"] == "ten":
            single, lossy = one.cell.get("single_packets"), one.cell["loss_percent"]
            key = f"mtu{one.cell['mtu_bytes']}{'_single' * bool(single)}{'_loss' * bool(lossy)}_s"
            medians.setdefault(key, []).append(one.median_s)
    ways = [f"mtu{mtu_bytes}{single}" for single in ("", "_single") for mtu_bytes in MTUS_BYTES]
    times = {key: max(medians.get(key, []), default=None) for way in ways for key in (f"{way}_s", f"{way}_loss_s")}
    both = (_figure2(found) or {}).get("10g")
    return {**times, "utilisation": both and both["utilisation"]} if medians or both else None


def _cells(found: dict[str, Result], experiment: str) -> list[Cell]:
    return [one.cell for one in found.values() if one.cell["experiment"] == experiment]


def _figure2(found: dict[str, Result]) -> dict[str, Any] | None:
    """Return, by the circuit's rate, what came of an image beside both other classes on a whole site."""
    keys = ("share_limit_s", "utilisation", "violations")
    return {
        one.cell["name"].removeprefix("both-"): {"image_s": one.median_s} | {key: one.cell[key] for key in keys}
        for one in found.values()
        if one.cell["experiment"] == "both"
    } or None


def _night(found: dict[str, Result]) -> dict[str, Any] | None:
    """Return how many images were late, and what background had of what images and database left of the circuit."""
    for one in found.values():
        if one.cell["experiment"] == "night":
            moved = one.cell["moved_bytes"]
            left_bytes = one.cell["circuit_bytes"] - moved["images"] - moved["database"]
            return {
                "images": len(one.times_s),
                "late": sum(s > DEADLINE_S for s in one.times_s),
                "median_s": one.median_s,
                "longest_s": max(one.times_s),
                "background_share_of_leftover": moved["background"] / left_bytes,
            }
    return None


def _tools(found: dict[str, Result]) -> dict[str, Any] | None:
    """Return, by tool, its times, which parts of the circuit's payload it and all flows had, and the replica's lag."""
    for one in found.values():
        if one.cell["experiment"] == "tools":
            payload_bps = way_of(one.cell).payload_bps
            return {
                run["tool"]: {
                    "s": run["s"],
                    "image_share": run["bps"] / payload_bps,
                    "all_share": run["all_bps"] / payload_bps,
                    "replica_lag_before_s": run["lag_before_s"],
                    "replica_lag_s": run["lag_s"],
                }
                for run in one.cell["runs_seen"]
            }
    return None


def contestants(found: dict[str, Result], experiment: str = "rivals") -> dict[str, Result]:
    """Return each contestant by its name, with the pacing that suits it best."""
    best: dict[str, Result] = {}
    for one in found.values():
        if one.cell["experiment"] != experiment:
            continue
        name = contestant(one.cell)
        if name not in best or one.median_s < best[name].median_s:
            best[name] = one
    return best


def contestant(cell: Cell) -> str:
    """Return the name under which a contestant is compared; its pacing is chosen for it.

    >>> contestant({"algorithm": "bbr", "connections": 27, "pooled": True})
    'bbr x 27, pooled'
    """
    if "program" in cell:
        over = f" over {cell['algorithm']}" if cell["program"] == "gridftp" else ""
        return f"{cell['program']}{over} x {cell['connections']}"
    return f"{cell['algorithm']} x {cell['connections']}{', pooled' if cell['pooled'] else ''}"


def _rivals(found: dict[str, Result]) -> dict[str, Any] | None:
    alone, loaded = contestants(found), contestants(found, "load")
    rows = {}
    for name in alone | loaded:
        one, beside = alone.get(name), loaded.get(name)
        rows[name] = {
            "image_s": one.median_s if one else None,
            "ratio": ratio(one, alone),
            "image_with_load_s": beside.median_s if beside else None,
            "ratio_with_load": ratio(beside, loaded),
            "database_share_kept": database_share_kept(beside.cell) if beside else None,
            "again_bytes": one.again_bytes if one else None,
            "qdisc": one.cell["qdisc"] if one else None,
        }
    return rows or None


def ratio(one: Result | None, among: dict[str, Result]) -> float | None:
    """Return a contestant's median over ours."""
    ours = among.get("headway x 1")
    return one.median_s / ours.median_s if one and ours else None


def database_share_kept(cell: Cell) -> float:
    """Return what the database flow had of its rate while the image was under way, in the worst of the runs.

    >>> run = {"database_ppm": 500_000, "database_bps": 362}
    >>> database_share_kept({"rate_bps": 1538, "rtt_ms": 1, "runs_seen": [run]})
    0.5
    """
    payload_bps = way_of(cell).payload_bps
    runs = cell["runs_seen"]
    return min(float(run["database_bps"] * 1_000_000 / (payload_bps * run["database_ppm"])) for run in runs)


def _sensitivity(found: dict[str, Result]) -> dict[str, Any] | None:
    some = [one for one in found.values() if one.cell["experiment"] == "sensitivity"]
    return {one.cell["what"]: {"image_s": one.median_s, "kept": one.limit_s / one.median_s} for one in some} or None


def cost(seen: Sequence[Cell]) -> dict[str, Any]:
    """Return what each experiment cost: wall time, dilation, memory."""
    by_name: dict[str, list[Cell]] = {}
    for cell in seen:
        by_name.setdefault(cell["experiment"], []).append(cell)
    return {
        name: {
            "cells": len(some),
            "transfers": sum(cell["runs"] for cell in some),
            "wall_s": round(sum(cell["wall_s"] for cell in some)),
            "dilation": _one_or_all(cell["dilation"] for cell in some),
            "memory_used_mib": max(cell.get("memory_used_mib", 0) for cell in some),
            "least_idle_share": min((cell["idle_share"] for cell in some if "failed" not in cell), default=None),
        }
        for name, some in by_name.items()
    }
