"""What arrives around the deaths of a circuit, as a picture and a table, from ``failover.json`` and ``report.json``."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from rich.console import Console
from rich.table import Table

from mininet_tests.probes.figures import HOST_COLOURS, folder_drawn
from mininet_tests.probes.series import rates_bps

CLASSES = {"base20": "urgent", "base22": "predictable", "base23": "background"}
TITLES = {
    "both": "both ends lose their carrier",
    "near": "the senders' end alone",
    "far": "the receiver's end alone",
    "held": "both ends, the database hangs",
}
BIN_US = 20_000
SPAN_US = -200_000, 1_000_000


def printed(report: dict[str, Any]) -> None:
    """Print when each class was back, one case a row."""
    table = Table(title="ms from the death of the circuit until a class is at its new plan")
    for column in ("case", *CLASSES.values(), "aim"):
        table.add_column(column, justify="left" if column == "case" else "right")
    for name, one in report["cases"].items():
        back = [one["back_at_plan_ms"][host] for host in CLASSES]
        shown = ["never" if ms is None else f"{ms:.0f}" for ms in back]
        table.add_row(TITLES[name], *shown, f"{one['allowed_ms']:.0f}")
    Console(highlight=False).print(table)


def drawn(seen: dict[str, Any], report: dict[str, Any], path: Path) -> None:
    """Draw what arrives of each class around each death, and what its new plan is."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, grid = plt.subplots(1, len(seen["cases"]), figsize=(13, 3.6), dpi=110, sharey=True, squeeze=False)
    for axes, (name, one) in zip(grid[0], seen["cases"].items(), strict=True):
        planned = report["cases"][name]["planned_payload_bps"]
        for host, flow_class in CLASSES.items():
            _draw(axes, seen["received"], one["died_us"], (host, flow_class))
            axes.axhline(planned[host] / 1e6, color=HOST_COLOURS[host], linewidth=0.8, linestyle=":")
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_title(TITLES[name], fontsize=9)
        axes.set_xlabel("ms since the circuit died; dotted: the new plan")
    grid[0, 0].set_ylabel("payload received, Mbit/s")
    grid[0, -1].legend(fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def _draw(axes: Any, received: Any, died_us: int, flow: tuple[str, str]) -> None:
    host, flow_class = flow
    times_us, counts = [at_us for at_us, _ in received], [got[host] for _, got in received]
    from_us, until_us = SPAN_US
    rates = rates_bps(times_us, counts, (died_us + from_us, died_us + until_us), BIN_US)
    at_ms = [(from_us + (i + 0.5) * BIN_US) / 1000 for i in range(len(rates))]
    axes.plot(at_ms, [r / 1e6 for r in rates], color=HOST_COLOURS[host], label=flow_class, linewidth=1)


def main() -> None:
    """Draw and print what a folder has."""
    folder_drawn("failover", drawn, printed)


if __name__ == "__main__":
    main()
