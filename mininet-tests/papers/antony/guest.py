"""Starts and flows and their losses, measured: the points it is given. Run inside ``isolated.sh``, in the lab.

Started by ``run.py``. It does not know whether it is in the lab.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from mininet_tests.lab.cells import EXIT_FAILED, EXIT_OK, asked, leave, tell
from mininet_tests.papers.antony.flows import FlowRuns, TimedFlow
from mininet_tests.papers.antony.line import Nics
from mininet_tests.papers.antony.tcp import Start, StartRuns, smallest_buffer
from mininet_tests.papers.antony.udp import numbered
from mininet_tests.site.long_line_site import LongLineSite
from mininet_tests.site.tcp_flows import SWITCH_S

LARGEST_RTT_MS, LARGEST_BPS = 200, 10**9


class Runs:
    """The site on which the points are measured, one after another."""

    def __init__(self, site: LongLineSite, nics: Nics) -> None:
        self._nics = nics
        self._starts, self._flows = StartRuns(site, nics), FlowRuns(site, nics)

    def seen(self, point: dict[str, Any]) -> dict[str, Any]:
        """Return what a point has come to."""
        if "flow" in point:
            return self._flows.seen(TimedFlow(**point["flow"]))
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


def main() -> None:
    """Measure, and tell of each point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder with the points that are asked for")
    args = parser.parse_args()
    points = asked(args.out)
    most = max(point["start"]["senders"] if "start" in point else 2 for point in points)
    sys.setswitchinterval(SWITCH_S)
    with tempfile.TemporaryDirectory(prefix="headway-") as scratch:
        try:
            site = LongLineSite(Path(scratch), LARGEST_RTT_MS, LARGEST_BPS)
            runs = Runs(site, Nics(site.line, most))
            for point in points:
                tell(point, runs.seen(point))
        except (AssertionError, RuntimeError, OSError) as error:
            print(f"bursts: {error}", file=sys.stderr, flush=True)
            leave(EXIT_FAILED)
    leave(EXIT_OK)


if __name__ == "__main__":
    main()
