"""The agent: takes its allocations from a controller, holds them in the kernel, reports.

``serve`` dials and applies, in one thread; ``report`` reads and sends the counters, called once a second by another.
A lost controller needs no action: the kernel part counts the lease down itself.
"""

import itertools
import os
import queue
import random
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import grpc
import structlog

from hostagent import plan, survey
from hostagent.errors import AgentError, NotExpressible
from hostagent.kernel import Kernel
from hostagent.layout import Counters
from hostagent.plan import KernelPlan
from hostagent.receive_window import TcpBuffers, Windows
from hostagent.settings import Settings
from hostagent.status import Sight
from topology import __version__
from topology.protocol import (
    ATTACH_METHOD,
    Allocation,
    Allocations,
    Applied,
    EntryTelemetry,
    Hello,
    Telemetry,
    parsed_allocations,
    to_bytes,
)
from topology.wire import Framing

REPORT_S = 1.0
FIRST_BACKOFF_S = 0.2
LONGEST_BACKOFF_S = 5.0
# A channel of its own for each attempt: a shared one would keep gRPC's own, longer, backoff.
_CHANNEL_OPTIONS = (("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0))

log = structlog.get_logger()

Outbox = queue.SimpleQueue[bytes | None]


@dataclass(frozen=True, slots=True)
class InForce:
    """The plan the kernel holds, and until when."""

    plan: KernelPlan
    epoch: int = 0
    lease_ms: int = 0
    expires_ns: int = 0
    allocations: tuple[Allocation, ...] = ()

    def lease_left_ms(self, now_ns: int) -> int:
        """Return how long the lease still runs, ms, 0 if it is over."""
        return max(0, self.expires_ns - now_ns) // 1_000_000


@dataclass(frozen=True, slots=True)
class Stream:
    """An open stream to a controller.

    Attributes:
        controller: its address.
        outbox: what goes up.
        call: gRPC's.
        opened_ns: since when, CLOCK_MONOTONIC.
        attached_s: since when the controller has answered, Unix seconds; 0 if it has not yet.
    """

    controller: str
    outbox: Outbox
    call: Any
    opened_ns: int
    attached_s: int = 0


def backoff_s(failures: int, jitter: float) -> float:
    """Return how long to wait before dialling again, seconds: doubling, with up to half of it taken off.

    The jitter keeps the agents of a restarted controller from coming back all at once.

    >>> backoff_s(0, 0.0), backoff_s(1, 0.0), backoff_s(20, 1.0)
    (0.2, 0.4, 2.5)

    Args:
        failures: attempts that have failed since the last success, from 0.
        jitter: a random number in [0, 1].
    """
    longest_s: float = min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2 ** min(failures, 16))
    return longest_s * (1 - jitter / 2)


class Agent:
    """One host's agent."""

    def __init__(self, settings: Settings, kernel: Kernel, buffers: TcpBuffers | None) -> None:
        self._settings = settings
        self._kernel = kernel
        self._buffers = buffers
        self._mss_bytes = Framing(survey.largest_mtu_bytes()).mss_bytes
        self._in_force = InForce(KernelPlan())
        self._lapse_said = True
        self._fallen: set[str] = set()  # allocations whose connections were given back because of loss
        self._lock = threading.Lock()  # of the kernel and of what is in force
        self._stopping = threading.Event()
        self._stream: Stream | None = None

    def serve(self) -> None:
        """Stay attached to one of the controllers until ``stop``.

        Raises:
            BpfError: the kernel refused something; what is in force runs out with its lease.
        """
        failures = 0
        for controller in itertools.cycle(self._settings.controllers):
            if self._stopping.is_set():
                return
            heard = self._attach(controller)
            failures = 0 if heard else failures + 1
            self._note_lapse()
            jitter = random.random()  # noqa: S311 (spreads load, guards nothing)
            self._stopping.wait(backoff_s(failures, jitter))

    def stop(self) -> None:
        """End ``serve``, from another thread."""
        self._stopping.set()
        stream = self._stream
        if stream is not None:
            stream.call.cancel()

    def _attach(self, controller: str) -> bool:
        """Serve one stream until it ends; return whether the controller said anything."""
        outbox: Outbox = queue.SimpleQueue()
        outbox.put(to_bytes(Hello(self._settings.host, __version__, os.uname().release)))
        heard = False
        epoch_said: int | None = None
        with grpc.insecure_channel(controller, options=_CHANNEL_OPTIONS) as channel:
            call = channel.stream_stream(ATTACH_METHOD)(iter(outbox.get, None))
            self._stream = stream = Stream(controller, outbox, call, time.monotonic_ns())
            if self._stopping.is_set():
                call.cancel()
            try:
                for data in call:
                    if not heard:
                        log.info("agent.attached", controller=controller)
                        heard = True
                        self._stream = replace(stream, attached_s=int(time.time()))
                    epoch = self._obeyed(data)
                    if epoch is not None and epoch != epoch_said:
                        outbox.put(to_bytes(Applied(epoch)))
                        epoch_said = epoch
            except grpc.RpcError as error:
                if not self._stopping.is_set():
                    log.warning("agent.lost", controller=controller, why=_why(error))
            finally:
                self._stream = None
                outbox.put(None)
        return heard

    def _obeyed(self, data: bytes) -> int | None:
        """Bring one message into force and return its epoch; None if it was refused."""
        began_ns = time.monotonic_ns()
        try:
            told = parsed_allocations(data)
        except ValueError as error:
            log.warning("agent.nonsense", why=" ".join(str(error).split()))
            return None
        before = self._in_force
        if told.epoch < before.epoch and before.lease_left_ms(began_ns):
            log.warning("agent.old_epoch", epoch=told.epoch, in_force=before.epoch)
            return None
        try:
            change = plan.change_to(told.entries, before.plan)
        except NotExpressible as error:
            log.warning("agent.not_expressible", epoch=told.epoch, names=error.names, why=error.why)
            return None
        self._fit_buffers(told)
        expires_ns = began_ns + told.lease_ms * 1_000_000
        with self._lock:
            self._kernel.apply(change, expires_ns)
            self._in_force = InForce(change.plan, told.epoch, told.lease_ms, expires_ns, told.entries)
        self._lapse_said = False
        if told.epoch != before.epoch:
            took_us = (time.monotonic_ns() - began_ns) // 1000
            log.info("agent.applied", epoch=told.epoch, entries=len(told.entries), took_us=took_us)
        return told.epoch

    def _fit_buffers(self, told: Allocations) -> None:
        """Make room for the windows; without it the plan still holds, only slower at first."""
        if self._buffers is None:
            return
        segments = tuple(entry.window_segments for entry in told.entries)
        try:
            self._buffers.fit(Windows(told.receive_window_bytes, segments, self._mss_bytes))
        except OSError as error:
            log.warning("buffers.refused", why=str(error))

    def report(self) -> Sight:
        """Read the counters once, send them up, and return what was seen; once a second.

        A controller that has been silent for a whole lease is given up.

        Raises:
            AgentError: the kernel does not let the counters be read.
        """
        stream = self._stream
        try:
            telemetry = self.telemetry()
        except AgentError:
            if stream is not None:
                stream.call.cancel()
            raise
        now_ns, in_force = time.monotonic_ns(), self._in_force
        self._note_lapse()
        if stream is not None:
            stream.outbox.put(to_bytes(telemetry))
            tried = now_ns - stream.opened_ns >= REPORT_S * 1e9
            if tried and in_force.lease_ms and not telemetry.lease_left_ms:
                stream.call.cancel()
        return Sight(
            at_ns=now_ns,
            telemetry=telemetry,
            allocations=in_force.allocations,
            lease_ms=in_force.lease_ms,
            controller=stream.controller if stream and stream.attached_s else "",
            attached_s=stream.attached_s if stream else 0,
            buffers=self._buffers.shown if self._buffers else {},
            buffers_may_take_bytes=self._buffers.may_take_bytes if self._buffers else 0,
        )

    def telemetry(self) -> Telemetry:
        """Return what the kernel holds and has done."""
        now_ns = time.monotonic_ns()
        with self._lock:
            in_force = self._in_force
            counters = self._kernel.counters(held.slot for held in in_force.plan.held.values())
            self._watch_fallback(in_force.plan, counters)
        entries = tuple(
            EntryTelemetry(
                name=name,
                connections=seen.connections,
                active=seen.active,
                delivered_bytes=seen.delivered_bytes,
                sent_segments=seen.sent_segments,
                retransmitted_segments=seen.retransmitted_segments,
                rtt_us=seen.rtt_us,
                fallback="loss" if seen.fallback_since_ns else "",
            )
            for name, seen in zip(in_force.plan.held, counters, strict=True)
        )
        return Telemetry(in_force.epoch, in_force.lease_left_ms(now_ns), entries)

    def _watch_fallback(self, held: KernelPlan, counters: Iterable[Counters]) -> None:
        """Say which allocations have fallen back or returned, and look at their sockets; under the lock.

        The kernel part falls back by itself. That the loss is gone shows only on sockets it does not run any more.
        """
        fallen = {name for name, seen in zip(held.held, counters, strict=True) if seen.fallback_since_ns}
        for name in fallen - self._fallen:
            log.warning("agent.fallback", entry=name, why="catastrophic loss")
        for name in (self._fallen - fallen) & held.held.keys():
            log.info("agent.fallback_over", entry=name)
        if fallen or self._fallen:
            self._kernel.walk()
        self._fallen = fallen

    def _note_lapse(self) -> None:
        """Say once that the lease is over."""
        in_force = self._in_force
        if not self._lapse_said and not in_force.lease_left_ms(time.monotonic_ns()):
            self._lapse_said = True
            log.warning("agent.lease_over", epoch=in_force.epoch, entries=len(in_force.plan.held))


def _why(error: grpc.RpcError) -> str:
    """Return gRPC's reason in one line."""
    if isinstance(error, grpc.Call):
        return f"{error.code().name}: {error.details()}"
    return str(error)
