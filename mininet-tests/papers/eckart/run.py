"""The paper's formulas and its algorithm in a fluid: table 3, figure 2, where figure 6 goes wrong; JSON and a plot."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from controller.plan.receivers import ReceiverBucket
from mininet_tests.papers.eckart import figure
from mininet_tests.papers.eckart.aims import aims
from mininet_tests.papers.eckart.figure6 import (
    MB_BITS,
    MBIT,
    Rule,
    Setting,
    drained_while_waiting,
    figure6,
    stalling,
    steady,
    transferred,
)
from mininet_tests.papers.eckart.printed import FIGURE_2_MB, LINE_MBPS, MEMORY_MB, TABLE_3
from mininet_tests.testing.aims import stated
from mininet_tests.testing.reports import write_report

RULES = {"figure 6": figure6, "headway": drained_while_waiting}
NO_RTT_S = 0.0
EPOCHS_SHOWN = 60


def main(argv: list[str]) -> int:
    """Compute, and write JSON and a plot; return the exit code: 1 if an aim is missed."""
    parser = argparse.ArgumentParser(prog="eckart", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/eckart"), help="folder (default: %(default)s)")
    out = parser.parse_args(argv).out
    out.mkdir(parents=True, exist_ok=True)
    found = report()
    found |= stated(aims(found))
    write_report(out, found)
    figure.drawn(found, out / "eckart.png")
    print(f"eckart: {out / 'report.json'} and {out / 'eckart.png'}")
    return 1 if found["falls_short"] else 0


def report() -> dict[str, Any]:
    """Return what the formulas and the fluid come to. Pure."""
    return {
        "table_3": [_table_row(*row) for row in TABLE_3],
        "figure_2": _figure_2(),
        "starvation": {
            f"{size_mb} MB": {name: _starved(size_mb, rule(LINE_MBPS * MBIT)) for name, rule in RULES.items()}
            for size_mb in (5_000, 20_000)
        },
        "stalls": {
            f"epoch of {epoch_s:g} s": {name: _stalled(epoch_s, rule(LINE_MBPS * MBIT)) for name, rule in RULES.items()}
            for epoch_s in (0.1, 1.0)
        },
    }


def _table_row(size_mb: int, disk_mbps: float, printed_mbps: float, measured_mbps: float) -> dict[str, float]:
    """Return a row of table 3, with what the formula says, and what figure 6 does with its disk."""
    bucket = ReceiverBucket(MEMORY_MB * 10**6, round(disk_mbps * MBIT))
    predicted_bps = bucket.rate_bps(size_mb * 10**6) or 0
    line_bps = LINE_MBPS * MBIT
    setting = Setting(size_mb * MB_BITS, MEMORY_MB * MB_BITS, steady(disk_mbps * MBIT), line_bps, rtt_s=NO_RTT_S)
    run = transferred(replace(setting, first_bps=min(line_bps, predicted_bps)), figure6(line_bps))
    return {
        "size_mb": size_mb,
        "disk_mbps": disk_mbps,
        "printed_mbps": printed_mbps,
        "predicted_mbps": predicted_bps / MBIT,
        "figure6_mbps": size_mb * 8 / run.across_s,
        "measured_mbps": measured_mbps,
        "measured_share": measured_mbps / min(predicted_bps / MBIT, LINE_MBPS),
        "across_s": run.across_s,
        "kept_s": run.kept_s,
    }


def _figure_2() -> dict[str, Any]:
    """Return the rate of a file of 3 GB by disk and by memory, as the paper's figure 2 has it."""
    disks_mbps, memories_mb = list(range(100, 1001, 50)), list(range(0, 2901, 100))
    rates = [
        [(ReceiverBucket(mb * 10**6, mbps * 10**6).rate_bps(FIGURE_2_MB * 10**6) or 0) / MBIT for mbps in disks_mbps]
        for mb in memories_mb
    ]
    return {"disks_mbps": disks_mbps, "memories_mb": memories_mb, "rates_mbps": rates}


def _starved(size_mb: int, rule: Rule) -> dict[str, Any]:
    """Return the rates that are set for a transfer that begins below what the disk writes."""
    run = transferred(
        Setting(size_mb * MB_BITS, MEMORY_MB * MB_BITS, steady(278 * MBIT), first_bps=50 * MBIT, rtt_s=NO_RTT_S), rule
    )
    return {
        "across_s": run.across_s,
        "rates_mbps": [round(bps / MBIT, 1) for bps in run.rates_bps[:EPOCHS_SHOWN]],
    }


def _stalled(epoch_s: float, rule: Rule) -> dict[str, Any]:
    """Return what becomes of 5 GB over 180 ms to a disk of 350 Mbit/s that stands still for 2 s of each 10 s."""
    disk = stalling(350 * MBIT, 2, 10)
    run = transferred(Setting(5_000 * MB_BITS, MEMORY_MB * MB_BITS, disk, epoch_s=epoch_s), rule)
    return {
        "across_s": run.across_s,
        "kept_s": run.kept_s,
        "no_room_mbit": run.lost_bits / MBIT,
        "lowest_mbps": min(run.rates_bps) / MBIT,
    }


if __name__ == "__main__":
    import sys

    sys.exit(main(sys.argv[1:]))
