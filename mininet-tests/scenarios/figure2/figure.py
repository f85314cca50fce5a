"""A run's report as a picture and as a table."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
from rich.console import Console
from rich.table import Table

from mininet_tests.probes.figures import HOST_COLOURS
from mininet_tests.probes.series import Series, rates_bps
from mininet_tests.scenarios.figure2.report import PAPER, series
from mininet_tests.site.lsst import BACKGROUND

PICTURE_BIN_US = 250_000
NAMES = {
    "base20": "image, first half (base20)",
    "base21": "image, second half (base21)",
    "base22": "database (base22)",
    "base23": "raw images (base23)",
}


def drawn(run: dict[str, Any], report: dict[str, Any], path: Path) -> None:
    """Draw received payload over time, per flow and in total, with the plan behind it, as in Freemon's figure 2."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    received, marks = series(run), run["marks"]
    start_us = marks["steady_us"]
    span = start_us, marks["end_us"]
    figure, axes = plt.subplots(figsize=(11, 5.8), dpi=110)
    limit = report["payload_limit_bps"] / 8e6
    axes.axhline(limit, color="black", linewidth=0.8, linestyle=":", label=f"limit {limit:.1f} MB/s")
    _draw_plan(axes, run, start_us)
    for host, values in received.hosts.items():
        style = "--" if host == "base21" else "-"  # the two halves run at the same rate: both are to be seen
        _draw(axes, received, values, span, color=HOST_COLOURS[host], label=NAMES[host], linewidth=1.6, linestyle=style)
    _draw(axes, received, received.total(), span, color="black", label="all", linewidth=1.6)
    if "disk" in report:
        _draw_freed(axes, received, report["disk"], marks)
    for name in (name for name in ("announced", "confirmed", "stored") if f"{name}_us" in marks):
        at_s = (marks[f"{name}_us"] - start_us) / 1e6
        side = "right" if name == "confirmed" and "stored_us" in marks else "left"  # the two are close together
        axes.axvline(at_s, color="grey", linewidth=0.8, linestyle="--")
        axes.text(at_s, limit * 1.06, f" image {name} ", fontsize=8, color="grey", horizontalalignment=side)
    axes.set(
        xlabel="seconds", ylabel="payload received, MB/s", ylim=(0, limit * 1.13), xlim=(0, (span[1] - start_us) / 1e6)
    )
    axes.set_title(
        f"{report['rate_bps'] / 1e9:g} Gbit/s, {report['rtt_ms']:g} ms, {100 * report['loss_set']:g}% loss each way: "
        f"image in {report['urgent']['seconds']:.2f} s, {100 * report['utilisation']:.2f}% of the limit used"
    )
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncol=3, fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def _draw(axes: Any, received: Series, values: list[int], span: tuple[int, int], **how: Any) -> None:
    """Draw one curve: the mean rate in each bin, at the bin's middle."""
    rates = rates_bps(received.at_us, values, span, PICTURE_BIN_US)
    axes.plot([(i + 0.5) * PICTURE_BIN_US / 1e6 for i in range(len(rates))], [r / 8e6 for r in rates], **how)


def _draw_freed(axes: Any, received: Series, disk: dict[str, Any], marks: dict[str, int]) -> None:
    """Draw what the disk takes, and hatch what background has beyond its guarantee while the image comes."""
    axes.axhline(disk["drain_bps"] / 8e6, color="tab:red", linewidth=0.8, linestyle=":", label="what the disk takes")
    span = marks["announced_us"], marks["confirmed_us"]
    rates = rates_bps(received.at_us, received.hosts[BACKGROUND], span, PICTURE_BIN_US)
    begins_s = (span[0] - marks["steady_us"]) / 1e6
    at_s = [begins_s + (i + 0.5) * PICTURE_BIN_US / 1e6 for i in range(len(rates))]
    low = disk["background_guaranteed_bps"] / 8e6
    axes.fill_between(
        at_s, low, [max(low, bps / 8e6) for bps in rates], facecolor="none", edgecolor=HOST_COLOURS[BACKGROUND],
        hatch="//", linewidth=0, alpha=0.5, label="freed by the disk, used by raw images",
    )  # fmt: skip


def _draw_plan(axes: Any, run: dict[str, Any], start_us: int) -> None:
    """Draw what the installed plan gave each flow, as areas behind the curves."""
    samples = [(t, p["installed"]) for t, p in run["plan"] if p and p["installed"]]
    for (from_us, plan), (to_us, _) in pairwise(samples):
        for allocation in plan["allocations"]:
            left, right = (from_us - start_us) / 1e6, (to_us - start_us) / 1e6
            height = allocation["payload_bps"] / 8e6
            axes.fill_between([left, right], 0, height, color=HOST_COLOURS[allocation["from"]], alpha=0.13, linewidth=0)


def printed(report: dict[str, Any]) -> None:
    """Print the table: this run, the paper, the limit."""
    tenths = report["rate_bps"] / 1e9
    urgent, handover, predictable = report["urgent"], report["handover"], report["predictable"]
    low, high = report["loss_interval"]
    table = Table(title=f"The LSST scenario, {report['mode']}, {report['loss_model']}s")
    for column in ("", "this run", "Freemon 2013", "limit or aim"):
        table.add_column(column, justify="left" if not column else "right")
    aim = f"20 ms, in bins of {handover['bin_ms']:.0f}"
    paper_s = f"{PAPER['urgent.seconds'] / tenths:.2f} s" if urgent["bytes"] > 2.6e9 else ""
    rows = (
        ("image, announced to confirmed", f"{urgent['seconds']:.3f} s", paper_s, f"{urgent['limit_seconds']:.3f} s"),
        ("utilisation, all flows up", f"{report['utilisation']:.2%}", f"{PAPER['utilisation']:.1%}", "100%"),
        ("database, least in a second", f"{predictable['min_share']:.2%}", "", "4.8%"),
        ("database, most in a second", f"{predictable['max_share']:.2%}", "", "5.2%"),
        ("gap at the start", f"{handover['start_gap_ms']:.0f} ms", "seconds", aim),
        ("gap at the end", f"{handover['end_gap_ms']:.0f} ms", "seconds", aim),
        ("moments above the plan", f"{report['plan']['violations']} of {report['plan']['samples']}", "", "0"),
        ("segments sent again", f"{report['loss_seen']:.4%}", f"{PAPER['loss_seen']:.4%}", f"{low:.4%} to {high:.4%}"),
        (
            "CPU idle, least in a second",
            f"{report['cpu']['least_idle_share']:.0%}",
            "",
            f"{report['cpu']['needed_idle_share']:.0%}",
        ),
    )
    for row in (*rows, *(_disk_rows(report["disk"]) if "disk" in report else ())):
        table.add_row(*row)
    Console().print(table)


def _disk_rows(disk: dict[str, Any]) -> tuple[tuple[str, str, str, str], ...]:
    """Return what the table says of a slow disk."""
    return (
        ("image, announced to stored", f"{disk['stored_s']:.3f} s", "", f"{disk['least_s']:.3f} s"),
        ("raw images, of what the disk leaves", f"{disk['background_of_the_rest']:.2%}", "", "95%"),
    )
