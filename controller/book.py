"""The book: what is wanted, what each layer has confirmed, and what each host may be acting on. One lock around it.

The service writes wishes into it, agents and switches their confirmations, and the convergence thread reads what is
still to do. Every method that needs the lock says so; none blocks.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from controller.plan.announcements import Announcement
from controller.plan.invariant import Layers
from controller.plan.plan import CircuitPath, Entry, Flow, Plan, planned
from controller.plan.policy import Policy
from controller.plan.transitions import Place, most
from topology.network import Circuit, Network
from topology.protocol import Allocation, Allocations, FlowClass, Telemetry
from topology.wire import Layer, converted_bps

RECEIVE_WINDOW_BDPS = 3  # with loss, two to three bandwidth-delay products of selectively confirmed data wait
HISTORY_STEPS = 1_000


@dataclass(frozen=True, slots=True)
class Site:
    """What does not change while the controller runs.

    Attributes:
        network: the topology.
        policy: what each class may have.
        standing: the flows that are always in the plan.
        lease_ms: how long a host may act without hearing from us.
    """

    network: Network
    policy: Policy
    standing: tuple[Flow, ...]
    lease_ms: int

    @property
    def circuit(self) -> Circuit:
        """The circuit that is planned."""
        return self.network.circuits[0]

    @property
    def path(self) -> CircuitPath:
        """The circuit as the planner sees it, by the longest round trip of any two hosts; worked out at each call."""
        hosts = [h.name for h in self.network.hosts]
        rtt_us = max(self.network.rtt_us(a, z) for a in hosts for z in hosts)
        return CircuitPath(self.circuit.rate_bps, rtt_us, self.network.framing)


@dataclass(slots=True)
class HostState:
    """What is known of one host's agent. Times in Unix microseconds.

    Attributes:
        connected: whether its stream is open.
        kernel: its kernel's release.
        sent_epoch: epoch of what was sent to it last.
        sent: what was sent to it last.
        sent_us: when.
        confirmed_epoch: the epoch its kernel confirmed last.
        confirmed: its allocations of that epoch.
        lost_us: when its stream ended.
        telemetry: its counters.
    """

    connected: bool = False
    kernel: str = ""
    sent_epoch: int = 0
    sent: tuple[Entry, ...] = ()
    sent_us: int = 0
    confirmed_epoch: int = 0
    confirmed: tuple[Entry, ...] = ()
    lost_us: int = 0
    telemetry: Telemetry | None = None

    def acting_on(self, lease_us: int, now_us: int) -> tuple[Entry, ...]:
        """Return the most the host may be acting on: what it confirmed, and what is on its way to it.

        A host that is gone acts on nothing once its lease is over; one that does not confirm has lost the lease on
        what it had when a lease has passed since something else was sent.
        """
        if not self.connected and now_us - self.lost_us > lease_us:
            return ()
        if self.confirmed_epoch == self.sent_epoch or now_us - self.sent_us > lease_us:
            return self.sent
        return most(self.confirmed, self.sent)


@dataclass(frozen=True, slots=True)
class StepDone:
    """One step of a transition, as it happened; times in Unix microseconds."""

    epoch: int
    place: Place
    started_us: int
    done_us: int
    error: str = ""


@dataclass(slots=True)
class Installed:
    """What each layer has confirmed.

    Attributes:
        queues: the plan whose queues are in force.
        meters: the plan whose rules and meters are in force.
        hosts_epoch: the plan whose allocations every host has been given.
        steps: how it came about, oldest first.
    """

    queues: Plan | None = None
    meters: Plan | None = None
    hosts_epoch: int = 0
    steps: deque[StepDone] = field(default_factory=lambda: deque(maxlen=HISTORY_STEPS))


class Book:
    """All that changes, under ``changed``."""

    def __init__(self, site: Site, now_us: Callable[[], int]) -> None:
        self.site = site
        self.path = site.path
        self.now_us = now_us
        self.changed = threading.Condition()
        self.announcements: dict[str, Announcement] = {}
        self.hosts = {h.name: HostState() for h in site.network.hosts}
        self.installed = Installed()
        self.switches_suspect = True  # the switches may not hold what was installed
        self.stopping = False
        # Epochs must grow over restarts, or agents would take us for an old controller; seconds outrun changes.
        self.desired = planned(now_us() // 1_000_000 * 2, self.path, site.policy, site.standing)

    def flows(self) -> tuple[Flow, ...]:
        """Return every flow in the plan; under the lock."""
        return (*self.site.standing, *(f for a in self.announcements.values() for f in a.flows))

    def replan(self) -> None:
        """Make the plan for the flows there are now the desired one; under the lock."""
        self.desired = planned(self.desired.epoch + 2, self.path, self.site.policy, self.flows())
        self.changed.notify_all()

    def acting_on(self, host: str) -> tuple[Entry, ...]:
        """Return the most a host may be acting on now; under the lock."""
        return self.hosts[host].acting_on(self.site.lease_ms * 1000, self.now_us())

    def layers(self) -> Layers:
        """Return what each layer lets through now; under the lock."""
        acting = [e for host in self.hosts for e in self.acting_on(host)]
        meters = self.installed.meters.classes if self.installed.meters else {}
        queues = self.installed.queues.classes if self.installed.queues else {}
        return Layers(
            {c: sum(e.frame_bps for e in acting if e.flow.flow_class is c) for c in FlowClass},
            {c: limits.meter_bps for c, limits in meters.items()},
            {c: limits.queue_bps for c, limits in queues.items()},
            self.desired.circuit_bps,
        )

    def sending(self, host: str, epoch: int, entries: tuple[Entry, ...]) -> Allocations:
        """Note that a host is being sent what it may do, and return the message; under the lock."""
        state = self.hosts[host]
        if state.confirmed_epoch == state.sent_epoch:
            state.confirmed = state.sent
        state.sent_epoch, state.sent, state.sent_us = epoch, entries, self.now_us()
        return Allocations(
            epoch=epoch,
            lease_ms=self.site.lease_ms,
            entries=tuple(_allocation(e) for e in entries),
            receive_window_bytes=_receive_window_bytes(self.path),
        )


def _allocation(entry: Entry) -> Allocation:
    # No DSCP: the switch marks. A host that began to mark in mid-flow would send its next packets down Open vSwitch's
    # slow path, since the switch's cached flows match the old value.
    return Allocation(
        name=entry.flow.name,
        flow_class=entry.flow.flow_class,
        dest=entry.flow.dest,
        rate_bps=entry.payload_bps,
        window_segments=entry.window_segments,
    )


def _receive_window_bytes(path: CircuitPath) -> int:
    """Return the window a receiver must be able to open: the whole circuit's, with room for recovery."""
    payload_bps = converted_bps(path.wire_bps, Layer.WIRE, Layer.PAYLOAD, path.framing)
    return RECEIVE_WINDOW_BDPS * payload_bps * path.rtt_us // 8_000_000


@dataclass(frozen=True, slots=True)
class View:
    """A copy of the book for those who ask.

    Attributes:
        desired: the plan that is wanted.
        installed: the plan whose meters are in force, None before the first.
        layers: what each layer lets through at this moment.
        hosts: every host's agent.
        error: why the last step failed, empty if it did not.
    """

    desired: Plan
    installed: Plan | None
    layers: Layers
    hosts: Mapping[str, HostState]
    error: str
