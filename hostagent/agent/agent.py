"""The agent: takes its allocations from a controller, holds them in the kernel, reports.

``serve`` dials and applies, in a thread for each controller; ``report`` reads and sends the counters, called once a
second by another. Of several controllers the one of the highest epochs leads: that one is obeyed, and the others are
told all that it is, so that each can lead at once. A lost controller needs no action: the kernel part counts the lease
down itself.
"""

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from hostagent.agent import declining
from hostagent.agent.counting import NOT_KEPT_BACK, Counting
from hostagent.agent.fallen import Fallen, deserted, fallen_after
from hostagent.agent.hindrances import Hindrances
from hostagent.agent.open_streams import OpenStreams
from hostagent.agent.shown_certificate import ShownCertificate
from hostagent.agent.status import Sight
from hostagent.agent.staying import Staying
from hostagent.agent.stream import DIAL_WITHIN_S, Bell, ControllerStream, Received
from hostagent.doctor import survey
from hostagent.doctor.receive_window import TcpBuffers, Windows
from hostagent.errors import AgentError, AttachmentRefused, GaveWay, NotAttached, NotEncodable
from hostagent.kernel import plan
from hostagent.kernel.kernel import Kernel
from hostagent.kernel.layout import EntryCounters
from hostagent.kernel.plan import KernelPlan, MapChange
from hostagent.lease_clock import lease_now_ns
from hostagent.log import log
from hostagent.settings import AgentSettings
from hostagent.stores.stores import Stores
from topology import __version__
from topology.addresses import Address
from topology.protocol import (
    SAID_AGAIN_S,
    Allocation,
    Allocations,
    Applied,
    Declined,
    Demand,
    Hello,
    HostInterface,
    Repaired,
    parsed_allocations,
    to_bytes,
)
from topology.telemetry import Telemetry
from topology.wire import Framing

REPORT_S = 1.0
ADDRESSES_S = 60.0  # how often they are looked at
NOT_RENEWED = "no renewal came before the lease ended"


@dataclass(frozen=True, slots=True)
class HeldPlan:
    """The plan the kernel holds, and until when."""

    plan: KernelPlan
    epoch: int = 0
    lease_ms: int = 0
    expires_ns: int = 0
    allocations: tuple[Allocation, ...] = ()

    def lease_left_ms(self, now_ns: int) -> int:
        """Return how long the lease still runs, ms, 0 if it is over."""
        return max(0, self.expires_ns - now_ns) // 1_000_000


class Agent:
    """One host's agent."""

    def __init__(self, settings: AgentSettings, kernel: Kernel, buffers: TcpBuffers | None) -> None:
        self._settings = settings
        self._kernel = kernel
        self._buffers = buffers
        self._in_force = HeldPlan(KernelPlan())
        self._highest_epoch = 0  # that was ever obeyed; a lower one is an older controller's
        self._declined: Declined | None = None  # what was declined last
        self._lost_said: dict[str, tuple[str, float]] = {}  # by controller, why it was lost, and when that was said
        self._lapse_said = True
        self._fallen: dict[str, Fallen] = {}  # allocations whose connections were given back because of loss
        self._counting = Counting()
        self._hindrances = Hindrances()
        self._stores = Stores(settings.stores)
        self.has_news = self._stores.has_news  # whether another report is worth it before the second is over
        self._repairs = 0
        self._lock = threading.Lock()  # of the kernel and of what is in force, and of what is said of its state
        self._obeying = threading.Lock()  # held while a message is brought into force; before the other one
        self._flipping = threading.Lock()  # the ring has one reader at a time
        self._streams = OpenStreams()
        self._staying = Staying(settings.controllers, self._attach, self._streams.cancel)
        self._addresses, self._look_s = _addresses(survey.host_interfaces()), time.monotonic() + ADDRESSES_S
        self._obeyed: ControllerStream | None = None  # by whose message the plan came into force

    def serve(self) -> None:
        """Stay attached to every controller until ``stop``.

        Raises:
            BpfError: the kernel refused something; what is in force runs out with its lease.
        """
        self._staying.serve()

    def stop(self) -> None:
        """End ``serve``, from another thread."""
        self._staying.stop()

    def _attach(self, controller: str) -> bool:
        """Serve one stream until it ends; return whether it was of use.

        The controller has said something that is not from the past, and has not ended it for another one of this host:
        one that is listed by two addresses does so each time.
        """
        bell = Bell(self._kernel.flips.fd, self._flipped)
        stream = ControllerStream(controller, self._settings.tls, bell)
        interfaces = survey.host_interfaces()
        with self._obeying:  # no other plan comes between what is said first and what is said to all
            stream.send(to_bytes(replace(self._hello(), interfaces=interfaces)))
            self._streams.add(stream)
        if self._staying.is_stopped:
            stream.cancel()
        said: Applied | Declined | None = None
        shown: ShownCertificate | None = None  # once it serves us
        gave_way = False
        try:
            for heard in stream.messages():
                answer = self._heard(heard, stream)
                if answer is not None and answer != said:
                    stream.send(to_bytes(answer))
                    said = answer
                self._tell_demand()
                if isinstance(answer, Declined) and answer.epoch < answer.in_force:
                    stream.close("an older epoch is not obeyed")
                elif shown is None:
                    log.info("agent.attached", controller=controller)
                    shown = ShownCertificate(stream, self._settings)
                else:
                    shown.look()
        except NotAttached as error:
            gave_way = isinstance(error, GaveWay)
            self._note_loss(controller, error, served=shown is not None)
        finally:
            self._streams.remove(stream)
        self._note_lapse()
        return shown is not None and not gave_way

    def _heard(self, heard: Received, stream: ControllerStream) -> Applied | Declined | None:
        """Bring a controller's message into force; of another plan the other controllers hear what it is."""
        with self._obeying:
            before = self._in_force.epoch
            answer = self._answer(heard)
            if isinstance(answer, Applied) and answer.epoch:
                self._obeyed = stream
                if answer.epoch != before:
                    self._streams.send(to_bytes(self._hello()), but=stream)
            return answer

    def _hello(self) -> Hello:
        """Return who we are and what we act on; a controller that has just started does not know."""
        in_force = self._in_force
        left_ms = in_force.lease_left_ms(lease_now_ns())
        held = in_force.allocations if left_ms else ()
        epoch = in_force.epoch if held else 0
        release, codes_tails = os.uname().release, self._kernel.codes_tails
        return Hello(self._settings.host, __version__, release, epoch, left_ms, held, codes_tails=codes_tails)

    def _note_loss(self, controller: str, error: NotAttached, *, served: bool) -> None:
        """Say why a controller does not serve us; if it never has, the same once a minute."""
        why, at_s = self._lost_said.get(controller, ("", 0.0))
        again = not served and why == error.why and time.monotonic() - at_s < SAID_AGAIN_S
        if self._staying.is_stopped or again:
            return
        self._lost_said[controller] = error.why, time.monotonic()
        event = "agent.refused" if isinstance(error, AttachmentRefused) else "agent.lost"
        log.warning(event, controller=controller, why=error.why)

    def _flipped(self) -> None:
        """An entry has begun or ended to want its rate."""
        with self._flipping:
            self._kernel.flips.take()
        self._tell_demand()

    def _tell_demand(self) -> None:
        """Tell the controllers what they do not know of the watched entries; by a thread that reads."""
        with self._lock:
            epoch, found = self._in_force.epoch, self._kernel.demand().items()
            self._streams.tell_demand(Demand(epoch, name, wants, standing_by) for name, (wants, standing_by) in found)

    def _answer(self, heard: Received) -> Applied | Declined | None:
        """Bring one message into force and return what the controller is told of it, if anything."""
        began_ns = lease_now_ns()
        try:
            told = parsed_allocations(heard.data)
        except ValueError as error:
            return self._not_understood(heard.data, error)
        before = self._in_force
        if not told.epoch and not told.entries:  # it has no plan for us yet
            if before.epoch and before.lease_left_ms(began_ns):
                return None
        elif told.epoch < self._highest_epoch:
            return self._noted(declining.old_epoch(told.epoch, self._highest_epoch), "agent.old_epoch")
        # The lease counts from when the message can have come: an agent that hung must not act on what is long over.
        expires_ns = heard.since_ns + told.lease_ms * 1_000_000
        if expires_ns <= began_ns:
            log.warning("agent.stale", epoch=told.epoch, waited_ms=(began_ns - heard.since_ns) // 1_000_000)
            return None
        try:
            changes = plan.changes_to(told.entries, before.plan, told.called)
        except NotEncodable as error:
            return self._not_expressible(told.epoch, error)
        self._fit_buffers(told)
        self._note_lapse()  # of the lease before this one
        with self._lock:
            if not before.lease_left_ms(began_ns):
                self._counting.not_counted(before.plan.held)
            has_ended = [self._in_force_now(change, told, expires_ns) for change in changes]
            if any(has_ended):
                self._streams.send(to_bytes(self._telemetry()))  # at once: it may be what an announcement came to
        self._highest_epoch = max(self._highest_epoch, told.epoch)
        self._lapse_said = False
        if told.epoch != before.epoch:
            took_us = (lease_now_ns() - began_ns) // 1000
            log.info("agent.applied", epoch=told.epoch, entries=len(told.entries), took_us=took_us)
        return Applied(told.epoch)

    def _in_force_now(self, change: MapChange, told: Allocations, expires_ns: int) -> bool:
        """Bring a change into force; return whether it has ended an entry; under the lock."""
        before = self._in_force.plan
        self._kernel.apply(change, expires_ns, told.epoch)
        self._in_force = HeldPlan(change.plan, told.epoch, told.lease_ms, expires_ns, told.entries)
        self._counting.begins(change.plan.held.keys() - before.held.keys(), time.monotonic_ns())
        return self._ends(before, time.monotonic_ns())

    def _not_understood(self, data: bytes, error: ValueError) -> Declined | None:
        """Decline what has a part that we do not know; what is in force stays until its lease ends."""
        declined = declining.not_understood(data, self._in_force.epoch, __version__, error)
        if declined is None:
            log.warning("agent.nonsense", why=" ".join(str(error).split()))
            return None
        return self._noted(declined, "agent.nonsense")

    def _not_expressible(self, epoch: int, error: NotEncodable) -> Declined:
        """Decline a plan that the kernel part cannot hold; what is in force stays until its lease ends."""
        declined = Declined(epoch, self._in_force.epoch, str(error))
        return self._noted(declined, "agent.not_expressible", names=error.names)

    def _noted(self, declined: Declined, event: str, **more: tuple[str, ...]) -> Declined:
        """Log what is declined, once although it is sent again and again."""
        if declined != self._declined:
            self._declined = declined
            log.warning(event, epoch=declined.epoch, in_force=declined.in_force, why=declined.why, **more)
        return declined

    def _fit_buffers(self, told: Allocations) -> None:
        """Make room for the windows; without it the plan still holds, only slower at first."""
        if self._buffers is None:
            return
        segments = tuple(entry.window_segments for entry in told.entries)
        try:
            mss_bytes = Framing(survey.largest_mtu_bytes()).mss_bytes  # as it is now
            self._buffers.fit(Windows(told.receive_window_bytes, segments, mss_bytes))
        except OSError as error:
            log.warning("buffers.refused", why=str(error))

    def report(self) -> Sight:
        """Read the counters once, send them up, and return what was seen; once a second, or earlier with news.

        A controller that has been silent for a whole lease is given up.

        Raises:
            AgentError: the kernel does not let the counters be read.
        """
        stores = self._stores.told()
        self._tell_addresses()
        try:
            with self._lock:  # what is said of demand here must not overtake what is said of it elsewhere
                self._repair()
                telemetry = replace(self._telemetry(), stores=stores)
                self._streams.send(to_bytes(telemetry))
        except AgentError:
            self._streams.cancel("the kernel does not let the counters be read")
            raise
        now_ns, in_force = time.monotonic_ns(), self._in_force
        self._note_lapse()
        self._give_up_the_silent(telemetry, now_ns)
        stream = self._shown()
        return Sight(
            at_ns=now_ns,
            telemetry=telemetry,
            allocations=in_force.allocations,
            lease_ms=in_force.lease_ms,
            controller=stream.controller if stream and stream.attached_s else "",
            attached_s=stream.attached_s if stream else 0,
            repairs=self._repairs,
            buffers=self._buffers.shown if self._buffers else {},
            buffers_may_take_bytes=self._buffers.may_take_bytes if self._buffers else 0,
        )

    def _tell_addresses(self) -> None:
        """Say hello again if the host has other addresses by now than when that was looked at last."""
        now_s = time.monotonic()
        if now_s < self._look_s:
            return
        self._look_s = now_s + ADDRESSES_S
        interfaces = survey.host_interfaces()
        before, self._addresses = self._addresses, _addresses(interfaces)
        if self._addresses != before:
            with self._obeying:
                self._streams.send(to_bytes(replace(self._hello(), interfaces=interfaces)))

    def _give_up_the_silent(self, telemetry: Telemetry, now_ns: int) -> None:
        """End the streams of controllers that let the lease end; of several, of those that say nothing at all.

        One that is being dialled has deadlines of its own: most of all now, what a dial takes must not end it. A first
        word may have come since the telemetry was read, which then does not know of the lease that came with it.
        """
        in_force, streams = self._in_force, tuple(self._streams)
        if not in_force.lease_ms or telemetry.lease_left_ms:
            return
        for stream in streams:
            if not stream.opened_ns:
                continue
            attached_ns = stream.attached_ns
            patience_s = REPORT_S if attached_ns else DIAL_WITHIN_S
            tried = now_ns - (attached_ns or stream.opened_ns) >= patience_s * 1e9
            if tried and (len(streams) == 1 or stream.silent_s * 1000 >= in_force.lease_ms):
                stream.cancel(NOT_RENEWED)

    def _shown(self) -> ControllerStream | None:
        """Return the stream of who is obeyed, else of anybody who has told us something, else any, else None."""
        streams = sorted(self._streams, key=lambda one: (one is not self._obeyed, not one.attached_s))
        return streams[0] if streams else None

    def _repair(self) -> None:
        """Put right what is not in the kernel as it should be, and say so; under the lock."""
        for one in self._kernel.repaired():
            self._repairs += 1
            repaired = Repaired(self._in_force.epoch, one.name, one.fault, one.where)
            log.warning("agent.repaired", epoch=repaired.epoch, entry=one.name, fault=one.fault.value, what=one.where)
            self._streams.send(to_bytes(repaired))

    def _telemetry(self) -> Telemetry:
        """Return what the kernel holds and has done; under the lock."""
        now_ns, in_force = time.monotonic_ns(), self._in_force
        counters = self._kernel.counters(held.slot for held in in_force.plan.held.values())
        seen_by_name = dict(zip(in_force.plan.held, counters, strict=True))
        self._watch_fallback(in_force, seen_by_name, now_ns)
        demand = self._kernel.demand()
        hindrances = self._hindrances.seen(in_force.allocations, seen_by_name, now_ns)
        entries = tuple(
            self._counting.told(name, seen, now_ns, demand.get(name), hindrances.get(name, NOT_KEPT_BACK))
            for name, seen in seen_by_name.items()
        )
        left_ms, ended = in_force.lease_left_ms(lease_now_ns()), self._counting.ended(now_ns)
        return Telemetry(in_force.epoch, left_ms, entries, ended, at_us=now_ns // 1000)

    def _ends(self, before: KernelPlan, now_ns: int) -> bool:
        """Keep the last counts of entries that are not in the kernel any more; return whether there are any."""
        ended = {name: held.slot for name, held in before.held.items() if name not in self._in_force.plan.held}
        for name, seen in zip(ended, self._kernel.counters(ended.values()), strict=True):
            self._counting.ends(name, seen, now_ns)
        return bool(ended)

    def _watch_fallback(self, in_force: HeldPlan, counters: Mapping[str, EntryCounters], now_ns: int) -> None:
        """Say which allocations have fallen back or returned, and look at their sockets; under the lock.

        The kernel part falls back by itself. That the loss is gone shows only on sockets it does not run any more, and
        where none of them is left it is over.
        """
        is_leased = in_force.lease_left_ms(lease_now_ns()) > 0
        fallen, held = fallen_after(self._fallen, counters, is_leased=is_leased), in_force.plan.held
        for name in fallen.keys() - self._fallen.keys():
            log.warning("agent.fallback", entry=name, why="catastrophic loss")
        for name in self._fallen.keys() - fallen.keys():
            log.info("agent.fallback_over", entry=name, planned=name in held)
        self._counting.not_counted(fallen.keys() | self._fallen.keys())
        for name in deserted(fallen, now_ns, self._settings.fallback.hold * 1000):
            self._kernel.end_fallback(held[name].slot, now_ns)
        if fallen or self._fallen:
            self._kernel.walk()  # after that: who has come meanwhile is taken
        self._fallen = fallen

    def _note_lapse(self) -> None:
        """Say once that the lease is over."""
        in_force = self._in_force
        if not self._lapse_said and not in_force.lease_left_ms(lease_now_ns()):
            self._lapse_said = True
            self._counting.not_counted(in_force.plan.held)
            log.warning("agent.lease_over", epoch=in_force.epoch, entries=len(in_force.plan.held))


def _addresses(interfaces: tuple[HostInterface, ...]) -> frozenset[Address]:
    """Return by which addresses others reach a host; containers, which come and go, have others on their own links."""
    return frozenset(its for one in interfaces for its in one.addresses if not its.is_link_local)
