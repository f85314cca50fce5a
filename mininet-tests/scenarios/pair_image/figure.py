"""The image whose leader dies beside an undisturbed one, as a picture and a table."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from rich.console import Console
from rich.table import Table

from mininet_tests.probes.figures import HOST_COLOURS, folder_drawn
from mininet_tests.probes.series import Series, rates_bps

BIN_US, BEFORE_US, AFTER_US = 50_000, 500_000, 1_000_000


def printed(report: dict[str, Any]) -> None:
    """Print the images, one a row."""
    table = Table(title=f"{report['bytes'] / 1e6:.0f} MB; another leads after {report['led_after_s']:.2f} s")
    for column in ("image", "s", "dropped", "sent again"):
        table.add_column(column, justify="right" if column != "image" else "left")
    for one in report["images"]:
        values = f"{one['seconds']:.3f}", str(one["drops"]), str(one["retransmitted_segments"])
        table.add_row(one["name"], *values)
    Console(highlight=False).print(table)


def drawn(run: dict[str, Any], report: dict[str, Any], path: Path) -> None:
    """Draw what arrives of each host, of the first image and of the last."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    at_us = [t for t, _ in run["received"]]
    received = Series(at_us, {name: [counts[name] for _, counts in run["received"]] for name in run["senders"]})
    figure, rows = plt.subplots(2, 1, figsize=(9, 5.6), dpi=110, sharex=True, sharey=True)
    for axes, n in zip(rows, (0, -1), strict=True):
        marks, found = run["images"][n]["marks"], report["images"][n]
        span = marks["begun_us"] - BEFORE_US, marks["confirmed_us"] + AFTER_US
        for name, values in received.hosts.items():
            rates = rates_bps(received.at_us, values, span, BIN_US)
            at_s = [(i * BIN_US - BEFORE_US) / 1e6 for i in range(len(rates))]
            axes.step(at_s, [rate / 1e6 for rate in rates], HOST_COLOURS[name], where="post", label=name, linewidth=1)
        axes.set_title(f"{found['name']}: {found['seconds']:.3f} s", fontsize=9)
        axes.set_ylabel("Mbit/s")
        for mark, style, label in (("killed_us", "-", "killed"), ("led_us", "--", "another leads")):
            if mark in marks:
                at_s = (marks[mark] - marks["begun_us"]) / 1e6
                axes.axvline(at_s, color="black", linestyle=style, linewidth=0.8, label=label)
    rows[-1].set_xlabel("s since the image was promised")
    rows[-1].legend(fontsize=8, frameon=False, ncol=6, loc="upper center", bbox_to_anchor=(0.5, -0.25))
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


if __name__ == "__main__":
    folder_drawn("pair-image", drawn, printed)
