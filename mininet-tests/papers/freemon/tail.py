"""Small objects when packets are lost, repetitions at the end sent twice or once: same paths, same seeds.

Of an object that is shorter than a window every loss is a loss of the last round trip. Each cell is kept in
``OUT/cells`` as soon as it is there; what all that are there come to is written to ``OUT/report.json``.
"""

import argparse
import re
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mininet_tests.lab import commands
from mininet_tests.lab.cells import EXIT_FAILED, EXIT_OK, Cell, Kept, measured
from mininet_tests.lab.saturation import LEAST_IDLE_SHARE
from mininet_tests.papers.freemon.cells import batches, table_cell
from mininet_tests.papers.freemon.limits import SEGMENTS, way_of
from mininet_tests.papers.freemon.run import LINE, SITE, chosen, facts
from mininet_tests.testing.aims import Aim, at_most, none_of, stated
from mininet_tests.testing.reports import write_report

SIZES_MB = (30, 10, 1)
RTTS_MS = (180, 800)
LOSSES_PERCENT = (1.0, 0.1)
CONNECTIONS = ("sender connects", "reused")
RUNS = 10
MEDIAN_RTTS, WORST_RTTS = 0.05, 0.3  # that twice may be later than once


def cells() -> list[Cell]:
    """Return all cells; of a path, twice and once follow each other."""
    return [
        tail_cell(size_mb, rtt_ms, loss_percent, connection, copies=copies)
        for loss_percent in LOSSES_PERCENT
        for size_mb in SIZES_MB
        for rtt_ms in RTTS_MS
        for connection in CONNECTIONS
        for copies in (True, False)
    ]


def tail_cell(size_mb: int, rtt_ms: int, loss_percent: float, connection: str, *, copies: bool) -> Cell:
    """Return one cell.

    >>> tail_cell(10, 180, 1.0, "reused", copies=True)["name"]
    'reused, 10 MB, 180 ms, 1%, twice'
    """
    cell = table_cell(rtt_ms, loss_percent, connection, SEGMENTS, RUNS)
    name = f"{path_of(connection, size_mb, rtt_ms, loss_percent)}, {'twice' if copies else 'once'}"
    return cell | {"name": name, "size_bytes": size_mb * 10**6, "tail_copies": copies}


def path_of(connection: str, size_mb: int, rtt_ms: int, loss_percent: float) -> str:
    """Return the name of what twice and once have in common."""
    return f"{'reused' if connection == 'reused' else 'new'}, {size_mb} MB, {rtt_ms} ms, {loss_percent:g}%"


def more_rtts(seen: Cell) -> list[float]:
    """Return by how many round trips each transfer of a cell was later than a line without loss allows, in order."""
    way = way_of(seen)
    limit_s = way.limit_s(seen["size_bytes"]) + (0 if seen["connection"] == "reused" else way.unscaled_wait_s)
    return sorted((run["s"] - limit_s) * 1000 / way.rtt_ms for run in seen["runs_seen"])


def summary(seen: Sequence[Cell]) -> dict[str, Any]:
    """Return what the cells come to that have been measured both ways, by path, and what spoils them. Pure."""
    by_name = {one["name"]: one for one in seen if "failed" not in one}
    paths: dict[str, Any] = {}
    for name, twice in by_name.items():
        path, _, how = name.rpartition(", ")
        once = by_name.get(f"{path}, once")
        if how == "twice" and once is not None:
            paths[path] = {"twice": _row(twice), "once": _row(once)}
    return {
        "paths": paths,
        "saturated": [one["name"] for one in by_name.values() if one["idle_share"] < LEAST_IDLE_SHARE],
        "on_fallback": sum(run["fallback"] for one in by_name.values() for run in one["runs_seen"]),
    }


def aims(summary: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims: to send twice is not slower than to send once. Pure."""
    found: dict[str, Aim] = {}
    for path, both in summary["paths"].items():
        for what, most in (("median", MEDIAN_RTTS), ("worst", WORST_RTTS)):
            later = round(both["twice"][f"{what}_rtts"] - both["once"][f"{what}_rtts"], 3)
            found[f"{path}: {what} later than once, round trips"] = at_most(later, most)
    found["cells on a full CPU"] = none_of(summary["saturated"])
    found["transfers on the fallback"] = none_of(summary["on_fallback"])
    return found


def _row(seen: Cell) -> dict[str, Any]:
    more, runs = more_rtts(seen), seen["runs_seen"]
    return {
        "median_rtts": round(statistics.median(more), 3),
        "mean_rtts": round(statistics.fmean(more), 3),
        "worst_rtts": round(more[-1], 3),
        "median_s": round(statistics.median(run["s"] for run in runs), 4),
        "sent_again": sum(run["again_segments"] for run in runs),
        "runs": len(runs),
    }


def main(argv: list[str]) -> int:
    """Measure what is missing, and write what all of it comes to; return the exit code: 1 if an aim is missed."""
    parser = argparse.ArgumentParser(prog="tail", description=__doc__)
    parser.add_argument("--out", type=Path, default=commands.ROOT / "out" / "tail", help="folder (default: out/tail)")
    parser.add_argument("--only", type=re.compile, metavar="REGEX", help="only cells whose names have this in them")
    parser.add_argument("--list", action="store_true", help="only say what cells there are")
    parser.add_argument("--jobs", type=int, default=1, help="labs side by side, a CPU each (default: %(default)s)")
    args = parser.parse_args(argv)
    wanted = chosen(cells(), args.only)
    if args.list:
        print("\n".join(cell["name"] for cell in wanted))
        return EXIT_OK
    kept = Kept(args.out / "cells")
    missing = kept.missing(wanted)
    say(f"{len(wanted)} cells, {len(missing)} of them to be measured, kept in {kept.folder}")
    code = measured(list(batches(missing, LINE, SITE)), kept, facts(), say, jobs=args.jobs) if missing else EXIT_OK
    seen = summary([one for cell in cells() if (one := kept.seen(cell)) is not None])
    judged = stated(aims(seen))
    found = seen.pop("paths") | seen | judged
    write_report(args.out, found)
    for name in found["falls_short"]:
        say(f"falls short: {name}: {found['aims'][name]['seen']}")
    say(f"written: {args.out / 'report.json'}")
    return code or (EXIT_FAILED if found["falls_short"] else EXIT_OK)


def say(text: str) -> None:
    """Show progress."""
    print(f"tail: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
