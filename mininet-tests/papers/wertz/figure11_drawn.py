"""The paper's figure 11 as measured, beside the model: a picture and a table of what a run has left."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from rich.console import Console
from rich.table import Table

from mininet_tests.papers.wertz.figure11 import FIGURES
from mininet_tests.probes.figures import folder_drawn

WAYS = {FIGURES[True]: ("in lock step", "tab:blue"), FIGURES[False]: ("without", "tab:orange")}


def printed(report: dict[str, Any]) -> None:
    """Print each transfer, one a row."""
    table = Table(title="4 GB by a striped mover over four lanes, MB/s")
    for column in ("streams", "", "measured", "model"):
        table.add_column(column, justify="left" if not column else "right")
    for name, (way, _) in WAYS.items():
        for row in report[name]:
            table.add_row(str(row["streams"]), way, f"{row['mb_per_s']:.1f}", f"{row['model_mb_per_s']:.1f}")
    Console(highlight=False).print(table)


def drawn(_: dict[str, Any], report: dict[str, Any], path: Path) -> None:
    """Draw the rates over the stripe width."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 3.4), dpi=110)
    axes.set_xscale("log", base=2)
    for name, (way, colour) in WAYS.items():
        rows = report[name]
        widths = [row["streams"] for row in rows]
        axes.plot(widths, [row["model_mb_per_s"] for row in rows], color=colour, linewidth=1, label=f"model, {way}")
        measured = [row["mb_per_s"] for row in rows]
        axes.plot(widths, measured, "o", color=colour, markersize=5, label=f"measured, {way}")
        axes.set_xticks(widths)
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set_xlabel("streams")
    axes.set_ylabel("MB/s")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8, loc="lower right")
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def main() -> None:
    """Draw and print what a folder has."""
    folder_drawn("figure11", drawn, printed)


if __name__ == "__main__":
    main()
