"""The two variants of the hand-over as a picture and as a table, from ``handover.json`` and ``report.json``."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from rich.console import Console
from rich.table import Table

from mininet_tests.probes.figures import HOST_COLOURS, folder_drawn
from mininet_tests.probes.series import Series, rates_bps
from mininet_tests.scenarios.handover.report import BIN_US, changes, series


def printed(report: dict[str, Any]) -> None:
    """Print the variants, one a row."""
    table = Table(title=f"the circuit below {report['gap_below']:.0%} of its payload limit at a change of hands")
    for column in ("connection", "start", "end", "image", "dropped"):
        table.add_column(column, justify="left" if column == "connection" else "right")
    for one in report["variants"]:
        gaps = (f"{one['start_gap_ms']:.0f} ms", f"{one['end_gap_ms']:.0f} ms", f"{one['seconds']:.3f} s")
        table.add_row(one["connection"], *gaps, str(one["drops"]))
    Console(highlight=False).print(table)


def drawn(run: dict[str, Any], report: dict[str, Any], path: Path) -> None:
    """Draw what arrives around both changes of each variant: a row for each, the start left, the end right."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    images, received = run["images"], series(run)
    figure, grid = plt.subplots(len(images), 2, figsize=(11, 2.6 * len(images)), dpi=110, sharey=True)
    for row, image, found in zip(grid, images, report["variants"], strict=True):
        for axes, (name, span) in zip(row, changes(image["marks"]).items(), strict=True):
            _draw(axes, received, span, report["payload_limit_bps"])
            gap = f"{name}: {found[f'{name}_gap_ms']:.0f} ms below {report['gap_below']:.0%}"
            axes.set_title(f"{found['connection']} connection; {gap}", fontsize=8)
    for axes in grid[-1]:
        axes.set_xlabel("seconds")
    grid[-1][0].legend(loc="upper center", bbox_to_anchor=(1.0, -0.25), ncol=5, fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def _draw(axes: Any, received: Series, span: tuple[int, int], limit_bps: int) -> None:
    for name, values in (*received.hosts.items(), ("all", received.total())):
        rates = rates_bps(received.at_us, values, span, BIN_US)
        at_s = [(i + 0.5) * BIN_US / 1e6 for i in range(len(rates))]
        axes.plot(at_s, [r / 1e6 for r in rates], color=HOST_COLOURS.get(name, "black"), label=name, linewidth=1)
    axes.axhline(limit_bps / 1e6, color="black", linewidth=0.8, linestyle=":")
    axes.set_ylabel("Mbit/s", fontsize=8)


def main() -> None:
    """Draw and print what a folder has."""
    report = folder_drawn("handover", drawn, printed)
    if not report["valid"]:
        raise SystemExit("handover: the CPU was full; these figures say nothing: give --dilation 3 or more")


if __name__ == "__main__":
    main()
