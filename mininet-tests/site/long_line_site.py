"""A sender and a receiver on the long line, each with its agent, and the traffic between them."""

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import Self

from controller.plan.policy import DEFAULT_POLICY
from hostagent.kernel.coded import CodedCounts, counts_in
from hostagent.tests.kernel_maps import agents_map
from hostagent.tests.rig import NamespaceHost, RunningAgent
from mininet_tests.lab.saturation import IdleMeter
from mininet_tests.site.fallbacks import Fallbacks, fallbacks
from mininet_tests.site.long_line import LongLine
from mininet_tests.site.tcp_flows import Drain, Feeder, TcpStream, opened
from topology.protocol import Allocation, Allocations, FlowClass, Tail
from topology.wire import Framing, Layer

LEASE_MS = 1500
OF_BOTH = ("tail_coded",)  # settings of an agent that are nothing without the other
# Half of the slack that a window has by the controller's own policy, and no least one.
POLICY = replace(DEFAULT_POLICY, window_slack_ppm=10_000, least_slack_us=1)
FRAMING = Framing()
MSS_BYTES = FRAMING.mss_bytes
RECEIVE_WINDOWS = 4  # of the largest plan: two for a window that is confirmed selectively, two for a longer path
MBIT = 1_000_000


def frame_bps(payload_bps: float) -> int:
    """Return what the bottleneck counts for a payload rate."""
    return int(payload_bps * FRAMING.segment_bytes(Layer.FRAME) / MSS_BYTES)


def planned_segments(rate_bps: int, rtt_ms: float) -> int:
    """Return the planned window."""
    return POLICY.window_segments(rate_bps, int(rtt_ms * 1000), MSS_BYTES)


class ConfiguredAgent(RunningAgent):
    """An agent with settings of its own."""

    def __init__(self, host: NamespaceHost, folder: Path, settings: dict[str, object]) -> None:
        """Start it.

        Args:
            host: where it runs.
            folder: for its configuration and log.
            settings: keys of agent.yaml beside those that every agent here has.
        """
        self.settings = settings
        super().__init__(host, folder)

    def _started(self) -> "subprocess.Popen[bytes]":
        self._config.write_text(json.dumps(json.loads(self._config.read_text()) | self.settings))
        return super()._started()


class LongLineSite:
    """The line with its two agents; ``with`` takes it down again."""

    def __init__(
        self,
        folder: Path,
        rtt_ms: float,
        largest_bps: int,
        *,
        single_packets: bool = True,
        mtu_bytes: int = FRAMING.mtu_bytes,
        settings: dict[str, object] | None = None,
    ) -> None:
        """Build it.

        Args:
            folder: for the agents' files.
            rtt_ms: of the line, milliseconds.
            largest_bps: the most that will be planned, bit/s: the receiver's window is sized by it.
            single_packets: see :class:`LongLine`.
            mtu_bytes: of every interface.
            settings: of the sender's agent; of the receiver's too what needs both.
        """
        self.rtt_s = rtt_ms / 1000
        settings = settings or {}
        self.line = LongLine(rtt_ms, single_packets=single_packets, mtu_bytes=mtu_bytes)
        self.agent = ConfiguredAgent(self.line.sender, folder / "sender", settings)
        self.receiving_agent = ConfiguredAgent(
            self.line.receiver, folder / "receiver", {key: settings[key] for key in OF_BOTH if key in settings}
        )
        window_bytes = RECEIVE_WINDOWS * int(largest_bps / 8 * self.rtt_s)
        self.receiving_agent.obey(Allocations(1, LEASE_MS, (), receive_window_bytes=window_bytes))
        self.feeder, self.drain = Feeder(), Drain()
        self._epoch = 0
        self._idle_shares: list[float] = []

    @property
    def idle_share(self) -> float:
        """The CPU's idle share in the busiest half second that was measured."""
        return min(self._idle_shares)

    @property
    def fallbacks(self) -> Fallbacks:
        """What the sender's agent has given back so far, and taken again."""
        return fallbacks([self.agent.log])

    @property
    def coded(self) -> tuple[CodedCounts, CodedCounts]:
        """What the coded tail has done at the sender and at the receiver; LookupError where it is not loaded."""
        found = []
        for agent in (self.agent, self.receiving_agent):
            with agents_map(agent.process.pid, "hw_coded") as counts:
                found.append(counts_in(counts))
        return found[0], found[1]

    @contextlib.contextmanager
    def measured(self) -> Iterator[None]:
        """Watch how busy the CPU is: figures of a full one say nothing about the line."""
        with IdleMeter(0.5) as meter:
            yield
        self._idle_shares += meter.shares

    def __enter__(self) -> Self:
        """It is built already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Take it down."""
        self.feeder.close()
        self.drain.close()
        self.agent.close()
        self.receiving_agent.close()
        self.line.remove()

    def allocation(
        self, port: int, rate_bps: int, *, rtt_ms: float | None = None, local: bool = False, ipv6: bool = False
    ) -> Allocation:
        """Return the plan's entry for what goes to, or with ``local`` from, a port."""
        window = planned_segments(rate_bps, self.rtt_s * 1000 if rtt_ms is None else rtt_ms)
        dest = self.line.receiver.address6 if ipv6 else self.line.receiver.address
        entry = Allocation(f"port{port}", FlowClass.URGENT, ip_network(dest), rate_bps, window, tail=self.tail)
        return replace(entry, local_port=port) if local else replace(entry, dest_port=port)

    @property
    def tail(self) -> Tail:
        """Of allocations: coded if both agents offer it."""
        return Tail.CODED if self.agent.settings.get("tail_coded") else Tail.PLAIN

    def plan(self, *entries: Allocation) -> float:
        """Bring a plan into force; return when the agent said so."""
        self._epoch += 1
        self.agent.obey(Allocations(self._epoch, LEASE_MS, entries))
        return self.agent.controller.applied_at_s[self._epoch]

    def send(self, *entries: Allocation) -> int:
        """Send a plan, and return its epoch; its confirmation is the caller's to wait for."""
        self._epoch += 1
        self.agent.controller.send(Allocations(self._epoch, LEASE_MS, entries))
        return self._epoch

    def opened(self, port: int, count: int = 1, *, ipv6: bool = False, sender_connects: bool = True) -> list[TcpStream]:
        """Return connections that nobody uses yet; what arrives on them is drained."""
        streams = opened(
            (self.line.sender, self.line.receiver), port, count, ipv6=ipv6, sender_connects=sender_connects
        )
        self.drain.add(streams)
        return streams

    def close(self, streams: list[TcpStream]) -> None:
        """Close connections."""
        self.feeder.forget(streams)
        self.drain.remove(streams)
        for stream in streams:
            stream.close()

    def received(self, streams: list[TcpStream]) -> tuple[float, list[int]]:
        """Return the time and what has arrived on each."""
        return time.monotonic(), [stream.received_bytes for stream in streams]
