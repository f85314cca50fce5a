"""Transfers on the long line, each timed until its last byte is confirmed; what was lost of it, and sent again."""

import threading
import time
from dataclasses import dataclass
from typing import Any

from mininet_tests.papers.freemon.limits import SEGMENTS, SUPER_PACKETS, Way
from mininet_tests.site.long_line import PORTS
from mininet_tests.site.long_line_site import LongLineSite
from mininet_tests.site.losses import SegmentLoss
from mininet_tests.site.tcp_flows import TcpStream
from topology.wire import Layer

LINE_BURST_S = 0.001  # a super-packet must fit into the port's bucket; the line behind it has none
SUPER_PACKET_BYTES = 70_000  # with the headers of its segments
QUIET_S = 0.3
FINEST_S, FINE = 0.0003, 5000  # how often a transfer is looked at when it may be done: this, or a part of its time
WARM_BYTES = 2_000_000
GIVE_UP_S = 3600.0
COUNTED = ("sent_segments", "again_segments", "reorderings", "receive_window_limited_us", "send_buffer_limited_us")
MACS = {port.device: port.mac for port in PORTS}


class Lossy:
    """The line of a site as the cells want it: a rate without a bucket, a buffer before it, losses by either model."""

    def __init__(self, site: LongLineSite) -> None:
        """Attach the losses of single segments, both ways."""
        line = self._line = site.line
        self._ends = [
            SegmentLoss(place, place.interface, MACS[place.interface]) for place in (line.receiver, line.sender)
        ]

    def set(self, way: Way, *, jitter_ms: float, shuffled_ms: float, policed_bps: int) -> None:
        """Set the line, which loses nothing until ``lose``.

        Args:
            way: its rate and round trip; the port has a buffer of rate x round trip.
            jitter_ms: the delay of each way is this much more or less, and nothing overtakes anything.
            shuffled_ms: super-packets overtake each other, as their delays are this much more or less.
            policed_bps: frames beyond this rate are dropped, if it is below the line's own.
        """
        frame_bps = way.bps(Layer.FRAME)
        rtt_ms = way.rtt_ms - shuffled_ms
        self._line.change(rtt_ms=rtt_ms, loss_percent=0.0, frame_bps=frame_bps, jitter_ms=jitter_ms)
        policed = policed_bps < frame_bps
        buffer_bytes = int(policed_bps / 8 * LINE_BURST_S) + SUPER_PACKET_BYTES if policed else way.bdp_bytes
        self._line.widen()
        self._line.narrow(policed_bps, buffer_bytes, LINE_BURST_S)
        if shuffled_ms:
            self._line.shuffle(shuffled_ms)

    def lose(self, model: str, percent: float, seed: int, *, run_length: float | None = None) -> None:
        """Lose so many of each hundred, in each direction, by random numbers that begin with a seed.

        Args:
            model: what is lost at once.
            percent: from 0 to 100.
            seed: not 0.
            run_length: see :meth:`SegmentLoss.set`.
        """
        whole = percent if model == SUPER_PACKETS else 0.0
        self._line.change(loss_percent=whole)
        self._line.seed(seed)
        for number, end in enumerate(self._ends, 1):
            end.set((percent - whole) / 100, seed * 2 + number, run_length=run_length)

    def none(self) -> None:
        """Lose nothing any more."""
        self.lose(SEGMENTS, 0.0, 1)

    @property
    def counts(self) -> dict[str, int]:
        """What came by at the receiver since ``lose``."""
        counts = self._ends[0].counts
        return {"arriving_segments": counts.segments, "lost_segments": counts.lost, "dropped_segments": counts.dropped}


@dataclass(frozen=True, slots=True)
class TimedTransfer:
    """What is sent, on some connections side by side, and the least time it can take."""

    size_bytes: int
    limit_s: float
    rtt_s: float


def timed(
    site: LongLineSite, streams: list[TcpStream], transfer: TimedTransfer, *, quiet: bool = True
) -> dict[str, Any]:
    """Return how long a transfer took from its first write until the last of its bytes was confirmed.

    Raises:
        AssertionError: it was not confirmed for a very long time.
    """
    before = _counts(streams)
    began_s = time.monotonic()
    for number, stream in enumerate(streams):
        site.feeder.feed([stream], _part(transfer.size_bytes, len(streams), number))
    pause = threading.Event()
    pause.wait(max(0.0, transfer.limit_s - 2 * FINEST_S))
    waiting = list(streams)
    while waiting := [stream for stream in waiting if stream.unconfirmed_bytes]:
        took_s = time.monotonic() - began_s
        if took_s > GIVE_UP_S:
            raise AssertionError(f"not confirmed after {GIVE_UP_S:g} s: {[stream.told for stream in waiting]}")
        pause.wait(max(FINEST_S, took_s / FINE))
    took_s = time.monotonic() - began_s
    seen = dict(zip(COUNTED, (now - then for now, then in zip(_counts(streams), before, strict=True)), strict=True))
    if quiet:  # so that the next one begins on an empty line
        pause.wait(QUIET_S + 2 * transfer.rtt_s)
    return {"s": took_s} | seen


def _counts(streams: list[TcpStream]) -> list[int]:
    """Return what the senders' kernels have counted so far, of all together."""
    told = [
        (
            t.sent_segments,
            t.retransmitted_segments,
            t.reorderings,
            t.receive_window_limited_us,
            t.send_buffer_limited_us,
        )
        for t in (stream.told for stream in streams)
    ]
    return [sum(column) for column in zip(*told, strict=True)]


def _part(size_bytes: int, count: int, number: int) -> int:
    """Return one connection's part of a size; all parts together are the size.

    >>> [_part(10, 3, n) for n in range(3)]
    [4, 3, 3]
    """
    return size_bytes // count + (number < size_bytes % count)


def opened(site: LongLineSite, port: int, count: int, *, sender_connects: bool = True) -> tuple[list[TcpStream], float]:
    """Return new connections and how long it took until they could be used."""
    began_s = time.monotonic()
    streams = site.opened(port, count, sender_connects=sender_connects)
    return streams, time.monotonic() - began_s


def warmed(site: LongLineSite, streams: list[TcpStream], size_bytes: int, rtt_s: float) -> None:
    """Send something on connections, so that their windows are open."""
    timed(site, streams, TimedTransfer(size_bytes, 0.0, rtt_s))
