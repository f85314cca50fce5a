"""The paper's figure 2, and how its algorithm starves, as one picture."""

from pathlib import Path
from typing import Any

import matplotlib as mpl

LEVELS = (200, 400, 600, 800, 1000, 1500, 2000, 4000)


def drawn(report: dict[str, Any], path: Path) -> None:
    """Draw both, side by side."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), dpi=110)
    two = report["figure_2"]
    lines = left.contour(two["disks_mbps"], two["memories_mb"], two["rates_mbps"], levels=LEVELS, cmap="viridis")
    left.clabel(lines, fmt="%d Mbit/s", fontsize=8)
    left.set(xlabel="r(disk), Mbit/s", ylabel="m, MB", title="Figure 2: eq. (4) for a file of 3 GB")
    for (size, rules), style in zip(report["starvation"].items(), ("-", "--"), strict=True):
        for (name, one), colour in zip(rules.items(), ("tab:red", "tab:blue"), strict=True):
            right.plot(one["rates_mbps"], style, color=colour, label=f"{name}, {size}")
    right.axhline(278, color="black", linewidth=0.8, linestyle=":", label="r(disk)")
    right.set(
        xlabel="epochs", ylabel="rate that is set, Mbit/s", ylim=(0, 400), title="A sender that begins at 50 Mbit/s"
    )
    right.legend(fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
