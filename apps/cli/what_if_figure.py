"""The use of circuits over time as a picture: a row for each direction, a line for each variant."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from apps.cli.what_if_work import VariantResult

US = 1_000_000


def drawn(results: Sequence[VariantResult], path: Path) -> None:
    """Draw what each circuit carries, in the mean of all runs of each variant; what nothing ever crosses is left out.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
        ValueError: the file's ending is none of a picture.
        OSError: it cannot be written.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    uses = [result.use for result in results]
    names = list(dict.fromkeys(name for use in uses for name, slices in use.bit_us.items() if any(slices)))
    rows = max(1, len(names))
    figure, grid = plt.subplots(rows, 1, figsize=(11, 1 + 2 * rows), dpi=110, sharex=True, squeeze=False)
    for axes, name in zip(grid[:, 0], names, strict=False):
        there = [(result, use) for result, use in zip(results, uses, strict=True) if name in use.bit_us]
        for result, use in there:
            starts = [datetime.fromtimestamp((use.from_us + k * use.slice_us) / US, UTC) for k in range(240)]
            rates = [bit_us / use.slice_us / 1e6 for bit_us in use.bit_us[name]]
            axes.step(starts, rates, where="post", linewidth=1, label=result.variant.name)
        axes.set_ylabel("Mbit/s on the wire", fontsize=8)
        axes.set_title(name, fontsize=9)
        axes.set_ylim(bottom=0)
    grid[-1, 0].legend(loc="upper center", bbox_to_anchor=(0.5, -0.3), ncol=3, fontsize=8, frameon=False)
    figure.autofmt_xdate()
    figure.tight_layout()
    try:
        figure.savefig(path)
    finally:
        plt.close(figure)
