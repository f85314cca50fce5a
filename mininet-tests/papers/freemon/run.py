"""Freemon 2013 in numbers, measured in the lab beside its rivals: one command, resumed where it was stopped.

Each cell is kept in ``OUT/cells`` as soon as it is there. What comes of all that is there is written to
``OUT/summary.json`` and ``OUT/results.md``, a run of everything also to ``docs``.
"""

import argparse
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from mininet_tests.lab import commands
from mininet_tests.lab.cells import EXIT_FAILED, EXIT_OK, Cell, Kept, measured
from mininet_tests.lab.commit import commit, said
from mininet_tests.papers.freemon import figure, report
from mininet_tests.papers.freemon.aims import aims
from mininet_tests.papers.freemon.cells import batches, cells
from mininet_tests.testing.aims import stated
from mininet_tests.testing.reports import write_report

DOCS = commands.ROOT / "docs"
JOBS = min(2, os.cpu_count() or 1)
LINE, SITE = (tuple(commands.module(f"papers.freemon.{name}")) for name in ("line", "site"))


def main(argv: list[str]) -> int:
    """Measure what is missing, then write what all of it comes to; return the exit code."""
    args = arguments(argv)
    wanted = chosen(cells(quick=args.quick), args.only)
    if args.list:
        print("\n".join(cell["name"] for cell in wanted))
        return EXIT_OK
    kept = Kept((args.out or commands.ROOT / "out" / ("paper-quick" if args.quick else "paper")) / "cells")
    if args.published:
        kept.adopt(DOCS / "results" / "cells.jsonl")
    missing = wanted if args.again else kept.missing(wanted)
    say(f"{len(wanted)} cells, {len(missing)} of them to be measured, kept in {kept.folder}")
    code = measured(list(batches(missing, LINE, SITE)), kept, facts(), say, jobs=args.jobs) if missing else EXIT_OK
    asked = cells(quick=args.quick)
    seen = [one for cell in asked if (one := kept.seen(cell)) is not None]
    out = kept.folder.parent
    if seen:
        summary = report.written(seen, asked, out)
        write_report(out, summary | stated(aims(summary)))
        (out / "results").mkdir(exist_ok=True)
        pictures = [f"results/{name}" for name in figure.drawn(seen, out / "results")]
        bad = [*summary["failed"], *summary["saturated"]]
        say(f"{len(seen)} cells: {', '.join(str(out / name) for name in ('results.md', 'summary.json', *pictures))}")
        say(f"without a result: {', '.join(bad)}") if bad else None
        code = code or (EXIT_FAILED if bad else EXIT_OK)
    if seen and (args.publish or (not code and not args.quick and not args.only)):
        published(out)
    return code


def arguments(argv: list[str]) -> argparse.Namespace:
    """Return the command line, read."""
    parser = argparse.ArgumentParser(prog="paper", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few cells, each with few runs")
    parser.add_argument("--only", type=re.compile, metavar="REGEX", help="only cells whose names have this in them")
    parser.add_argument("--again", action="store_true", help="measure also what has been measured")
    parser.add_argument("--list", action="store_true", help="only say what cells there are")
    parser.add_argument("--published", action="store_true", help="begin with the cells that docs have")
    parser.add_argument("--publish", action="store_true", help="write docs also if not all has been measured")
    parser.add_argument("--jobs", type=int, default=JOBS, help="labs side by side, a CPU each (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="folder (default: out/paper, or out/paper-quick)")
    return parser.parse_args(argv)


def chosen(some: Sequence[Cell], only: re.Pattern[str] | None) -> list[Cell]:
    """Return those cells whose names have a match in them."""
    return [cell for cell in some if only is None or only.search(cell["name"])]


def facts() -> Cell:
    """Return what every cell of a run is kept with: the checkout's commit, and the versions of what measures."""
    versions = {
        "qemu": said("qemu-system-x86_64", "--version").split("\n")[0],
        "iproute2": said("ip", "-V"),
        "python": sys.version.split()[0],
    }
    return {"commit": commit(), "versions": versions}


def published(out: Path) -> None:
    """Bring what was written into the documentation."""
    (DOCS / "results").mkdir(exist_ok=True)
    shutil.copyfile(out / "results.md", DOCS / "results.md")
    for name in ("summary.json", "cells.jsonl"):
        shutil.copyfile(out / name, DOCS / "results" / name)
    for picture in (out / "results").glob("*.png"):
        shutil.copyfile(picture, DOCS / "results" / picture.name)


def say(text: str) -> None:
    """Show progress."""
    print(f"paper: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
