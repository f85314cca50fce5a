"""What arrives by each lane, as a picture and a table, from ``lanes.json`` and ``report.json``."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
from rich.console import Console
from rich.table import Table

from mininet_tests.probes.series import at, rates_bps
from mininet_tests.scenarios.lanes.report import LANES

COLOURS = {"base20": "tab:blue", "base20.eth1": "tab:orange"}
BIN_US = 200_000
ALONE_US, ALONE_BYTES = 500_000, 5_000  # so much before and after it, and no more in that: a path is tried, not used
COLUMNS = 3
OF_THE_PAPER = {
    "sctp, undisturbed": "Figure 8",
    "sctp, interface dies": "Figure 9",
    "sctp-rfc4960, interface dies": "Figure 9",
    "sctp-cmt, undisturbed": "Figure 10",
    "mptcp, undisturbed": "For figure 10",  # the same of TCP
    "curl, undisturbed": "For figure 10",
}


def printed(report: dict[str, Any]) -> None:
    """Print how long each transfer took, one a row."""
    table = Table(title=f"{report['size_bytes'] / 1e9:g} GB over two lanes, seconds")
    for column in (
        "transfer",
        "took",
        "T by the plan",
        "of both lanes",
        "at the new plan, ms",
        "rest",
        "rest by the plan",
    ):
        table.add_column(column, justify="left" if column == "transfer" else "right")
    for name, one in report["runs"].items():
        death, shown = (
            one.get("death"),
            [f"{one['took_s']:.2f}", f"{one['formula_s']:.2f}", f"{one['of_both_lanes']:.1%}"],
        )
        if death is None:
            table.add_row(name, *shown, "-", "-", "-")
            continue
        back = ", ".join("never" if ms is None else f"{ms:.0f}" for ms in death["back_at_plan_ms"].values())
        table.add_row(name, shown[0], "-", "-", back, f"{death['rest_took_s']:.2f}", f"{death['rest_at_plan_s']:.2f}")
    Console(highlight=False).print(table)


def drawn(seen: dict[str, Any], report: dict[str, Any], path: Path) -> None:
    """Draw what arrives by each lane, one above the other, of each transfer."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    count = len(seen["runs"])
    columns = min(COLUMNS, count)
    figure, grid = plt.subplots(
        -(-count // columns), columns, figsize=(4.4 * columns, 3 * -(-count // columns)), dpi=110, sharey=True,
        squeeze=False, layout="constrained",
    )  # fmt: skip
    for axes, (name, one) in zip(grid.flat, seen["runs"].items(), strict=False):
        _draw(axes, one, report["runs"][name])
        axes.set_title(titled(name), fontsize=9)
        axes.set_xlabel("s since the program was started")
    for row in grid:
        row[0].set_ylabel("payload received, Mbit/s")
    grid[0, -1].legend(fontsize=8, loc="lower right")
    for axes in grid.flat[count:]:
        axes.set_axis_off()
    figure.savefig(path)
    plt.close(figure)


def titled(case: str) -> str:
    """Return a case's title: with the figure of Wertz et al. that it is, or that it stands for.

    >>> titled("sctp, undisturbed"), titled("aria2, undisturbed")
    ('Figure 8: sctp, undisturbed', 'aria2, undisturbed')
    """
    return f"{OF_THE_PAPER[case]}: {case}" if case in OF_THE_PAPER else case


def _draw(axes: Any, one: dict[str, Any], found: dict[str, Any]) -> None:
    times_us, began_us = [at_us for at_us, _ in one["received"]], one["started_us"]
    span = began_us, times_us[-1]
    rates = {lane: rates_bps(times_us, [counts[lane] for _, counts in one["received"]], span, BIN_US) for lane in LANES}
    at_s = [(n + 0.5) * BIN_US / 1e6 for n in range(len(rates["base20"]))]
    stacked = [[bps / 1e6 for bps in rates[lane]] for lane in LANES]
    axes.stackplot(at_s, *stacked, colors=[COLOURS[lane] for lane in LANES], labels=[f"from {lane}" for lane in LANES])
    for lane in LANES:
        tried_s = [
            (at_us - began_us) / 1e6 for at_us in tried_us(times_us, [counts[lane] for _, counts in one["received"]])
        ]
        (tried,) = axes.plot(tried_s, [0] * len(tried_s), "x", color=COLOURS[lane], markersize=5, clip_on=False)
        tried.set_in_layout(False)  # who is not clipped takes the whole figure there
    axes.axhline(sum(found["planned_payload_bps"].values()) / 1e6, color="black", linewidth=0.8, linestyle=":")
    if "died_us" in one:
        axes.axvline((one["died_us"] - began_us) / 1e6, color="black", linewidth=0.8)


def tried_us(times_us: list[int], counts: list[int]) -> list[int]:
    """Return when something has come by a lane that is not used: heartbeats, and what is sent to try it.

    >>> tried_us([0, 1_000_000, 2_000_000, 3_000_000, 4_000_000], [0, 0, 60, 60, 9_000_000])
    [2000000]
    """
    came = [at_us for at_us, (before, after) in zip(times_us[1:], pairwise(counts), strict=True) if after > before]
    return [t for t in came if at(times_us, counts, t + ALONE_US) - at(times_us, counts, t - ALONE_US) < ALONE_BYTES]
