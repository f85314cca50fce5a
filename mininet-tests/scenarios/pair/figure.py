"""For how long nobody answered, and until all agents obeyed another leader: how many rounds took no longer."""

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
from rich.console import Console
from rich.table import Table

COLOURS = {
    "killed": "tab:red",
    "stopped": "tab:purple",
    "silent": "tab:brown",
    "restarted": "tab:pink",
    "cut": "tab:orange",
    "moved": "tab:blue",
    "database": "tab:gray",
    "upgraded": "tab:green",
    "both": "black",
    "restored": "tab:olive",
}
LABELS = {
    "killed": "the leader is killed",
    "stopped": "the leader stands still",
    "silent": "its machine is silent",
    "restarted": "it is killed, ovs-vswitchd just started anew",
    "cut": "its sessions at the database are cut",
    "moved": "headway leader move",
    "database": "the database's machine was silent, and is back",
    "upgraded": "both are upgraded in turn",
    "both": "both are down, and PostgreSQL; from when it is back",
    "restored": "both are down; from when a backup is restored",
}
WHAT = {"unanswered_s": "s until a request is answered", "obeyed_s": "s until all agents obey another leader"}

WITHOUT_ANOTHER = {"cut", "database", "upgraded", "both", "restored"}
"""Ways in which most often the same goes on leading, or another one twice, or nobody for a while."""


def printed(report: dict[str, Any]) -> None:
    """Print the times, a way of losing the leader a row."""
    table = Table(title=f"{len(report['rounds'])} times another leader")
    for column in ("", "rounds", "median, s", "99 of 100, s", "worst, s"):
        table.add_column(column, justify="right" if column else "left")
    for kind, one in report["times"].items():
        if not one["rounds"]:
            continue
        table.add_row(
            LABELS[kind], str(one["rounds"]), *(f"{one[key]:.2f}" for key in ("median_s", "p99_s", "worst_s"))
        )
    Console(highlight=False).print(table)


def drawn(report: dict[str, Any], path: Path) -> None:
    """Draw how many rounds of each way took no longer than so long."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, grid = plt.subplots(1, len(WHAT), figsize=(11, 4.4), dpi=110, sharey=True)
    for axes, (key, label) in zip(grid, WHAT.items(), strict=True):
        for kind, colour in COLOURS.items():
            if kind not in report["kinds"]:
                continue
            values = sorted(one[key] for one in report["rounds"] if one["kind"] == kind)
            if key == "obeyed_s" and kind in WITHOUT_ANOTHER:
                continue
            shares = [100 * (n + 1) / len(values) for n in range(len(values))]
            axes.step(values, shares, where="post", color=colour, label=LABELS[kind])
        axes.axvline(1, color="black", linewidth=0.8, linestyle=":")
        axes.set(xlabel=label, xlim=(0, None), ylim=(0, 101))
    grid[0].set_ylabel("of 100 rounds")
    figure.legend(*grid[0].get_legend_handles_labels(), fontsize=8, frameon=False, loc="lower center", ncol=4)
    figure.tight_layout(rect=(0, 0.12, 1, 1))
    figure.savefig(path)
    plt.close(figure)


def main() -> None:
    """Draw and print what a folder has."""
    parser = argparse.ArgumentParser(description="Draw and print a run of pair.")
    parser.add_argument("folder", type=Path, help="where report.json is")
    folder = parser.parse_args().folder
    report = json.loads((folder / "report.json").read_text())
    drawn(report, folder / "pair.png")
    printed(report)


if __name__ == "__main__":
    main()
