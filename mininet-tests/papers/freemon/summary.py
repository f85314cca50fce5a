"""From what was seen of each cell to the numbers of ``summary.json``. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mininet_tests.lab.cells import Cell
from mininet_tests.lab.saturation import LEAST_IDLE_SHARE
from mininet_tests.papers.freemon.cells import MTUS_BYTES
from mininet_tests.papers.freemon.limits import way_of
from mininet_tests.papers.freemon.result import Result, results
from mininet_tests.papers.freemon.section5 import figure3_numbers, starts_numbers
from mininet_tests.papers.freemon.tables import table1_numbers, table2_numbers

DEADLINE_S = 5.0  # Freemon 2013 section I
GONE = frozenset({"69643d315ec9", "24e414725a97", "8322c7d10f25", "3be7e97b1948", "8a7e0c4dcde9"})
"""Commits at which cells were measured, of a history that this repository does not have."""
NOT_MEASURED = "none of its cells has been measured"


def summary(seen: Sequence[Cell], wanted: Sequence[Cell] = ()) -> dict[str, Any]:
    """Return what ``summary.json`` says of the cells that were seen; what was not measured is null, with a reason.

    Args:
        seen: the cells.
        wanted: all that were to be measured; those of them that were not are counted.
    """
    found = results(seen)
    reasons = {}
    parts: dict[str, Callable[[dict[str, Result]], dict[str, Any] | None]] = {
        "table1": table1_numbers,
        "table2": table2_numbers,
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
        "commits_gone": _gone(seen),
    }


def on_fallback(cell: Cell) -> int:
    """Return how many of a cell's transfers ran by the host's own congestion control, because of catastrophic loss.

    >>> on_fallback({"runs_seen": [{"s": 2.5, "fallback": False}, {"s": 17.0, "fallback": True}]})
    1
    """
    return sum(run.get("fallback", False) for run in cell.get("runs_seen", ()))


def _gone(seen: Sequence[Cell]) -> dict[str, Any]:
    """Return the commits that nobody can look up, and how many cells of each experiment were measured at them.

    >>> _gone([{"commit": "24e414725a97", "experiment": "both"}, {"commit": "c0ffee", "experiment": "both"}])
    {'commits': ['24e414725a97'], 'cells': {'both': 1}}
    """
    some = [cell for cell in seen if cell["commit"] in GONE]
    commits = list(dict.fromkeys(cell["commit"] for cell in some))
    return {"commits": commits, "cells": dict(Counter(cell["experiment"] for cell in some))}


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
