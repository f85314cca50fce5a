"""Starts and their losses, measured: the points it is given, one file each. Run inside ``isolated.sh``, in the lab.

Started by ``bursts.py``. It does not know whether it is in the lab.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bursts_line import Nics
from bursts_tcp import Start, Starts, smallest_buffer
from bursts_udp import numbered
from longpath_site import Site

SWITCH_S = 0.0005  # the feeding thread must not wait 5 ms for another one
LARGEST_RTT_MS, LARGEST_BPS = 200, 10**9


class Runs:
    """The site on which the points are measured, one after another."""

    def __init__(self, site: Site, nics: Nics) -> None:
        self._nics = nics
        self._starts = Starts(site, nics)

    def seen(self, point: dict[str, Any]) -> dict[str, Any]:
        """Return what a point has come to."""
        if "start" not in point:
            rates_bps = point["nic_bps"], point["port_bps"]
            return numbered(self._nics, point["packets"], point["frame_bytes"], rates_bps, point["buffer_bytes"])
        start = Start(**point["start"])
        self._starts.shares.clear()
        if "search" in point:
            seen = smallest_buffer(self._starts, start, point["search"])
        else:
            self._starts.prepared(start)
            seen = dict(self._starts.lost(start, point["buffer_bytes"]))
        return seen | {"idle_share": min(self._starts.shares)}


def main() -> int:
    """Run, and keep what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder with points.json; for what was seen")
    args = parser.parse_args()
    points = json.loads((args.out / "points.json").read_text())
    most = max(point.get("start", {}).get("senders", 1) for point in points)
    sys.setswitchinterval(SWITCH_S)
    with tempfile.TemporaryDirectory(prefix="headway-") as scratch:
        try:
            site = Site(Path(scratch), LARGEST_RTT_MS, LARGEST_BPS)
            runs = Runs(site, Nics(site.line, most))
            for number, point in enumerate(points, 1):
                began_s = time.monotonic()
                seen = runs.seen(point)
                unfinished = args.out / "unfinished"  # a file that is there is whole
                unfinished.write_text(json.dumps(point | seen))
                unfinished.rename(args.out / f"{point['name']}.json")
                took_s = time.monotonic() - began_s
                print(f"bursts: {number} of {len(points)}: {point['name']}: {took_s:.1f} s of its time", flush=True)
        except (AssertionError, RuntimeError, OSError) as error:
            print(f"bursts: {error}", file=sys.stderr, flush=True)
            os._exit(1)  # its threads and agents may still run; the namespaces end with this process
    os._exit(0)  # likewise


if __name__ == "__main__":
    sys.exit(main())
