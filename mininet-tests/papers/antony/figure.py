"""What was measured about bursts, as pictures."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

SIZE, DPI = (11, 5.8), 110
COLOURS = {
    "whole window": "tab:red",
    "slow start": "tab:orange",
    "headway": "tab:blue",
    "headway, warm": "tab:green",
}
LABELS = {
    "whole window": "unpaced, the whole window at once",
    "slow start": "unpaced, slow start",
    "headway": "Headway, new connections",
    "headway, warm": "Headway, warm connections",
}


def freemon(report: dict[str, Any], path: Path) -> None:
    """Draw the smallest buffer without loss over the number of senders, with the formula."""
    figure, axes = _axes()
    window_mb = report["window_bytes"] / 1e6
    counts = [n / 10 for n in range(10, 400)]
    axes.plot(
        counts, [window_mb * (1 - 1 / n) for n in counts], color="black", linewidth=0.8, label="W (1 - s / (N f))"
    )
    axes.axhline(window_mb, color="black", linewidth=0.8, linestyle=":", label=f"W = {window_mb:g} MB")
    for sender, colour in COLOURS.items():
        some = [one for one in report["points"] if one["sender"] == sender and one.get("smallest_bytes")]
        if some:
            xy = [one["senders"] for one in some], [one["smallest_bytes"] / 1e6 for one in some]
            axes.plot(*xy, "o", color=colour, label=LABELS[sender])
    for senders, printed in report["printed_mb"].items():
        axes.annotate(f" {printed} MB", (int(senders), printed), fontsize=8, color="grey")
    axes.set(xscale="log", yscale="log", xlabel="senders", ylabel="smallest buffer without loss, MB")
    axes.set_title("Freemon 2013, V.A: what a port of 1 Gbit/s needs when senders of 1 Gbit/s start at once")
    saved(figure, [axes], path)


def antony_fig2(report: dict[str, Any], path: Path) -> None:
    """Draw arrival times over packet numbers, the lost ones at zero, as Antony's figure 2."""
    figure, axes = _axes()
    times = [0 if at_ns is None else at_ns / 1e3 for at_ns in report["at_receiver_ns"]]
    first_us = min(at_us for at_us in times if at_us)
    axes.vlines(range(len(times)), 0, [max(0, at_us - first_us) for at_us in times], color="tab:blue", linewidth=0.2)
    passing = report["predicted"]["passing"]
    axes.axvline(passing, color="black", linewidth=0.8, linestyle=":", label=f"eq. (1): first loss after {passing}")
    measured = report["measured"]
    axes.set(xlabel="packet number", ylabel="arrival, microseconds after the first; lost: none", ylim=(0, None))
    axes.set_title(
        f"Antony 2003, figure 2: first loss after {measured['passing']} packets, then one in "
        f"{1 / measured['share_lost_after_first']:.2f}; {measured['lost']} lost, eq. (1): {report['predicted']['lost']}"
    )
    saved(figure, [axes], path)


def antony_fig4(report: dict[str, Any], path: Path) -> None:
    """Draw the forbidden area, and where something was lost, by sender: one picture beside the other."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, parts = plt.subplots(1, 3, figsize=SIZE, dpi=DPI, sharey=True)
    rtts_ms = [one["rtt_ms"] for one in report["curve"]]
    low, high = ([one[key] / 1e6 for one in report["curve"]] for key in ("low_bps", "high_bps"))
    for axes, sender in zip(parts, ("whole window", "slow start", "headway"), strict=True):
        axes.fill_between(rtts_ms, low, high, color="black", alpha=0.1, linewidth=0, label="eq. (3): forbidden")
        if sender == "slow start":
            doubled = [2 * report["buffer_bytes"] * 8 / ms / 1e3 for ms in rtts_ms]
            axes.plot(rtts_ms, [min(mbps, 500) for mbps in doubled], color="black", linewidth=0.8, label="2 M / R")
        for lost, marker, name in ((True, "x", "lost"), (False, "o", "nothing lost")):
            some = [p for p in report["points"] if p["sender"] == sender and bool(p["dropped"]) is lost]
            xy = [p["rtt_ms"] for p in some], [p["port_bps"] / 1e6 for p in some]
            axes.plot(*xy, marker, color=COLOURS[sender], fillstyle="none", label=name)
        axes.set(xlabel="round trip, ms", xlim=(0, 220), ylim=(0, 1000), title=LABELS[sender])
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), fontsize=8, frameon=False)
    parts[0].set(ylabel="port, Mbit/s")
    figure.suptitle("Antony 2003, figure 4: interface 1 Gbit/s, buffer 0.5 MB")
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def _axes() -> tuple[Any, Any]:
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    return plt.subplots(figsize=SIZE, dpi=DPI)


def saved(figure: Any, several: list[Any], path: Path) -> None:
    """Write a picture of some axes, each with its legend below, and forget it."""
    from matplotlib import pyplot as plt

    for axes in several:
        if axes.get_legend_handles_labels()[1]:
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncol=3, fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


DRAWN: dict[str, Callable[[dict[str, Any], Path], None]] = {
    "freemon": freemon,
    "antony_fig2": antony_fig2,
    "antony_fig4": antony_fig4,
}
