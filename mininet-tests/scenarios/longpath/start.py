"""How a transfer starts: on a new connection, after a pause, many at once; and what a small buffer makes of it."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mininet_tests.probes.tcp_watch import Meter
from mininet_tests.site.long_line_site import MBIT, LongLineSite, frame_bps
from mininet_tests.site.tcp_flows import TcpStream, until

PORT, LOCAL_PORT, RTT_MS, RATE_BPS = 5001, 5002, 180, 200 * MBIT
SLICE_S = 0.02
LASTS_S, IDLE_S = 1.3, 2.0  # IDLE_S: many retransmission timeouts
HEADROOM_PERCENT, BUFFER_BYTES = 103, 100_000


def run(folder: Path) -> dict[str, Any]:
    """Return what arrived after each start, and what the bottleneck has dropped."""
    with LongLineSite(folder, RTT_MS, RATE_BPS) as site:
        site.line.narrow(frame_bps(RATE_BPS) * HEADROOM_PERCENT // 100, BUFFER_BYTES)
        site.plan(site.allocation(PORT, RATE_BPS), site.allocation(LOCAL_PORT, RATE_BPS, local=True))
        starts = NotedStarts(site, Meter(site.line, (PORT, LOCAL_PORT)))
        fresh = starts.noted("the sender connects", PORT, lambda: _connected(site, PORT, sender_connects=True))
        starts.noted("after a pause", PORT, lambda: _fed(site, fresh))
        accepted = starts.noted(
            "the receiver connects", LOCAL_PORT, lambda: _connected(site, LOCAL_PORT, sender_connects=False)
        )
        starts.noted("accepted, after a pause", LOCAL_PORT, lambda: _fed(site, accepted))
        many = site.opened(PORT, 27)
        starts.noted("27 new ones at once", PORT, lambda: _fed(site, many))
        starts.noted("27 at once, after a pause", PORT, lambda: _fed(site, many))
    return {
        "planned_bps": RATE_BPS,
        "rtt_s": site.rtt_s,
        "slice_s": SLICE_S,
        "buffer_bytes": BUFFER_BYTES,
        "starts": starts.finished(),
        "idle_share": site.idle_share,
    }


class NotedStarts:
    """Starts one after another, each from silence."""

    def __init__(self, site: LongLineSite, meter: Meter) -> None:
        self._site, self.meter = site, meter
        self.seen: list[dict[str, Any]] = []

    def noted(self, name: str, port: int, start: Callable[[], list[TcpStream]]) -> list[TcpStream]:
        """Start, note what arrives, stop and pause; return the connections."""
        dropped = self._site.line.dropped()
        at_s = time.monotonic()
        with self._site.measured():
            streams = start()
            until(at_s + LASTS_S)
        self._site.feeder.feed(streams, 0)
        self.seen.append(
            {
                "name": name,
                "at_s": at_s,
                "port": port,
                "dropped": self._site.line.dropped() - dropped,
                "retransmitted": sum(stream.told.retransmitted_segments for stream in streams),
            }
        )
        until(time.monotonic() + IDLE_S)
        return streams

    def finished(self) -> list[dict[str, Any]]:
        """Return what was noted, with what arrived after each start."""
        self.meter.close()
        for start in self.seen:
            curve, at_s = self.meter.curves[start["port"]], start["at_s"]
            start["slices_bps"] = curve.slices_bps(at_s, at_s + LASTS_S, SLICE_S)
        return self.seen


def _connected(site: LongLineSite, port: int, *, sender_connects: bool) -> list[TcpStream]:
    streams = site.opened(port, 1, sender_connects=sender_connects)
    return _fed(site, streams)


def _fed(site: LongLineSite, streams: list[TcpStream]) -> list[TcpStream]:
    site.feeder.feed(streams)
    return streams
