"""What arrived of a file and of others, held and not; and what every contestant left for others."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

from mininet_tests.lab.cells import Cell
from mininet_tests.papers.eckart.cells import OURS
from mininet_tests.papers.eckart.results import transferred

BIN_S = 0.25


def drawn(seen: Sequence[Cell], path: Path) -> None:
    """Draw the largest file of both of ours, and beside them a bar for each contestant of each size."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    transfers = [one for one in seen if one["experiment"] == "transfer" and "failed" not in one]
    courses = [
        max(of, key=lambda one: one["size_bytes"])
        for who in OURS
        if (of := [one for one in transfers if one["who"] == who])
    ]
    figure, grid = plt.subplots(1, len(courses) + 1, figsize=(5 * len(courses) + 4, 4), dpi=110, squeeze=False)
    *left, right = grid[0]
    for axes, one in zip(left, courses, strict=True):
        title = f"{one['who']}, {one['size_bytes'] / 1e6:g} MB"
        axes.set(title=title, xlabel="s since it began", ylabel="payload received, Mbit/s", ylim=(0, 1000))
        for column, (label, colour) in enumerate((("the file", "tab:red"), ("background", "tab:blue")), start=1):
            rates = _rates(one["arrived"], column)
            axes.plot([at for at, _ in rates], [mbps for _, mbps in rates], color=colour, label=label)
        axes.legend(fontsize=8, frameon=False)
    rows = [transferred(one) for one in transfers]
    names = sorted({row["who"] for row in rows})
    for name in names:
        of = sorted((row for row in rows if row["who"] == name), key=lambda row: row["size_mb"])
        right.plot([r["size_mb"] for r in of], [100 * r["background_of_the_rest"] for r in of], "o-", label=name)
    right.set(title="what others got of the rest", xlabel="file, MB", ylabel="%", ylim=(0, 105))
    right.legend(fontsize=7, frameon=False)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def _rates(arrived: Sequence[Sequence[float]], column: int) -> list[tuple[float, float]]:
    """Return a rate, Mbit/s, for each stretch of what was counted."""
    found, before = [], arrived[0]
    for row in arrived[1:]:
        if row[0] - before[0] >= BIN_S:
            found.append(((row[0] + before[0]) / 2, (row[column] - before[column]) * 8e-6 / (row[0] - before[0])))
            before = row
    return found
