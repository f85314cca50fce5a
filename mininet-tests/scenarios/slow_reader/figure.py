"""What arrived of the image and of the background, held and not, one above the other."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from rich.console import Console
from rich.table import Table

from mininet_tests.probes.figures import folder_drawn
from mininet_tests.probes.series import rates_bps
from mininet_tests.scenarios.slow_reader.report import arrived
from mininet_tests.site.lsst import BACKGROUND, IMAGE_HOSTS

BIN_US = 250_000
COLOURS = {IMAGE_HOSTS[0]: ("tab:red", "the image"), BACKGROUND: ("tab:blue", "background")}


def printed(report: dict[str, Any]) -> None:
    """Print the variants, one a row."""
    table = Table(title=f"an image whose receiver reads {report['reads_bps'] / 1e6:g} Mbit/s")
    for column in ("", "across, s", "read, s", "background, MB", "held after, s"):
        table.add_column(column, justify="right" if column else "left")
    for name, one in report["variants"].items():
        after_s = one["held_after_full_s"]
        shown = [f"{one['confirmed_s']:.2f}", f"{one['read_s']:.2f}", f"{one['background_bytes'] / 1e6:.0f}"]
        table.add_row(name, *shown, "-" if after_s is None else f"{after_s:.2f}")
    Console(highlight=False).print(table)


def drawn(seen: dict[str, Any], report: dict[str, Any], path: Path) -> None:
    """Draw both variants."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, grid = plt.subplots(1, len(seen["variants"]), figsize=(12, 4), dpi=110, sharey=True)
    for axes, (name, one) in zip(grid, seen["variants"].items(), strict=True):
        received, began_us = arrived(one), one["marks"]["announced_us"]
        span = began_us - 1_000_000, one["marks"]["read_us"]
        for host, (colour, label) in COLOURS.items():
            rates = rates_bps(received.at_us, received.hosts[host], span, BIN_US)
            at_s = [(span[0] - began_us + (n + 0.5) * BIN_US) / 1e6 for n in range(len(rates))]
            axes.plot(at_s, [bps / 1e6 for bps in rates], color=colour, label=label)
        axes.axhline(report["reads_bps"] / 1e6, color="black", linewidth=0.8, linestyle=":", label="what is read")
        axes.set(title=name, xlabel="s since it was announced", ylim=(0, None))
    grid[0].set_ylabel("payload received, Mbit/s")
    grid[-1].legend(fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def main() -> None:
    """Draw and print what a folder has."""
    folder_drawn("slow-reader", drawn, printed)


if __name__ == "__main__":
    main()
