"""What ``headway what-if`` says beside what the lab measured, the paper's figure 11, and SimGrid; and what it costs.

Every figure of the lab that a held flow has published is a row: the forecast is to be within 1% or half a round trip.
Every rival that was published, and that a response function is known of, is to be within the range that is printed.
The observatory's year is run for many seeds, two at once: five minutes of two cores.
SimGrid's bindings are Debian's package python3-simgrid; without it the run falls short.
"""

import argparse
import json
import subprocess
import time
from dataclasses import replace
from pathlib import Path

from controller.whatif.movers import Mover
from controller.whatif.simulation import Simulation
from controller.whatif.supposed import WhatIf, WorkItem
from mininet_tests.papers.wertz import pftp
from mininet_tests.papers.wertz.lab_rows import SLICE_BYTES, T0, S, image, lab_rows, lab_shares, site
from mininet_tests.papers.wertz.lane_rows import lane_rows, not_forecast
from mininet_tests.papers.wertz.pftp import LANE_BPS, LANES, RTT_US, Pftp, blocks_of, mbytes_per_s
from mininet_tests.papers.wertz.rivals import rival_aims, rival_rows
from mininet_tests.papers.wertz.years import years
from mininet_tests.testing.aims import Aim, at_most, below, stated, within
from mininet_tests.testing.networks import chile_illinois_2
from mininet_tests.testing.progress import tell
from mininet_tests.testing.reports import write_report
from topology.protocol import FlowClass

WIDTHS = (1, 2, 4, 8, 16)
DEBIAN_PYTHON = "/usr/bin/python3"  # has the bindings
SECONDS_SHARE = 0.02
"""Of the whole time; what takes seconds comes first, then the years."""
WEEK_CPU_S, WEEK_TRANSFERS = 10.0, 10_000


def simgrid(streams: int) -> dict[str, float]:
    """Return what SimGrid says of a file in lock step without slow start and set-up; raises what its process raises."""
    blocks = blocks_of(Pftp(streams))
    asked = json.dumps({"lanes": LANES, "lane_bps": LANE_BPS, "rtt_us": RTT_US, "blocks": blocks})
    command = [DEBIAN_PYTHON, str(Path(pftp.__file__).with_name("simgrid_pftp.py")), asked]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def week() -> WhatIf:
    """Return a week: an image each 21 s of each night, and by day raw images and a copy of the database."""
    night, day, noon = ((begin * 3_600 * S, end * 3_600 * S) for begin, end in ((0, 10), (12, 20), (13, 14)))
    raw = WorkItem("raw", FlowClass.BACKGROUND, ("base20",), "arch", 50 * 10**9, T0, 10**8)
    copy = WorkItem("copy", FlowClass.BACKGROUND, ("base21",), "arch", 10**11, T0)
    items = (
        image(SLICE_BYTES, every_us=21 * S, between_us=night),
        replace(raw, every_us=3_600 * S, between_us=day),
        replace(copy, every_us=86_400 * S, between_us=noon),
    )
    return WhatIf(site(chile_illinois_2()), T0, T0 + 7 * 86_400 * S, items)


def cpu(of: WhatIf, *, replays: bool) -> tuple[float, int]:
    """Return the CPU seconds of a run, and how many transfers it had."""
    began_s = time.process_time()
    run = Simulation(of, replays=replays).run()
    return time.process_time() - began_s, len(run.transfers)


def main() -> None:
    """Run it all, write the file, print what it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/what-if"), help="folder (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=10, help="seeds of the year; 0 for none (default: %(default)s)")
    asked = parser.parse_args()
    tell(0.0, "forecasts beside what the lab has shown")
    rows = [*lab_rows(), *lane_rows()]
    figure11 = {width: round(mbytes_per_s(Pftp(width)), 1) for width in WIDTHS}
    fluid = {width: mbytes_per_s(Pftp(width, slow_start=False, setup=0)) for width in WIDTHS}
    began_s = time.process_time()
    for width in WIDTHS:
        mbytes_per_s(Pftp(width, slow_start=False, setup=0))
    ours_s = time.process_time() - began_s
    rivals = rival_rows()
    aims = {f"{row.what}, s": row.aim for row in rows} | lab_shares() | rival_aims(rivals)
    aims["figure 11, 1 stream, MB/s"] = within(figure11[1], 94 * 0.99, 94 * 1.01)
    aims["figure 11, 16 streams, MB/s"] = within(figure11[16], 443 * 0.99, 443 * 1.01)
    aims["PFTP beside MPSCP, times as long"] = within(round(mpscp_times(), 2), 12.1 * 0.99, 12.13 * 1.01)
    second: dict[int, float] = {}
    try:
        found = {width: simgrid(width) for width in WIDTHS}
        second = {width: 4e9 / one["took_s"] / 1e6 for width, one in found.items()}
        for width in WIDTHS:
            aims[f"SimGrid, {width} streams, ours over theirs"] = within(fluid[width] / second[width], 0.99, 1.01)
        aims["CPU of the same, s, below SimGrid's"] = below(ours_s, sum(one["cpu_s"] for one in found.values()))
    except (OSError, subprocess.CalledProcessError) as error:
        aims["SimGrid"] = Aim("apt install python3-simgrid", str(error), ok=False)
    of_years = (
        years(asked.runs, lambda share, what: tell(SECONDS_SHARE * (1 - share) + share, what)) if asked.runs else {}
    )
    week_s, transfers = cpu(week(), replays=True)
    aims[f"a week of {WEEK_TRANSFERS:,} transfers, CPU s"] = at_most(week_s * WEEK_TRANSFERS / transfers, WEEK_CPU_S)
    short = replace(week(), until_us=T0 + 3_600 * S)
    each_s, worked = cpu(short, replays=False)
    report = {
        "figure_11_mb_per_s": figure11,
        "lock_step_mb_per_s": {width: round(rate, 2) for width, rate in fluid.items()},
        "simgrid_mb_per_s": {width: round(rate, 2) for width, rate in second.items()},
        "rivals": {
            "runs": sum(len(row.runs_s) for row in rivals),
            "runs_within": sum(row.runs_within for row in rivals),
        },
        "lanes_not_forecast": not_forecast(),
        "year": of_years,
        "week": {
            "transfers": transfers,
            "cpu_s": round(week_s, 2),
            "cpu_ms_each_worked_out": round(each_s / worked * 1e3, 2),
        },
    } | stated(aims)
    write_report(asked.out, report)
    for what, aim in aims.items():
        print(f"{what}: {aim.aim}, seen {aim.seen}{'' if aim.ok else '  FALLS SHORT'}")
    print(f"written: {asked.out / 'report.json'}")


def mpscp_times() -> float:
    """Return how many times as long PFTP takes for 500 x 100 MB and 25 x 1.6 GB, 10.24 s a file."""
    rate_bps = round(90e9 * 8 / 483)
    mover = Mover(per_file_us=10_240_000)
    sets = ((500, 10**8), (25, 16 * 10**8))
    return sum(count * size * 8 / mover.effective_bps(rate_bps, RTT_US, size) for count, size in sets) / 483


if __name__ == "__main__":
    main()
