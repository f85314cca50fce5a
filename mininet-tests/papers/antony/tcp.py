"""Starts over TCP into a port with a small buffer: was anything lost? And the smallest buffer that loses nothing."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mininet_tests.lab.saturation import IdleMeter
from mininet_tests.papers.antony.line import Nics
from mininet_tests.site.long_line_site import FRAMING, MSS_BYTES, LongLineSite
from mininet_tests.site.tcp_flows import TcpStream, until
from mininet_tests.testing.eventually import eventually
from topology.wire import Layer, converted_bps

IDLE_EVERY_S = 0.1  # as long as the shortest start here
PORT_BURST_S = 0.00005
WARM_BYTES = 16 * MSS_BYTES  # more than the ten segments that TCP paces on no new connection
WARMING_BUFFER_BYTES = 10_000_000  # the first segments of new connections are not what is measured then
PAUSE_S = 0.3
DONE_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class Start:
    """Several senders that start at one instant.

    Attributes:
        sender: ``whole window`` at once, ``slow start``, or the agent: ``headway`` on new connections,
            ``headway, warm`` on connections that have sent before.
        senders: how many.
        nic_bps: the rate of each one's interface, frames.
        port_bps: the rate of the port they converge at, frames.
        rtt_ms: of the line.
        windows: how many windows each one sends.
    """

    sender: str
    senders: int
    nic_bps: int
    port_bps: int
    rtt_ms: float
    windows: int = 1

    @property
    def window_segments(self) -> int:
        """The window of each: together they are rate x round trip of the port."""
        frame_bytes = FRAMING.segment_bytes(Layer.FRAME)
        return round(self.port_bps * self.rtt_ms / 1000 / 8 / frame_bytes / self.senders)

    @property
    def payload_bps(self) -> int:
        """What the plan gives each."""
        return converted_bps(self.port_bps, Layer.FRAME, Layer.PAYLOAD, FRAMING) // self.senders


class StartRuns:
    """Starts one after another, each on connections of its own."""

    def __init__(self, site: LongLineSite, nics: Nics) -> None:
        self._site, self._nics = site, nics
        self.shares: list[float] = []

    def prepared(self, start: Start) -> None:
        """Bring line, interfaces and plan to what a start needs."""
        self._site.line.change(rtt_ms=start.rtt_ms)
        self._nics.set_rate(start.senders, start.nic_bps)
        windows = {"whole window": (start.window_segments,) * 2, "slow start": (10, start.window_segments)}
        self._nics.set_window(start.senders, *windows.get(start.sender, (None, None)))
        paced = self._nics.nics[: start.senders] if start.sender.startswith("headway") else []
        rate_bps, rtt_ms = start.payload_bps, start.rtt_ms
        self._site.plan(*(self._site.allocation(nic.port, rate_bps, rtt_ms=rtt_ms, local=True) for nic in paced))

    def lost(self, start: Start, buffer_bytes: int) -> dict[str, int]:
        """Return the frames that the port dropped of a start, and the segments sent again; ``prepared`` comes first."""
        line, is_warm = self._site.line, start.sender == "headway, warm"
        line.narrow(start.port_bps, WARMING_BUFFER_BYTES if is_warm else buffer_bytes, PORT_BURST_S)
        streams = self._nics.connected(start.senders)
        self._site.drain.add(streams)
        if is_warm:
            self._site.feeder.feed(streams, WARM_BYTES)
            self._confirmed(streams)
            until(time.monotonic() + 2 * start.rtt_ms / 1000)
            line.narrow(start.port_bps, buffer_bytes, PORT_BURST_S)
        dropped = line.dropped()
        with IdleMeter(IDLE_EVERY_S) as meter:
            self._site.feeder.feed(streams, start.windows * start.window_segments * MSS_BYTES)
            self._confirmed(streams)
        self.shares += meter.shares
        again = sum(stream.told.retransmitted_segments for stream in streams)
        seen = {"dropped": line.dropped() - dropped, "sent_again": again}
        self._abort(streams)
        until(time.monotonic() + 2 * start.rtt_ms / 1000 + PAUSE_S)
        return seen

    def _confirmed(self, streams: list[TcpStream]) -> None:
        """Wait until all is confirmed, or something was lost."""

        def done() -> bool:
            return all(not s.unconfirmed_bytes for s in streams) or any(s.told.retransmitted_segments for s in streams)

        eventually(done, within_s=DONE_WITHIN_S, what="the start is confirmed")

    def _abort(self, streams: list[TcpStream]) -> None:
        self._site.feeder.forget(streams)
        self._site.drain.remove(streams)
        for stream in streams:
            self._nics.abort(stream)


def smallest(fits: Callable[[int], bool], least: int, most: int, resolution: int) -> int | None:
    """Return the smallest value from ``least`` on that fits, to ``resolution`` above it; None if ``most`` does not.

    >>> smallest(lambda value: value >= 700, least=0, most=1000, resolution=1)
    700
    """
    if not fits(most):
        return None
    if fits(least):
        return least
    too_small, enough = least, most
    while enough - too_small > resolution:
        middle = (too_small + enough) // 2
        if fits(middle):
            enough = middle
        else:
            too_small = middle
    return enough


def smallest_buffer(starts: StartRuns, start: Start, search: dict[str, int]) -> dict[str, Any]:
    """Return the smallest buffer that loses nothing of a start, and every buffer that was tried."""
    starts.prepared(start)
    tried: list[dict[str, int]] = []

    def fits(buffer_bytes: int) -> bool:
        tried.append({"buffer_bytes": buffer_bytes} | starts.lost(start, buffer_bytes))
        return not tried[-1]["dropped"] and not tried[-1]["sent_again"]

    return {"smallest_bytes": smallest(fits, **search), "tried": tried}
