"""What was measured for the paper, as pictures: Table 2 over latency, as Freemon's figure 4, and all contestants."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

from mininet_tests.lab.cells import Cell
from mininet_tests.papers.freemon.limits import LATENCIES_MS, LOSSES_PERCENT, SEGMENTS, SUPER_PACKETS, table2
from mininet_tests.papers.freemon.summary import Result, contestants, grid, results

SIZE, DPI = (11, 5), 110
TIMES_S = (2, 3, 5, 10, 20, 50, 100, 200, 500)
COLOURS = ("black", "tab:green", "tab:blue", "tab:orange", "tab:red")


def drawn(seen: Sequence[Cell], out: Path) -> list[str]:
    """Draw what there are cells for; return the names of the pictures."""
    mpl.use("Agg")
    found = results(seen)
    pictures = {"table2.png": _table2, "rivals.png": _rivals}
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
