"""The end of transfers when packets are lost: with parities, sent again with copies, or once; same paths, same seeds.

Of an object that is shorter than a window every loss is a loss of the last round trip. Each cell is kept in
``OUT/cells`` as soon as it is there; what all that are there come to is written to ``OUT/report.json``, and with
``--publish`` to ``docs/results``, with which ``--published`` begins.
"""

import argparse
import json
import re
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mininet_tests.lab import commands
from mininet_tests.lab.cells import EXIT_OK, Cell, Kept, measured
from mininet_tests.lab.saturation import LEAST_IDLE_SHARE
from mininet_tests.papers.freemon.cells import PAPER_RTT_MS, batches, table_cell
from mininet_tests.papers.freemon.limits import (
    IMAGE_SLICE_BYTES,
    LATENCIES_MS,
    LOSSES_PERCENT,
    SEGMENTS,
    SUPER_PACKETS,
    way_of,
)
from mininet_tests.papers.freemon.run import LINE, SITE, chosen, facts
from mininet_tests.testing.aims import Aim, at_most, none_of, stated
from mininet_tests.testing.reports import write_report

WAYS: dict[str, Cell] = {  # settings of both agents
    "coded": {"tail_copies": True, "tail_coded": True},
    "copied": {"tail_copies": True},
    "once": {"tail_copies": False},
}
COMPARED = (("copied", "once"), ("coded", "copied"))  # the first is not to be slower than the second
SMALL_MB, SMALL_RTTS_MS, SMALL_LOSSES_PERCENT = (30, 10, 1), (PAPER_RTT_MS, 800), (1.0, 0.1)
IMAGE_RTTS_MS = (PAPER_RTT_MS, 800, *(rtt_ms for rtt_ms in LATENCIES_MS if rtt_ms not in (0, PAPER_RTT_MS, 800)))
CONNECTIONS = ("reused", "sender connects")
RUNS = 10
MEDIAN_RTTS, WORST_RTTS = 0.05, 0.3  # that one way may be later than the other
LIMIT_MEDIAN_RTTS, LIMIT_WORST_RTTS = 0.1, 0.3  # that parities may be later than a line without loss
LIMIT_LOSS_PERCENT = 0.1  # of single packets, at most
DOCS = commands.ROOT / "docs" / "results"
KEPT_OF_RUN = ("s", "again_segments", "dropped_segments", "fallback", "reorderings", "parities", "rebuilt")
KEPT_OF_CELL = ("idle_share", "mean_idle_share", "kernel", "commit", "dilation", "wall_s")


def cells() -> list[Cell]:
    """Return all cells: slices of an image, the paper's latency and the longest first; then small objects."""
    image = [
        tail_cell(IMAGE_SLICE_BYTES, rtt_ms, loss_percent, connection, way, model)
        for rtt_ms in IMAGE_RTTS_MS
        for connection in CONNECTIONS
        for model in (SEGMENTS, SUPER_PACKETS)
        for loss_percent in LOSSES_PERCENT
        for way in ("coded", "copied")
        if loss_percent
    ]
    small = [
        tail_cell(size_mb * 10**6, rtt_ms, loss_percent, connection, way)
        for loss_percent in SMALL_LOSSES_PERCENT
        for size_mb in SMALL_MB
        for rtt_ms in SMALL_RTTS_MS
        for connection in CONNECTIONS
        for way in WAYS
    ]
    return image + small


def tail_cell(
    size_bytes: int, rtt_ms: int, loss_percent: float, connection: str, way: str, model: str = SEGMENTS
) -> Cell:
    """Return one cell.

    >>> tail_cell(10_000_000, 180, 1.0, "reused", "copied")["name"]
    'reused, 10 MB, 180 ms, 1%, copied'
    >>> tail_cell(IMAGE_SLICE_BYTES, 800, 0.01, "sender connects", "coded", SUPER_PACKETS)["name"]
    'new, 268.8 MB, 800 ms, 0.01% in super-packets, coded'
    """
    cell = table_cell(rtt_ms, loss_percent, connection, model, RUNS)
    lost = f"{loss_percent:g}%{' in super-packets' if model == SUPER_PACKETS else ''}"
    path = f"{'reused' if connection == 'reused' else 'new'}, {size_bytes / 10**6:.4g} MB, {rtt_ms} ms, {lost}"
    return cell | {"name": f"{path}, {way}", "size_bytes": size_bytes} | WAYS[way]


def more_rtts(seen: Cell) -> list[float]:
    """Return by how many round trips each transfer of a cell was later than a line without loss allows, in order."""
    way = way_of(seen)
    limit_s = way.limit_s(seen["size_bytes"]) + (0 if seen["connection"] == "reused" else way.unscaled_wait_s)
    return sorted((run["s"] - limit_s) * 1000 / way.rtt_ms for run in seen["runs_seen"])


def summary(seen: Sequence[Cell]) -> dict[str, Any]:
    """Return what the cells come to that have been measured more than one way, by path, and what spoils them. Pure."""
    by_name = {one["name"]: one for one in seen if "failed" not in one}
    paths: dict[str, dict[str, Any]] = {}
    for name, one in by_name.items():
        path, _, way = name.rpartition(", ")
        paths.setdefault(path, {})[way] = _row(one)
    return {
        "paths": {path: rows for path, rows in paths.items() if len(rows) > 1},
        "measured": len(by_name),
        "saturated": [one["name"] for one in by_name.values() if one["idle_share"] < LEAST_IDLE_SHARE],
        "on_fallback": sum(run["fallback"] for one in by_name.values() for run in one["runs_seen"]),
        "commit": ", ".join(sorted({one["commit"] for one in by_name.values()})),
    }


def aims(summary: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims: no way is slower than the one before it; and what parities are to come to. Pure."""
    found: dict[str, Aim] = {}
    for path, rows in summary["paths"].items():
        for way, other in COMPARED:
            for what, most in (("median", MEDIAN_RTTS), ("worst", WORST_RTTS)) if {way, other} <= set(rows) else ():
                later = round(rows[way][f"{what}_rtts"] - rows[other][f"{what}_rtts"], 3)
                found[f"{path}: {what} of {way} later than {other}, round trips"] = at_most(later, most)
        if "coded" in rows and _mended(path):
            for what, most in (("median", LIMIT_MEDIAN_RTTS), ("worst", LIMIT_WORST_RTTS)):
                later = rows["coded"][f"{what}_rtts"]
                found[f"{path}: {what} of coded later than without loss, round trips"] = at_most(later, most)
    found["cells on a full CPU"] = none_of(summary["saturated"])
    found["transfers on the fallback"] = none_of(summary["on_fallback"])
    return found


def _mended(path: str) -> bool:
    """Return whether parities are to mend all that is lost on a path.

    >>> _mended("reused, 268.8 MB, 180 ms, 0.1%"), _mended("reused, 268.8 MB, 180 ms, 0.1% in super-packets")
    (True, False)
    """
    loss = path.rpartition(", ")[2]
    return loss.endswith("%") and float(loss.removesuffix("%")) <= LIMIT_LOSS_PERCENT


def _row(seen: Cell) -> dict[str, Any]:
    more, runs = more_rtts(seen), seen["runs_seen"]
    return {
        "median_rtts": round(statistics.median(more), 3),
        "mean_rtts": round(statistics.fmean(more), 3),
        "worst_rtts": round(more[-1], 3),
        "median_s": round(statistics.median(run["s"] for run in runs), 4),
        "lost": sum(run["dropped_segments"] for run in runs),
        "sent_again": sum(run["again_segments"] for run in runs),
        "parities": sum(run.get("parities", 0) for run in runs),
        "rebuilt": sum(run.get("rebuilt", 0) for run in runs),
        "busy_permille": round(1000 * (1 - seen["mean_idle_share"])),
        "runs": len(runs),
        "commit": seen["commit"],
    }


def page(summary: dict[str, Any]) -> str:
    """Return the table of what was measured, and which aims it misses, in Markdown. Pure."""
    columns = "sent | median | mean | worst | median, s | lost | sent again | parities | rebuilt | CPU | commit"
    judged = stated(aims(summary))
    missed = [(name, judged["aims"][name]) for name in judged["falls_short"]]
    lines = [
        "# The end of transfers, measured",
        "",
        "Made by `mininet-tests/run tail`, never typed. Median, mean and worst: round trips later than a line without",
        f"loss allows, of {RUNS} transfers with the same seeds for all ways. Lost, sent again, parities (packets) and",
        "rebuilt: of all of them, segments. CPU: thousandths of the lab's that were busy, both hosts and the line",
        "together. What it means: [the host agent](../agent.md#the-end-of-a-transfer).",
        "",
        f"Measured: {summary['measured']} of {len(cells())} cells.",
        "",
        f"Short of the aims, {len(missed)} of {len(judged['aims'])}:" if missed else "All aims hold.",
        "",
        *(f"- {name}: {one['seen']}, aim: {one['aim']}" for name, one in missed),
        *([""] if missed else []),
        f"| path | {columns} |",
        f"|---|---|{'---:|' * (columns.count('|') - 1)}---|",
    ]
    for path, rows in summary["paths"].items():
        for way, row in sorted(rows.items()):
            lines.append(
                f"| {path} | {way} | {row['median_rtts']:.2f} | {row['mean_rtts']:.2f} | {row['worst_rtts']:.2f} |"
                f" {row['median_s']:.3f} | {row['lost']} | {row['sent_again']} | {row['parities']} | {row['rebuilt']} |"
                f" {row['busy_permille']} | {row['commit']} |"
            )
    return "\n".join(lines) + "\n"


def slim(seen: Cell, asked: Cell) -> Cell:
    """Return what is published of a cell: what was asked, and of each run what its row is made of. Pure."""
    runs = [{key: run[key] for key in KEPT_OF_RUN if key in run} for run in seen["runs_seen"]]
    return asked | {key: seen[key] for key in KEPT_OF_CELL if key in seen} | {"runs_seen": runs}


def published(seen: Iterable[Cell], found: dict[str, Any]) -> None:
    """Bring cells and tables into the documentation."""
    asked = {cell["name"]: cell for cell in cells()}
    lines = [json.dumps(slim(one, asked[one["name"]])) + "\n" for one in seen if "failed" not in one]
    (DOCS / "tail.jsonl").write_text("".join(lines))
    (DOCS / "tail.md").write_text(page(found))


def main(argv: list[str]) -> int:
    """Measure what is missing, and write what all of it comes to; return the exit code."""
    parser = argparse.ArgumentParser(prog="tail", description=__doc__)
    parser.add_argument("--out", type=Path, default=commands.ROOT / "out" / "tail", help="folder (default: out/tail)")
    parser.add_argument("--only", type=re.compile, metavar="REGEX", help="only cells whose names have this in them")
    parser.add_argument("--list", action="store_true", help="only say what cells there are")
    parser.add_argument("--published", action="store_true", help="begin with the cells that docs have")
    parser.add_argument("--publish", action="store_true", help="write cells and tables to docs")
    parser.add_argument("--jobs", type=int, default=1, help="labs side by side, a CPU each (default: %(default)s)")
    args = parser.parse_args(argv)
    wanted = chosen(cells(), args.only)
    if args.list:
        print("\n".join(cell["name"] for cell in wanted))
        return EXIT_OK
    kept = Kept(args.out / "cells")
    if args.published and (DOCS / "tail.jsonl").exists():
        kept.adopt(DOCS / "tail.jsonl")
    missing = kept.missing(wanted)
    say(f"{len(wanted)} cells, {len(missing)} of them to be measured, kept in {kept.folder}")
    code = measured(list(batches(missing, LINE, SITE)), kept, facts(), say, jobs=args.jobs) if missing else EXIT_OK
    there = [one for cell in cells() if (one := kept.seen(cell)) is not None]
    seen = summary(there)
    judged = stated(aims(seen))
    if args.publish:
        published(there, seen)
    found = seen.pop("paths") | seen | judged
    write_report(args.out, found)
    say(f"written: {args.out / 'report.json'}")
    return code


def say(text: str) -> None:
    """Show progress."""
    print(f"tail: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
