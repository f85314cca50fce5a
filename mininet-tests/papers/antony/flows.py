"""A flow of some seconds into the port: what arrived in each interval, and what was lost in the host and at the port.

Antony's figures 5, 8, 9, 11, 12 and 13, with today's kernels and one sender that Headway holds beside the others.
"""

import contextlib
import json
import math
import socket
import time
from dataclasses import dataclass
from typing import Any, Self

from mininet_tests.lab.saturation import IdleMeter
from mininet_tests.papers.antony.line import SO_SNDBUFFORCE, Nic, Nics
from mininet_tests.papers.antony.segments import SegmentTrace
from mininet_tests.papers.antony.tcp import PORT_BURST_S
from mininet_tests.probes.datagrams import at_rate, datagram_bytes
from mininet_tests.site.long_line_site import FRAMING, LongLineSite
from mininet_tests.site.tcp_flows import TCP_CONGESTION, TcpStream, until
from topology.wire import Layer, converted_bps

HEADWAY = "headway"
IDLE_EVERY_S = 0.5
NIC_BURST_S = 0.00002  # single packets: the interface is no faster than its rate for more than two of them
FRAME_BYTES = FRAMING.segment_bytes(Layer.FRAME)
SINK_PORT = 5999
PAUSE_S = 0.3
LONG_QUEUE = 10_000  # packets: never full
KERNEL_SEGMENTS = 65_535  # at once: the kernel's own choice; the interface cuts them


@dataclass(frozen=True, slots=True)
class TimedFlow:
    """One connection by the first interface, for a while.

    Attributes:
        sender: ``headway``, or a congestion control of the kernel.
        nic_bps: the interface's rate, frames.
        queue_packets: what its queue holds: txqueuelen. If that may be full, all that comes are single packets.
        port_bps: the port's rate, frames.
        buffer_bytes: the port's.
        rtt_ms: of the line.
        lasts_s: so long it sends.
        every_s: between two looks at what has arrived.
        first_segments: the first window; None for the kernel's own.
        socket_bytes: both ends' buffers, as ``iperf -w``; None for the kernel's own.
        flood: another host's datagrams to the same receiver: from when, for how long, how fast (frames); or None.
        planned_bps: what Headway plans for it, frames; None for all that the port has.
        is_traced: each segment's time is kept.
    """

    sender: str
    nic_bps: int
    queue_packets: int
    port_bps: int
    buffer_bytes: int
    rtt_ms: float
    lasts_s: float
    every_s: float
    first_segments: int | None = None
    socket_bytes: int | None = None
    flood: tuple[float, float, int] | None = None
    planned_bps: int | None = None
    is_traced: bool = False

    @property
    def payload_bps(self) -> int:
        """What the plan gives of TCP payload."""
        return converted_bps(self.planned_bps or self.port_bps, Layer.FRAME, Layer.PAYLOAD, FRAMING)


class Flood:
    """Another host's datagrams to the flow's receiver; ``with`` ends them."""

    def __init__(self, nics: Nics, nic: Nic, flood: tuple[float, float, int] | None) -> None:
        """Open both ends; nothing is sent yet."""
        self._at_s, self._lasts_s, self._bps = flood or (math.inf, 0.0, 0)
        self._begun = False
        line, self._sending = nics.line, contextlib.ExitStack()
        self._receiver = line.receiver.inside(lambda: socket.socket(type=socket.SOCK_DGRAM))
        self._receiver.bind((line.receiver.address, SINK_PORT))
        self._sender = nics.bound(nic, socket.SOCK_DGRAM)
        self._sender.connect((line.receiver.address, SINK_PORT))

    def __enter__(self) -> Self:
        """It is open already."""
        return self

    def follow(self, since_s: float) -> None:
        """Begin or end, as the flow's age says."""
        if since_s >= self._at_s + self._lasts_s:
            self._sending.close()
            self._at_s = math.inf
        elif since_s >= self._at_s and not self._begun:
            self._begun = True
            self._sending.enter_context(
                at_rate(self._sender, bytes(datagram_bytes(FRAMING)), self._bps / 8 / FRAME_BYTES)
            )

    def __exit__(self, *_: object) -> None:
        """End."""
        self._sending.close()
        self._sender.close()
        self._receiver.close()


class FlowRuns:
    """Flows one after another, each on a connection of its own."""

    def __init__(self, site: LongLineSite, nics: Nics) -> None:
        self._site, self._nics = site, nics

    def seen(self, flow: TimedFlow) -> dict[str, Any]:
        """Return what has come of a flow: payload arrived by the end of each interval, and what was lost where."""
        line, (nic, other) = self._site.line, self._nics.nics[:2]
        self._prepared(flow, nic)
        stream = self._connected(flow)
        dropped = line.dropped()
        dropped_in_host = self._dropped(nic)
        trace = SegmentTrace(line, nic) if flow.is_traced else None
        with IdleMeter(IDLE_EVERY_S) as meter, Flood(self._nics, other, flow.flood) as flood:
            began_s, arrived = time.monotonic(), [0]
            self._site.feeder.feed([stream])
            for number in range(1, round(flow.lasts_s / flow.every_s) + 1):
                until(began_s + number * flow.every_s)
                flood.follow(time.monotonic() - began_s)
                arrived.append(stream.received_bytes)
        seen = {
            "arrived_bytes": arrived,
            "dropped_in_host": self._dropped(nic) - dropped_in_host,
            "dropped_at_port": line.dropped() - dropped,
            "sent_again": stream.told.retransmitted_segments,
            "idle_share": min(meter.shares),
        }
        self._site.feeder.forget([stream])
        self._site.drain.remove([stream])
        self._nics.abort(stream)
        until(time.monotonic() + 2 * flow.rtt_ms / 1000 + PAUSE_S)
        return seen | ({"trace": trace.seen(flow.rtt_ms)} if trace else {})

    def _prepared(self, flow: TimedFlow, nic: Nic) -> None:
        line = self._site.line
        line.change(rtt_ms=flow.rtt_ms)
        self._nics.set_rate(2, flow.nic_bps, NIC_BURST_S)
        segments = KERNEL_SEGMENTS if flow.queue_packets >= LONG_QUEUE else 1
        line.sender.run("ip", "link", "set", nic.device, "gso_max_segs", str(segments))
        fifo = ("parent", "1:1", "pfifo", "limit", str(flow.queue_packets))
        line.sender.run("tc", "qdisc", "replace", "dev", nic.device, *fifo)
        self._nics.set_window(2, None)  # the other host's route
        self._nics.set_window(1, flow.first_segments)
        line.narrow(flow.port_bps, flow.buffer_bytes, PORT_BURST_S)
        entries = [self._site.allocation(nic.port, flow.payload_bps, rtt_ms=flow.rtt_ms, local=True)]
        self._site.plan(*(entries if flow.sender == HEADWAY else []))

    def _connected(self, flow: TimedFlow) -> TcpStream:
        (stream,) = self._nics.connected(1, flow.socket_bytes)
        if flow.sender != HEADWAY:
            stream.sender.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, flow.sender.encode())
        if flow.socket_bytes is not None:
            stream.sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, flow.socket_bytes)  # past net.core.wmem_max
        self._site.drain.add([stream])
        return stream

    def _dropped(self, nic: Nic) -> int:
        shown = json.loads(self._site.line.sender.run("tc", "-s", "-j", "qdisc", "show", "dev", nic.device))
        return int(next(one["drops"] for one in shown if one["kind"] == "tbf"))
