"""What work costs by size as one picture, log-log: after a change, and before it where that was measured."""

from pathlib import Path
from typing import Any

import matplotlib as mpl

COLUMNS, PANEL_IN = 4, (3.4, 2.7)


def drawn(report: dict[str, Any], path: Path) -> None:
    """Draw each row of a report, and its aims."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    rows, before = report["rows"], (report.get("before") or {}).get("rows", {})
    lines = -(-len(rows) // COLUMNS)
    size_in = COLUMNS * PANEL_IN[0], lines * PANEL_IN[1]
    figure, panels = plt.subplots(lines, COLUMNS, figsize=size_in, dpi=110, squeeze=False)
    for panel, (what, row) in zip(panels.flat, rows.items(), strict=False):
        if what in before:
            panel.loglog(*zip(*before[what]["cpu_ms"], strict=True), "o--", color="tab:gray", label="before")
        panel.loglog(*zip(*row["cpu_ms"], strict=True), "o-", color="tab:blue", label="after")
        for size, most_ms in row["aims_ms"]:
            panel.plot(size, most_ms, "v", color="tab:red", label="aim")
        panel.set_title(f"{what}\nexponent {row['exponent']:g}", fontsize=8)
        panel.set_xlabel(row["counted"], fontsize=8)
        panel.set_ylabel("CPU ms", fontsize=8)
        panel.tick_params(labelsize=7)
        panel.legend(fontsize=7, frameon=False)
    for panel in panels.flat[len(rows) :]:
        panel.set_axis_off()
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
