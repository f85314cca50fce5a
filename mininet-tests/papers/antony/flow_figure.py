"""What was measured of flows, as pictures of Antony's figures 5, 8, 9, 11 with 12, and 13."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

from mininet_tests.papers.antony.figure import saved
from mininet_tests.papers.antony.flow_points import EVENT

mpl.use("Agg")
from matplotlib import pyplot as plt

DPI = 110
COLOURS = {"reno": "tab:red", "highspeed": "tab:pink", "cubic": "tab:orange", "headway": "tab:blue"}
DASHED = "short queue"


def fig5(report: dict[str, Any], path: Path) -> None:
    """Draw the time sequence graph: segments as they come to the port."""
    figure, axes = plt.subplots(figsize=(11, 5.8), dpi=DPI)
    for one in report["points"]:
        ms, mb = zip(*[(at_ms, number / 1e6) for at_ms, number in one["at_port"]], strict=True)
        axes.plot(ms, mb, ",", color=COLOURS[one["sender"]])
        axes.plot([], [], "s", color=COLOURS[one["sender"]], label=f"{one['sender']}: {one['dropped_at_port']} lost")
    first_ms = next(one["first_lost_ms"] for one in report["points"] if one["sender"] == "reno")
    if first_ms is not None:
        axes.axvline(first_ms, color="black", linewidth=0.8, linestyle=":", label=f"first loss, {first_ms:.0f} ms")
    slow_mb = max(number for one in report["points"] if one["sender"] == "reno" for _, number in one["at_port"]) / 1e6
    axes.set(xlabel="ms after the first segment", ylabel="sequence number, MB", xlim=(0, None), ylim=(0, 1.2 * slow_mb))
    axes.set_title("Antony 2003, figure 5: slow start into a port of 622 Mbit/s with 0.5 MB, 96 ms")
    saved(figure, [axes], path)


def fig8(report: dict[str, Any], path: Path) -> None:
    """Draw throughput, and what the host's own queue dropped, over the queue's length."""
    figure, (above, below) = plt.subplots(2, 1, figsize=(11, 6.4), dpi=DPI, sharex=True)
    for sender in dict.fromkeys(one["sender"] for one in report["points"]):
        some = [one for one in report["points"] if one["sender"] == sender]
        queues = [one["queue_packets"] for one in some]
        above.plot(queues, [one["mean_mbps"] for one in some], "o-", color=COLOURS[sender], label=sender)
        below.plot(queues, [one["dropped_in_host"] for one in some], "o-", color=COLOURS[sender])
    above.axhline(report["planned_mbps"], color="black", linewidth=0.8, linestyle=":", label="the line")
    above.set(ylabel="Mbit/s in the first 5 s", ylim=(0, None))
    below.set(xscale="log", yscale="symlog", xlabel="the host's queue, packets", ylabel="dropped in the host")
    above.set_title("Antony 2003, figure 8: the length of the sending interface's queue")
    saved(figure, [above, below], path)


def fig9(report: dict[str, Any], path: Path) -> None:
    """Draw the rate over time around the event, by case."""
    figure, axes = plt.subplots(figsize=(11, 5.8), dpi=DPI)
    for one in report["points"]:
        _over_time(axes, one, one["case"], "--" if DASHED in one["case"] else "-")
    at_s, for_s, bps = EVENT
    axes.axvspan(at_s, at_s + for_s, color="black", alpha=0.12, label=f"{bps / 1e6:g} Mbit/s of UDP to the receiver")
    axes.set(xlabel="s", ylabel="payload, Mbit/s", xlim=(0, None), ylim=(0, None))
    axes.set_title("Antony 2003, figure 9: an event, and how flows recover")
    saved(figure, [axes], path)


def fig11(report: dict[str, Any], path: Path) -> None:
    """Draw throughput over the delay before each packet (figure 11), and over the sockets' size (figure 12)."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5.8), dpi=DPI, sharey=True)
    some = [one for one in report["points"] if one["sender"] != "headway"]
    (held,) = (one for one in report["points"] if one["sender"] == "headway")
    for axes, over, by in ((left, "delay_us", "socket_mb"), (right, "socket_mb", "delay_us")):
        for value in sorted({one[by] for one in some}):
            line = sorted((one[over], one["mean_mbps"]) for one in some if one[by] == value)
            unit = "MB" if by == "socket_mb" else "\N{GREEK SMALL LETTER MU}s"
            axes.plot(*zip(*line, strict=True), "o-", linewidth=1, label=f"reno, {value} {unit}")
        axes.axhline(held["mean_mbps"], color="black", label="headway: nothing to tune")
    left.set(
        xlabel="delay before each packet, \N{GREEK SMALL LETTER MU}s", ylabel="Mbit/s in the first 5 s", ylim=(0, None)
    )
    right.set(xlabel="socket buffers, MB")
    left.set_title("Antony 2003, figure 11")
    right.set_title("figure 12")
    saved(figure, [left, right], path)


def fig13(report: dict[str, Any], path: Path) -> None:
    """Draw the means of two seconds of long flows."""
    figure, axes = plt.subplots(figsize=(11, 5.8), dpi=DPI)
    for one in report["points"]:
        _over_time(axes, one, f"{one['sender']}: {one['mean_mbps']:.0f} Mbit/s in all")
    axes.axhline(report["planned_mbps"], color="black", linewidth=0.8, linestyle=":", label="the plan")
    axes.set(xlabel="s", ylabel="payload, Mbit/s, means of 2 s", xlim=(0, None), ylim=(0, None))
    axes.set_title("Antony 2003, figure 13: a long flow beside 35 Mbit/s of others")
    saved(figure, [axes], path)


def _over_time(axes: Any, one: dict[str, Any], label: str, style: str = "-") -> None:
    """Draw the rate of a flow in each interval at its middle."""
    times_s = [(number + 0.5) * one["every_s"] for number in range(len(one["rates_mbps"]))]
    axes.plot(times_s, one["rates_mbps"], style, color=COLOURS[one["sender"]], linewidth=1.2, label=label)


DRAWN: dict[str, Callable[[dict[str, Any], Path], None]] = {
    "antony_fig5": fig5,
    "antony_fig8": fig8,
    "antony_fig9": fig9,
    "antony_fig11": fig11,
    "antony_fig13": fig13,
}
