"""Bursts in small buffers, measured: Freemon 2013 section V.A, Antony 2003 figures 2 and 4; JSON and plots.

What has been measured already is not measured again: delete a file in ``OUT/points`` to have it anew. It runs in the
lab, where single packets at 30 Gbit/s are exact.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from mininet_tests.lab import commands
from mininet_tests.lab.cells import EXIT_FAILED, EXIT_OK, Batch, Kept, measured
from mininet_tests.lab.saturation import LEAST_IDLE_SHARE
from mininet_tests.papers.antony import figure, flow_figure, flow_points, flow_report
from mininet_tests.papers.antony.aims import aims
from mininet_tests.papers.antony.formulas import forbidden_bps
from mininet_tests.papers.antony.points import (
    BUFFER_BYTES,
    GIGABIT,
    PRINTED_MB,
    WINDOW_BYTES,
    fig2_measured,
    points,
)
from mininet_tests.testing.aims import stated
from mininet_tests.testing.reports import write_report

STARTS = ("fig2", "fig4", "freemon")
EXPERIMENTS = (*STARTS, *flow_points.EXPERIMENTS)
DILATION = 16  # 10 Gbit/s of single packets, at a start of ten senders
CURVE_RTTS_MS = range(16, 221)


def main(argv: list[str]) -> int:
    """Measure what is missing, then write JSON and plots; return the exit code."""
    parser = argparse.ArgumentParser(prog="antony", description=__doc__)
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help=f"some of {', '.join(EXPERIMENTS)}")
    parser.add_argument("--quick", action="store_true", help="few points, each with few tries")
    parser.add_argument("--out", type=Path, default=Path("out/antony"), help="folder (default: %(default)s)")
    args = parser.parse_args(argv)
    if not set(args.experiments) <= set(EXPERIMENTS):
        parser.error(f"there are {', '.join(EXPERIMENTS)}")
    names = args.experiments or EXPERIMENTS
    starts = points(tuple(name for name in names if name in STARTS), quick=args.quick)
    flows = [p for name in names if name not in STARTS for p in flow_points.flow_points(name, quick=args.quick)]
    wanted = starts + flows
    kept = Kept(args.out.absolute() / "points")
    missing = kept.missing(wanted)
    say(f"{len(wanted)} points, {len(missing)} of them to be measured")
    command = tuple(commands.module("papers.antony.guest"))
    batches = [
        Batch(command, some, dilation)
        for dilation, part in ((DILATION, starts), (flow_points.DILATION, flows))
        if (some := tuple(kept.missing(part)))
    ]
    code = measured(batches, kept, {}, say) if batches else EXIT_OK
    seen = [one for point in wanted if (one := kept.seen(point)) is not None]
    _written(seen, args.out)
    full = [one["name"] for one in seen if one["idle_share"] < LEAST_IDLE_SHARE]
    if full:
        print(f"antony: invalid, the CPU was full: {', '.join(full)}", file=sys.stderr)
    return code or (EXIT_FAILED if full or len(seen) < len(wanted) else EXIT_OK)


def say(text: str) -> None:
    """Show progress."""
    print(f"antony: {text}", flush=True)


def _written(seen: list[dict[str, Any]], out: Path) -> None:
    """Write a JSON file and a plot for each experiment that has points, and what all come to in ``report.json``."""
    parts = {
        "freemon": [one for one in seen if one["name"].startswith("freemon")],
        "antony_fig2": [one for one in seen if one["name"] == "fig2"],
        "antony_fig4": [one for one in seen if one["name"].startswith("fig4")],
    }
    reports = {"freemon": _freemon, "antony_fig2": _fig2, "antony_fig4": _fig4}
    starts = {name: reports[name](some) for name, some in parts.items() if some}
    flows = flow_report.reports(seen)
    for name, report in (starts | flows).items():
        (out / f"{name}.json").write_text(json.dumps(report, indent=1) + "\n")
        (figure.DRAWN | flow_figure.DRAWN)[name](report, out / f"{name}.png")
        print(f"antony: {out / name}.json and .png")
    write_report(out, starts | flows | stated(aims(starts) | flow_report.aims(flows)))


def _freemon(seen: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "window_bytes": WINDOW_BYTES,
        "nic_bps": GIGABIT,
        "port_bps": GIGABIT,
        "printed_mb": PRINTED_MB,
        "points": [one | {"sender": one["start"]["sender"], "senders": one["start"]["senders"]} for one in seen],
    }


def _fig2(seen: list[dict[str, Any]]) -> dict[str, Any]:
    (one,) = seen
    return one | {"measured": fig2_measured(one)}


def _fig4(seen: list[dict[str, Any]]) -> dict[str, Any]:
    curve = {rtt_ms: forbidden_bps(GIGABIT, rtt_ms * 1000, BUFFER_BYTES) for rtt_ms in CURVE_RTTS_MS}
    return {
        "buffer_bytes": BUFFER_BYTES,
        "nic_bps": GIGABIT,
        "curve": [{"rtt_ms": ms, "low_bps": bps[0], "high_bps": bps[1]} for ms, bps in curve.items() if bps],
        "points": [
            {key: one["start"][key] for key in ("sender", "rtt_ms", "port_bps")}
            | {key: one[key] for key in ("predicted_bytes", "dropped", "sent_again", "idle_share")}
            for one in seen
        ],
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
