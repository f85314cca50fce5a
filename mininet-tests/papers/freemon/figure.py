"""What was measured for the paper, as pictures.

Table 2 over latency, as Freemon's figure 4; a transfer over time, as his figure 3; and all contestants.
"""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

from mininet_tests.lab.cells import Cell
from mininet_tests.papers.freemon.limits import (
    FIGURE3_S,
    LATENCIES_MS,
    LOSSES_PERCENT,
    SEGMENTS,
    SUPER_PACKETS,
    table2,
    way_of,
)
from mininet_tests.papers.freemon.result import Result, grid, results
from mininet_tests.papers.freemon.section5 import full_segments
from mininet_tests.papers.freemon.summary import contestants

SIZE, DPI = (11, 5), 110
TIMES_S = (2, 3, 5, 10, 20, 50, 100, 200, 500)
COLOURS = ("black", "tab:green", "tab:blue", "tab:orange", "tab:red")


def drawn(seen: Sequence[Cell], out: Path) -> list[str]:
    """Draw what there are cells for; return the names of the pictures."""
    mpl.use("Agg")
    found = results(seen)
    pictures = {"table2.png": _table2, "figure3.png": _figure3, "rivals.png": _rivals}
    return [name for name, draw in pictures.items() if draw(found, out / name)]


def _table2(found: dict[str, Result], file: Path) -> bool:
    """Draw medians over latency beside the paper's, for each loss model; return False if there is no cell."""
    models = {model: grid(found, "reused", model) for model in (SUPER_PACKETS, SEGMENTS)}
    if not any(models.values()):
        return False
    from matplotlib import pyplot as plt

    figure, parts = plt.subplots(1, 2, figsize=SIZE, dpi=DPI, sharey=True)
    printed = table2()
    for axes, (model, cells) in zip(parts, models.items(), strict=True):
        for loss, colour in zip(LOSSES_PERCENT, COLOURS, strict=True):
            axes.plot(LATENCIES_MS, [printed[ms, loss] for ms in LATENCIES_MS], ":", color=colour, linewidth=0.9)
            some = {ms: cells[ms, loss].median_s for ms in LATENCIES_MS if (ms, loss) in cells}
            axes.plot(some.keys(), some.values(), "o-", color=colour, markersize=3, label=f"{loss:g}%")
        axes.set(xlabel="round trip, ms", title=f"loss of {model}s; dotted: the paper", ylim=(2, None))
        axes.legend(title="loss each way", fontsize=8, frameon=False)
    parts[0].set(ylabel="median time of 268.8 MB, s")
    figure.tight_layout()
    figure.savefig(file)
    plt.close(figure)
    return True


def _figure3(found: dict[str, Result], file: Path) -> bool:
    """Draw what arrived over time, and what of it could be read; return False if there is no cell."""
    some = [one for one in found.values() if one.cell["experiment"] == "figure3"]
    if not some:
        return False
    from matplotlib import pyplot as plt

    figure, grids = plt.subplots(2, len(some), figsize=(SIZE[0], 6), dpi=DPI, squeeze=False, sharex=True, sharey="row")
    for (rates, sums), one in zip(zip(*grids, strict=True), some, strict=True):
        (run,), paper_s, bin_s = one.cell["runs_seen"], FIGURE3_S[one.cell["connection"]], one.cell["bin_ms"] / 1000
        way, edges_s = way_of(one.cell), [number * bin_s for number in range(len(run["segments"]) + 1)]
        mbps = [count / full_segments(one.cell) * way.rate_bps / 1e6 for count in run["segments"]]
        rates.stairs(mbps, edges_s, color="tab:blue", label="on the wire")
        rates.plot(run["losses_s"], [1060] * len(run["losses_s"]), "x", color="tab:red", ms=5, label="a packet is lost")
        rates.set(title=f"{one.cell['connection']}: {one.median_s:.3f} s (paper {paper_s:.2f} s)", ylim=(0, 1120))
        arrived = [sum(run["segments"][:number]) * way.framing.mss_bytes / 1e6 for number in range(len(edges_s))]
        readable = [0.0, *(count / 1e6 for count in run["readable_bytes"])]
        sums.plot(edges_s, arrived, color="tab:blue", linewidth=0.9, label="arrived")
        sums.plot(edges_s, readable, color="tab:green", linewidth=0.9, label="could be read: in order")
        sums.set(xlabel="s from the first write")
        for axes in (rates, sums):
            axes.axvline(one.median_s, color="black", linewidth=0.9, label="confirmed")
            axes.axvline(paper_s, color="black", linewidth=0.9, linestyle=":", label="the paper")
    grids[0][0].set(ylabel="Mbit/s")
    grids[1][0].set(ylabel="MB")
    for axes, place in ((grids[0][-1], "lower center"), (grids[1][-1], "upper left")):
        axes.legend(fontsize=8, frameon=False, loc=place)
    figure.tight_layout()
    figure.savefig(file)
    plt.close(figure)
    return True


def _rivals(found: dict[str, Result], file: Path) -> bool:
    """Draw each contestant's median, alone and beside background and database; return False if there is none."""
    alone, beside = (contestants(found, experiment) for experiment in ("rivals", "load"))
    names = sorted(alone | beside, key=lambda n: (alone.get(n) or beside[n]).median_s, reverse=True)
    if not names:
        return False
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(SIZE[0], 1.5 + 0.22 * len(names)), dpi=DPI)
    for some, height, colour, label in (
        (alone, 0.15, "tab:blue", "alone"),
        (beside, -0.15, "tab:orange", "background and database run"),
    ):
        rows = [(row + height, some[name]) for row, name in enumerate(names) if name in some]
        if rows:
            heights, ones = zip(*rows, strict=True)
            medians = [one.median_s for one in ones]
            least = [one.median_s - min(one.times_s) for one in ones]
            most = [max(one.times_s) - one.median_s for one in ones]
            axes.errorbar(medians, heights, xerr=(least, most), fmt="o", ms=4, lw=0.8, color=colour, label=label)
    (limit_s,) = {one.limit_s for one in (alone | beside).values()}
    axes.axvline(limit_s, linestyle=":", color="black", linewidth=0.9, label="the limit of the line")
    axes.set_yticks(range(len(names)), names, fontsize=8)
    for text in axes.get_yticklabels():
        text.set_fontweight("bold" if text.get_text().startswith("headway") else "normal")
    axes.set(xscale="log", ylim=(-0.7, len(names) - 0.3), xlabel="268.8 MB, s (logarithmic): median, least and most")
    axes.set_xticks(TIMES_S, [f"{s}" for s in TIMES_S])
    axes.minorticks_off()
    axes.grid(axis="x", linewidth=0.3)
    axes.legend(fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(file)
    plt.close(figure)
    return True
