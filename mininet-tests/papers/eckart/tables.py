"""PA-UDP's tables 1 to 3 measured in the lab beside their rivals, with a real file system on a slow disk; resumed.

Each cell is kept in ``OUT/cells`` as soon as it is there: a run that is stopped is continued by starting it again. What
comes of all that is there is written to ``OUT/report.json``, and drawn.
"""

import argparse
import json
import re
import shutil
import sys
from pathlib import Path

from mininet_tests.lab import commands
from mininet_tests.lab.cells import EXIT_OK, Kept, measured
from mininet_tests.lab.commit import commit
from mininet_tests.papers.eckart import chart
from mininet_tests.papers.eckart.cells import batches, cells
from mininet_tests.papers.eckart.results import aims, columns, report
from mininet_tests.testing.aims import stated

SITE, LINE = (tuple(commands.module(f"papers.eckart.{name}")) for name in ("held_site", "rivals"))
PICTURE = "receiver-tables.png"


def main(argv: list[str]) -> int:
    """Measure what is missing, then write what all of it comes to; return the exit code."""
    parser = argparse.ArgumentParser(prog="receiver", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three files only")
    parser.add_argument("--only", type=re.compile, metavar="REGEX", help="only cells whose names have this in them")
    parser.add_argument("--list", action="store_true", help="only say what cells there are")
    parser.add_argument("--report", action="store_true", help="measure nothing: say what comes of all that is there")
    parser.add_argument("--publish", action="store_true", help="bring the figure into docs")
    parser.add_argument("--jobs", type=int, default=1, help="labs side by side, a CPU each (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=commands.ROOT / "out" / "receiver", help="folder")
    args = parser.parse_args(argv)
    asked = cells(quick=args.quick)
    wanted = [cell for cell in asked if args.only is None or args.only.search(cell["name"])]
    if args.list:
        print("\n".join(cell["name"] for cell in wanted))
        return EXIT_OK
    kept = Kept(args.out.absolute() / "cells")
    missing = kept.missing(wanted)
    print(f"receiver: {len(wanted)} cells, {len(missing)} of them to be measured, kept in {kept.folder}", flush=True)
    code = (
        measured(list(batches(missing, LINE, SITE)), kept, {"commit": commit()}, say, jobs=args.jobs)
        if missing and not args.report
        else EXIT_OK
    )
    seen = [one for cell in asked if (one := kept.seen(cell)) is not None]
    if not seen:
        return code
    found = report(seen, wanted)
    found["commit"] = ", ".join(found["commits"])
    (args.out / "report.json").write_text(json.dumps(found | columns(found) | stated(aims(found)), indent=1) + "\n")
    chart.drawn(seen, args.out / PICTURE)
    if args.publish:
        shutil.copyfile(args.out / PICTURE, commands.ROOT / "docs" / PICTURE)
    return code


def say(text: str) -> None:
    """Show progress."""
    print(f"receiver: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
