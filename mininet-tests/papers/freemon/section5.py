"""What is measured of Freemon's sections V.A and V.B, as numbers and on the page: starts, and figure 3. Pure."""

from collections.abc import Sequence
from typing import Any

from mininet_tests.lab.cells import Cell
from mininet_tests.papers.freemon.limits import BOX_S, FIGURE3_S, IMAGE_SLICE_BYTES, STARTS_BYTES, Way, way_of
from mininet_tests.papers.freemon.trace import pauses_s
from topology.wire import Layer

Table = tuple[str, list[str], list[list[str]]]  # the text before it, its head, its rows
FIGURE3_TITLE = "## Figure 3: one transfer over time, 1 Gbit/s, 180 ms, 0.01% of the packets"
STARTS_TITLE = "## Ten senders that start at once (V.A): pacing, HTB, PAUSE, and nothing"
START_NAMES = {
    "headway": "Headway: window and pacing",
    "htb": "window, and a class of HTB on the interface",
    "pause": "window, and a port that stops the interfaces",
    "window": "window only",
}

FIGURE3 = """\
The first transfer of the tables' cell, with the same losses, in bins of 10 ms. New connections are the paper's figure:
after 64 KiB there is a pause of one round trip, since the window of a SYN-ACK is not scaled. Reused ones have none. A
loss makes no pause on the wire, as the window stays and what is lost is sent again among the rest; but nothing behind
a hole can be read for a round trip, and then all of it at once. What is lost in the last round trip arrives after the
box, and that is the receiver's end. *Box* is from the first bin to the last in which anything arrived, a pause included
(the paper: {box_s:.2f} s or less, without the pause and what is sent again at the end); *pauses* have less than a tenth
of the line's rate.

![A transfer over time, on the wire and as it can be read](results/figure3.png)

"""

STARTS = """\
Each sender has an interface as fast as the port that all meet at, 1 Gbit/s, a tenth of the window (a half, if they are
two) and of 268.8 MB; nothing is lost on the line, and the limit is {limit_s} s. Held by Headway, each is paced to its
share. The others have the same window of the agent's, not paced: a class of HTB on each interface lets the share
through; or the port stops all interfaces while more than 1 MB is in its queue, until 0.5 MB are left, as PAUSE frames
do; or nothing holds them back. *Paper* is the buffer that it prints for so many servers. *Ping* is to this side of the
port, by the first sender's interface, all the time.

PAUSE is emulated by `sch_plug`, which a thread stops and starts within about a millisecond as it sees the queue. That
shows that nothing is dropped, what it costs in time, and that whatever else a sender has to say stands still with its
interface (head-of-line blocking). It does not show frames on a wire, how soon an interface obeys, how much is under way
then, nor how a stop spreads through switches to hosts that have no part in it.

"""


def full_segments(cell: Cell) -> float:
    """Return how many full segments the line brings in a bin of figure 3."""
    way, bin_ms = way_of(cell), int(cell["bin_ms"])
    return way.rate_bps / 8 * bin_ms / 1000 / way.framing.segment_bytes(Layer.WIRE)


def figure3_numbers(some: Sequence[Cell]) -> dict[str, Any] | None:
    """Return, by who connects, what figure 3 shows: when all had arrived and was confirmed, pauses and losses."""
    numbers = {}
    for cell in some:
        (run,), bin_ms = cell["runs_seen"], cell["bin_ms"]
        arriving = [number for number, count in enumerate(run["segments"]) if count]
        numbers[cell["connection"]] = {
            **{key: run[key] for key in ("s", "received_s", "losses_s", "again_segments")},
            "paper_s": FIGURE3_S[cell["connection"]],
            "width_s": (arriving[-1] + 1 - arriving[0]) * bin_ms / 1000,
            "pauses_s": pauses_s(run["segments"], bin_ms, full_segments(cell)),
        }
    return numbers or None


def starts_numbers(some: Sequence[Cell]) -> dict[str, Any] | None:
    """Return, by cell, what senders that start at once did to the port."""
    numbers = {}
    for cell in some:
        (run,) = cell["runs_seen"]
        numbers[cell["name"]] = {
            **{key: cell[key] for key in ("way", "senders", "buffer_bytes")},
            "paper_bytes": STARTS_BYTES[cell["senders"]] if cell["way"] == "window" else None,
            **{key: run[key] for key in ("s", "most_queued_bytes", "queue_dropped", "again_segments", "fallback")},
            **{key: run.get(key) for key in ("ping_most_ms", "stops", "stopped_s")},
        }
    return numbers or None


def figure3_table(numbers: dict[str, Any]) -> Table:
    """Return how figure 3 is told."""
    rows = [
        [
            connection,
            f"{one['paper_s']:.2f}",
            *(f"{one[key]:.3f}" for key in ("s", "received_s", "width_s")),
            ", ".join(f"{begin:.2f} to {end:.2f}" for begin, end in one["pauses_s"]) or "none",
            ", ".join(f"{s:.2f}" for s in one["losses_s"]),
            str(one["again_segments"]),
        ]
        for connection, one in numbers.items()
    ]
    head = ["connection", "paper s", "confirmed s", "receiver has all s", "box s", "pauses s", "losses s", "sent again"]
    return FIGURE3.format(box_s=BOX_S), head, rows


def starts_table(numbers: dict[str, Any]) -> Table:
    """Return how starts are told."""
    rows = [
        [
            START_NAMES[one["way"]],
            str(one["senders"]),
            f"{one['buffer_bytes'] / 1e6:.0f} MB",
            f"{one['most_queued_bytes'] / 1e6:.2f} MB",
            f"{one['paper_bytes'] / 1e6:.0f} MB" if one["paper_bytes"] and not one["queue_dropped"] else "-",
            f"{one['queue_dropped']:,}",
            f"{one['again_segments']:,}",
            f"{one['s']:.3f}{' (fallback)' if one['fallback'] else ''}",
            f"{one['ping_most_ms']:.1f} ms",
            "-" if one["stops"] is None else f"{one['stops']}, {one['stopped_s']:.3f} s",
        ]
        for one in numbers.values()
    ]
    head = [
        *("what keeps them back", "senders", "buffer", "most in it", "paper", "super-packets dropped"),
        *("segments sent again", "confirmed s", "ping, longest", "stops"),
    ]
    return STARTS.format(limit_s=f"{Way().limit_s(IMAGE_SLICE_BYTES):.3f}"), head, rows
