"""A path that becomes longer, and one that only has a queue; internal pacing and fq."""

import socket
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from mininet_tests.probes.tcp_watch import Meter, StreamWatch
from mininet_tests.site.long_line_site import FRAMING, MBIT, LongLineSite, frame_bps, planned_segments
from mininet_tests.site.tcp_flows import StreamInfo, TcpStream, until
from topology.wire import Layer

PORT, PORT6, RTT_MS, LONGER_MS, RATE_BPS = 5001, 5002, 180, 220, 50 * MBIT
SLICE_S = 0.05
ROUTE_LASTS_S = 2.0
TOO_NARROW_PERCENT = (99, 90)  # a bottleneck's rate, of the plan
NARROW_LASTS_S = 6.0  # at 90% the window has long met its ceiling then
UDP_PAYLOAD_BYTES = FRAMING.mtu_bytes - 28  # IPv4 20, UDP 8
QUEUE_S = 0.050  # of which 30 ms stay: for a round trip the window lets less through
DISCARD_PORT = 9


def run(folder: Path) -> dict[str, Any]:
    """Return what arrived, and what the sender did, while the route became longer and shorter again."""
    seen: list[dict[str, Any]] = []
    idle_shares: list[float] = []
    for count in (1, 4):
        agents = folder / str(count)
        agents.mkdir()
        with LongLineSite(agents, RTT_MS, RATE_BPS) as site:
            site.plan(site.allocation(PORT, RATE_BPS))
            streams = site.opened(PORT, count)
            meter = Meter(site.line, (PORT,))
            site.feeder.feed(streams)
            until(time.monotonic() + 1.5)
            changes, least_ms = [], []
            with site.measured(), StreamWatch(streams) as watch:
                for rtt_ms in (RTT_MS, LONGER_MS, RTT_MS):
                    site.line.change(rtt_ms=rtt_ms)
                    changes.append((rtt_ms, time.monotonic()))
                    until(changes[-1][1] + ROUTE_LASTS_S)
                    told = site.agent.controller.entry(f"port{PORT}")
                    least_ms.append(told.least_rtt_us / 1000 if told else 0.0)
                ended_s = time.monotonic()
            meter.close()
        curve = meter.curves[PORT]
        ends_s = [at_s for _, at_s in changes[1:]] + [ended_s]
        phases = [
            {"rtt_ms": rtt_ms, "told_ms": told_ms, "at_s": at_s, "slices_bps": curve.slices_bps(at_s, end_s, SLICE_S)}
            for (rtt_ms, at_s), end_s, told_ms in zip(changes, ends_s, least_ms, strict=True)
        ]
        seen.append({"connections": count, "phases": phases, "senders": _told(watch)})
        idle_shares.append(site.idle_share)
    planned = planned_segments(RATE_BPS, RTT_MS)
    return {
        "planned_bps": RATE_BPS,
        "slice_s": SLICE_S,
        "window_segments": planned,
        "seen": seen,
        "idle_share": min(idle_shares),
    }


def _told(watch: StreamWatch) -> list[dict[str, float]]:
    """Return what all streams together did, at each look."""
    return [
        {
            "at_s": looks[0].at_s,
            "rtt_ms": max(told.rtt_us for told in looks) / 1000,
            "in_flight_segments": sum(_in_flight_segments(told) for told in looks),
            "cwnd_segments": sum(told.cwnd_segments for told in looks),
            "paced_bps": sum(told.pacing_bytes_per_s for told in looks) * 8,
            "retransmitted_segments": sum(told.retransmitted_segments for told in looks),
            "notsent_bytes": sum(told.notsent_bytes for told in looks),
        }
        for looks in zip(*watch.told, strict=False)
    ]


def _in_flight_segments(told: StreamInfo) -> int:
    return told.unacked_segments - told.sacked_segments - told.lost_segments


class Foreign:
    """UDP that nobody has planned: a burst, then a steady rate."""

    def __init__(self, site: LongLineSite, burst_bytes: int, payload_bps: int) -> None:
        line = site.line
        self._sink = line.receiver.inside(lambda: socket.socket(type=socket.SOCK_DGRAM))
        self._sink.bind((line.receiver.address, DISCARD_PORT))
        self._socket = line.near.inside(lambda: socket.socket(type=socket.SOCK_DGRAM))
        self._socket.connect((line.receiver.address, DISCARD_PORT))
        self._burst_bytes, self._payload_bps = burst_bytes, payload_bps
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start to send."""
        self._thread.start()

    def stop(self) -> None:
        """Stop."""
        self._stop.set()
        self._thread.join()
        self._socket.close()
        self._sink.close()

    def _run(self) -> None:
        datagram, sent_bytes, began_s = bytes(UDP_PAYLOAD_BYTES), 0, time.monotonic()
        while not self._stop.wait(0.002):
            due_bytes = self._burst_bytes + (time.monotonic() - began_s) * self._payload_bps / 8
            while sent_bytes < due_bytes:
                self._socket.send(datagram)
                sent_bytes += len(datagram)


def run_queue(folder: Path) -> dict[str, Any]:
    """Return what the sender did while a queue stood at the bottleneck: a foreign one, and its own."""
    window = planned_segments(RATE_BPS, RTT_MS)
    segment_bytes = FRAMING.segment_bytes(Layer.FRAME)
    with LongLineSite(folder, RTT_MS, RATE_BPS) as site:
        site.plan(site.allocation(PORT, RATE_BPS))
        streams = site.opened(PORT, 1)
        meter = Meter(site.line, (PORT,))
        spare_bps = RATE_BPS // 4
        line_bps = frame_bps(RATE_BPS + spare_bps)
        buffer_bytes = 4 * window * segment_bytes
        site.line.narrow(line_bps, buffer_bytes)
        site.feeder.feed(streams)
        until(time.monotonic() + 1)
        foreign = Foreign(site, int(line_bps / 8 * QUEUE_S), frame_bps(spare_bps) * UDP_PAYLOAD_BYTES // segment_bytes)
        with site.measured(), StreamWatch(streams) as watch:
            foreign_s = time.monotonic()
            foreign.start()
            until(foreign_s + 3)
            foreign.stop()
            until(foreign_s + 4)
        dropped = site.line.dropped()
        narrow = [_narrow(site, streams, percent, buffer_bytes) for percent in TOO_NARROW_PERCENT]
        meter.close()
    curve = meter.curves[PORT]
    for one in narrow:
        one["arrived_bps"] = curve.bps(one["at_s"] + NARROW_LASTS_S / 2, one["at_s"] + NARROW_LASTS_S)
    return {
        "planned_bps": RATE_BPS,
        "window_segments": window,
        "rtt_ms": RTT_MS,
        "idle_share": site.idle_share,
        "queues": {
            "foreign": {"at_s": foreign_s, "dropped": dropped, "senders": _told(watch)},
            **{f"{one['percent']}%": one for one in narrow},
        },
    }


def _narrow(site: LongLineSite, streams: list[TcpStream], percent: int, buffer_bytes: int) -> dict[str, Any]:
    """Return what the sender did while the bottleneck had less than the plan, from an empty queue on."""
    site.line.widen()
    until(time.monotonic() + 3 * site.rtt_s)
    site.line.narrow(frame_bps(RATE_BPS) * percent // 100, buffer_bytes)
    with site.measured(), StreamWatch(streams) as watch:
        at_s = time.monotonic()
        until(at_s + NARROW_LASTS_S)
    return {"percent": percent, "at_s": at_s, "dropped": site.line.dropped(), "senders": _told(watch)}


def run_fq(folder: Path) -> dict[str, Any]:
    """Return the payload rate with internal pacing and with fq, IPv4 and IPv6."""
    rates = {}
    with LongLineSite(folder, RTT_MS, RATE_BPS) as site:
        narrow = {PORT: site.allocation(PORT, RATE_BPS), PORT6: site.allocation(PORT6, RATE_BPS, ipv6=True)}
        # twice the window: it must be the pacing that holds the rate
        entries = {port: replace(e, window_segments=2 * e.window_segments) for port, e in narrow.items()}
        site.plan(*entries.values())
        for qdisc in ("noqueue", "fq"):
            if qdisc == "fq":
                site.line.sender.run("tc", "qdisc", "add", "dev", "up0", "root", "fq")
            for port in entries:
                streams = site.opened(port, 1, ipv6=port == PORT6)
                site.feeder.feed(streams)
                until(time.monotonic() + 1)
                with site.measured():
                    from_s, before = site.received(streams)
                    until(from_s + 2)
                    to_s, after = site.received(streams)
                rates[f"{qdisc} {'IPv6' if port == PORT6 else 'IPv4'}"] = (after[0] - before[0]) * 8 / (to_s - from_s)
                site.close(streams)
    return {"planned_bps": RATE_BPS, "rates_bps": rates, "idle_share": site.idle_share}
