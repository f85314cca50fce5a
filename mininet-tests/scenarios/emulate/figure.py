"""What was planned and what was delivered in an emulated play, as a picture and a table, from ``report.json``."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from rich.console import Console
from rich.table import Table

BIN_S = 0.2
MARKERS = "osv^D*xP"


def printed(report: dict[str, Any]) -> None:
    """Print what was planned and delivered, one transfer a row."""
    table = Table(title="payload, Mbit/s, while the plan did not change; times in seconds")
    for column in ("transfer", "planned", "delivered", "share", "took", "promised"):
        table.add_column(column, justify="left" if column == "transfer" else "right")
    for name, one in report["transfers"].items():
        share = one["delivered_share"]
        rates = [one[f"{what}_payload_bps"] for what in ("planned", "delivered")]
        table.add_row(
            f"{name}  {one['from']} -> {one['to']}",
            *("-" if bps is None else f"{bps / 1e6:.2f}" for bps in rates),
            "-" if share is None else f"{share:.2%}",
            f"{one['took_s']:.2f}",
            "-" if one["promised_s"] is None else f"{one['promised_s']:.2f}",
        )
    Console(highlight=False).print(table)


def drawn(report: dict[str, Any], path: Path) -> None:
    """Draw what arrived of each transfer, and dotted what was planned for it."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 4.5), dpi=110)
    for number, (name, samples) in enumerate(report["received"].items()):
        times_s, rates_bps = rates(samples)
        marker = MARKERS[number % len(MARKERS)]
        (line,) = axes.plot(
            times_s, [bps / 1e6 for bps in rates_bps], label=name, linewidth=1.2, marker=marker, markevery=0.1
        )
        planned = [(at_s, bps.get(name)) for at_s, bps in report["plans"]]
        axes.step(
            [at_s for at_s, _ in planned],
            [float("nan") if bps is None else bps / 1e6 for _, bps in planned],
            where="post",
            linestyle=":",
            color=line.get_color(),
        )
    axes.set_xlabel("s since the first transfer began; dotted: planned")
    axes.set_ylabel("payload received, Mbit/s")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def rates(samples: list[list[float]]) -> tuple[list[float], list[float]]:
    """Return the middle of each bin of ``BIN_S`` and the rate in it, of (time, bytes so far)."""
    times_s, rates_bps = [], []
    begin = samples[0] if samples else None
    for at_s, count in samples:
        if begin is not None and at_s - begin[0] >= BIN_S:
            times_s.append((at_s + begin[0]) / 2)
            rates_bps.append((count - begin[1]) * 8 / (at_s - begin[0]))
            begin = [at_s, count]
    return times_s, rates_bps
