"""The book: what is wanted, what each layer has confirmed, and what each host may be acting on. One lock around it.

The use cases write wishes into it, agents and switches their confirmations, and the convergence thread reads what is
still to do. Every method that needs the lock says so; none blocks.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from controller.events import Events
from controller.plan.failover import carries, crossed, redundant, turned, without
from controller.plan.flows import flow_on, standing_by
from controller.plan.invariant import Layers
from controller.plan.leases import Leases
from controller.plan.lifecycle import ReservationState
from controller.plan.lines import Lines, LineState
from controller.plan.paths import circuits
from controller.plan.plan import Entry, Flow, Plan, PlanInput, planned
from controller.plan.purchases import Purchase, PurchaseState
from controller.plan.reservations import MAX_TIME_US, Reservation
from controller.plan.transitions import Change, Stage
from controller.site import Site
from topology.network import Hop
from topology.protocol import Allocation, Allocations, FlowClass, Telemetry

HISTORY_STEPS = 1_000
STARTING_US = 30_000_000  # switches and agents call again within seconds of a controller's start


@dataclass(slots=True)
class HostState:
    """What is known of one host's agent. Times in Unix microseconds.

    Attributes:
        connected: whether its stream is open.
        kernel: its kernel's release.
        leases: what it was told, and may be acting on.
        confirmed_epoch: the epoch its kernel confirmed last.
        wants: by watched flow, whether it has more to send than its standby rate carries.
        confirmed_us: when its kernel confirmed what it was sent last.
        telemetry: its counters.
        telemetry_us: when they came.
    """

    connected: bool = False
    kernel: str = ""
    leases: Leases = field(default_factory=Leases)
    confirmed_epoch: int = 0
    wants: dict[str, bool] = field(default_factory=dict)
    confirmed_us: int = 0
    telemetry: Telemetry | None = None
    telemetry_us: int = 0

    @property
    def sent_epoch(self) -> int:
        """The epoch of what it was told last; 0 if nothing yet."""
        return self.leases.grants[-1].epoch if self.leases.grants else 0

    @property
    def acts_as_told(self) -> tuple[Entry, ...]:
        """What it acts on, or is about to: the last message, stepped down where it said so."""
        return self.leases.grants[-1].acting if self.leases.grants else ()

    def waits(self, flow: Flow) -> bool:
        """Return whether a flow of this host has nothing to send yet, or any more; not known of one that is gone."""
        return bool(flow.standby_bps) and self.connected and not self.wants.get(flow.name, False)


@dataclass(frozen=True, slots=True)
class StepDone:
    """One step of a transition, as it happened; times in Unix microseconds."""

    epoch: int
    stage: Stage
    started_us: int
    done_us: int
    error: str = ""
    changes: tuple[Change, ...] = ()


@dataclass(slots=True)
class Installed:
    """What each layer has confirmed.

    Attributes:
        queues: the plan whose queues are in force.
        meters: the plan whose rules and meters are in force.
        hosts_epoch: the plan whose allocations every connected host has been sent.
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
        self.now_us = now_us
        self.events = Events(now_us)
        self.changed = threading.Condition()
        self.ledger = site.ledger()
        self.purchases: dict[str, dict[str, Purchase]] = {circuit: {} for circuit in site.lead_us}
        self.rebuilding: dict[str, int] = {}  # purchases that are up and change their rate: what they carry meanwhile
        self.hosts = {h.name: HostState() for h in site.network.hosts}
        self.installed = Installed()
        self.suspicions = 0  # how often it was learnt that the switches may not hold what was installed
        self.switches_back: set[int] = set()  # dpids of those to be audited at once
        self.store_error = ""  # memory may be ahead of the disk: nothing is promised until it was read anew
        self.stopping = False
        self._demands = 0  # how often a host has said that it wants to send, or not any more
        self.lines = Lines(site.return_after_us)
        self.redundant = redundant(site.network)
        self.prepared: dict[str, Plan] = {}  # by circuit, the plan for the case that it dies next
        self.prepared_for: object = None  # what they are made of
        self._receive_window_bytes = site.receive_window_bytes()
        self._planned_in: dict[str, int] = {}  # by reservation, the first epoch it is in
        self.planned_for = self._basis()
        self._started_us = now_us()
        self.sleeping_until_us = 0  # when the clock is looked at next without being woken
        # Epochs must grow over restarts, or agents would take us for an old controller; milliseconds outrun changes.
        self.desired_us = 0  # since when it is
        self.desired = self._fresh(now_us() // 1000 * 2, self.down())

    def flows(self) -> tuple[Flow, ...]:
        """Return every flow in the plan, or that would be if there were anything for it; under the lock."""
        return self.demand(self.down()).flows

    def down(self) -> frozenset[str]:
        """Return the circuits that are down and have a way round them; under the lock. Flows of others wait."""
        return self.redundant & self.lines.down(self.now_us())

    def note_lines(self) -> None:
        """Act on lines that have died since the last call, and say of those that are used again; under the lock."""
        self.ledger.down = self.down()
        for circuit, state in self.lines.news(self.now_us()):
            level = "info" if state is LineState.UP else "error"
            self.events.publish(f"circuit.{state}", level=level, circuit=circuit)
            if state is LineState.DOWN and (plan := self.prepared.pop(circuit, None)):
                self._wish(replace(plan, epoch=self.desired.epoch + 2))

    def _fresh(self, epoch: int, down: frozenset[str]) -> Plan:
        return planned(epoch, self.site.network, self.site.policy, self.demand(down))

    def must_prepare(self) -> bool:
        """Return whether the plans for a circuit's death go with an earlier plan; under the lock."""
        return bool(self.redundant) and self.prepared_for != self.planned_for

    def replan(self) -> None:
        """Make the plan for what there is now the desired one, if it is another; under the lock."""
        self.note_lines()
        if not self.must_replan():
            return
        self.planned_for = self._basis()
        epoch = self.desired.epoch + 2
        plan = self._fresh(epoch, self.down())
        running = {known.reservation_id for known in self.ledger.in_plan()}
        if replace(plan, epoch=self.desired.epoch) != self.desired:
            self._wish(plan)
        for host, state in self.hosts.items():
            watched = {e.flow.name for e in plan.of_host(host) if e.standby}
            state.wants = {name: wants for name, wants in state.wants.items() if name in watched}
        self._planned_in = {name: self._planned_in.get(name, self.desired.epoch) for name in running}

    def must_replan(self) -> bool:
        """Return whether anything has changed that the plan is made of; under the lock."""
        return self.planned_for != self._basis()

    def grant_anew(self) -> None:
        """Give the wanted plan another epoch, for a host that acts on it only once it is newer; under the lock."""
        self._wish(replace(self.desired, epoch=self.desired.epoch + 2))

    def _wish(self, plan: Plan) -> None:
        self.desired, self.desired_us = plan, self.now_us()
        self.changed.notify_all()

    def demanded(self) -> None:
        """Note that what hosts want to send has changed, and let the plan follow at once; under the lock."""
        self._demands += 1
        self.replan()

    def _basis(self) -> tuple[int, int, int, tuple[int, ...], frozenset[str]]:
        now_us = self.now_us()
        bought = tuple(self.bought_bps(c, now_us) for c in self.purchases)
        return id(self.ledger), self.ledger.moves, self._demands, bought, self.down()

    def demand(self, down: frozenset[str]) -> PlanInput:
        """Return what a plan is made of while some circuits are down; under the lock."""
        now_us = self.now_us()
        demand = self.ledger.demand(self.site.standing, now_us, lambda known: self._flow(known, down))
        bought = {
            Hop(tail, head): self.bought_bps(link.circuit, now_us)
            for tail, head, link in self.site.network.circuit_links
            if link.circuit in self.purchases
        }
        flows = tuple(standing_by(f) if self.hosts[f.host].waits(f) else f for f in demand.flows)
        whole = PlanInput(flows, {**demand.capacity_bps, **bought}, demand.reserved_bps)
        return without(self.site.network, self.site.policy, whole, down)

    def bought_bps(self, circuit: str, now_us: int) -> int:
        """Return what a circuit that is bought at need carries now; under the lock."""
        return sum(
            min(p.period.rate_bps, self.rebuilding.get(p.name, p.period.rate_bps))
            for p in self.purchases[circuit].values()
            if (p.state is PurchaseState.UP or (p.state is PurchaseState.DEPLOYING and p.name in self.rebuilding))
            and p.period.start_us <= now_us < p.period.end_us
        )

    def _path(self, known: Reservation, down: frozenset[str]) -> tuple[str, ...]:
        """Return the path a reservation takes now: its first that is up; if the lines of all are down its first."""
        bought = [path for path in known.paths if not self._not_up(path)]
        whole = (path for path in bought if not crossed(self.site.network, path, down))
        return next(whole, bought[0] if bought else ())

    def _not_up(self, path: tuple[str, ...]) -> list[str]:
        """Return the circuits of a path that are bought at need and are not up."""
        now_us = self.now_us()
        names = circuits(self.site.network, path)
        return [name for name in names if name in self.purchases and not self.bought_bps(name, now_us)]

    def _flow(self, known: Reservation, down: frozenset[str]) -> Flow | None:
        """Return the flow of a reservation between two hosts; None for one between sites, or without a circuit."""
        path, hosts = self._path(known, down), {host.name for host in self.site.network.hosts}
        if not path or not {known.a_end, known.z_end} <= hosts:
            return None
        flow = flow_on(self.site.network, f"{known.reservation_id}/{known.a_end}", known.flow_class, path)
        return replace(flow, wanted_bps=known.rate_bps, floor_bps=known.rate_bps)

    def lacks(self, known: Reservation) -> str:
        """Return what keeps a reservation whose time it is from being carried; empty if nothing; under the lock."""
        if known.state is ReservationState.ACTIVE and self._starting():
            return ""
        if cut := self._cut(known):
            return cut
        last = self.installed.steps[-1] if self.installed.steps else None
        if last is not None and last.error:
            return last.error
        if self.installed.hosts_epoch < self._planned_in.get(known.reservation_id, self.desired.epoch + 2):
            return "the plan with it is not in force yet"
        for end in (known.a_end, known.z_end):
            state = self.hosts.get(end)
            if state is not None and not state.connected:
                return f"{end}: its agent is not connected"
        return ""

    def _cut(self, known: Reservation) -> str:
        """Return what of a reservation's path is missing; empty if nothing, or if it is carried another way in full."""
        network, down = self.site.network, self.lines.down(self.now_us())
        path = self._path(known, down)
        if not path:
            names = self._not_up(known.path)
            purchases = [p for name in names for p in self.purchases[name].values()]
            states = ", ".join(f"{p.state} {p.reason}".strip() for p in purchases) or "not bought"
            return f"{', '.join(names)}: {states}"
        own = [e for e in self.desired.entries if e.flow.name == f"{known.reservation_id}/{known.a_end}"]
        led_round = any(carries(e, known.rate_bps, network, down) for e in own)
        dead = crossed(network, path, down)
        return f"{', '.join(dead)}: the line is down" if dead and not led_round else ""

    def acting(self) -> tuple[Entry, ...]:
        """Return the most that hosts may be acting on now, where the rules in force send it; under the lock."""
        now_us, rules = self.now_us(), self.installed.meters
        acting = (e for state in self.hosts.values() for e in state.leases.acting(now_us))
        return turned(acting, rules) if rules else tuple(acting)

    def lease_ends_us(self) -> list[int]:
        """Return when hosts may be acting on less by themselves, Unix time; under the lock."""
        now_us = self.now_us()
        return [at_us for state in self.hosts.values() if (at_us := state.leases.changes_us(now_us)) is not None]

    def _starting(self) -> bool:
        """Return whether this process has not had the time yet to find its switches and agents, which go on as told."""
        return not self.installed.hosts_epoch and self.now_us() < self._started_us + STARTING_US

    def unsettled(self) -> bool:
        """Return whether the state of a reservation is not what the layers say; under the lock."""
        return any(bool(self.lacks(r)) is (r.state is ReservationState.ACTIVE) for r in self.ledger.in_plan())

    def due_us(self) -> int:
        """Return when the clock has something to do next; under the lock."""
        dues_us = (self.ledger.due_us(), self.lines.due_us(self.now_us()))
        return min((due_us for due_us in dues_us if due_us is not None), default=MAX_TIME_US)

    def layers(self) -> dict[Hop, Layers]:
        """Return what each layer lets through now on each direction of each circuit that is up; under the lock."""
        acting, network = self.acting(), self.site.network
        dead = {Hop(t, h) for t, h, link in network.circuit_links if link.circuit in self.desired.down}
        return {
            name: Layers({}, {}, {}, 0) if name in dead else self._layers_on(name, link.circuit_bps, acting)
            for name, link in self.desired.links.items()
        }

    def _layers_on(self, link: Hop, circuit_bps: int, acting: tuple[Entry, ...]) -> Layers:
        crossing = [e for e in acting if link in e.flow.links]
        meters = self.installed.meters.links[link].classes if self.installed.meters else {}
        queues = self.installed.queues.links[link].classes if self.installed.queues else {}
        return Layers(
            {c: sum(e.frame_bps for e in crossing if e.flow.flow_class is c) for c in FlowClass},
            {c: limits.meter_bps for c, limits in meters.items()},
            {c: limits.queue_bps for c, limits in queues.items()},
            circuit_bps,
        )

    def sending(self, host: str, epoch: int, entries: tuple[Entry, ...]) -> Allocations:
        """Note that a host is being sent what it may do, and return the message; under the lock."""
        state = self.hosts[host]
        state.leases = state.leases.sent(epoch, entries, self.now_us(), self.site.lease_ms * 1000)
        led = {e.flow.name: e.flow.path for e in self.desired.of_host(host)}
        return Allocations(
            epoch=epoch,
            lease_ms=self.site.lease_ms,
            entries=tuple(self._allocation(e, led.get(e.flow.name, ())) for e in entries),
            receive_window_bytes=self._receive_window_bytes,
        )

    def _allocation(self, entry: Entry, led: tuple[str, ...]) -> Allocation:
        """Return what a host is told of an entry; ``led``: the path that a switch may have led its flow to already."""
        names = *circuits(self.site.network, entry.flow.path), *circuits(self.site.network, led)
        dscp = self.site.policy.classes[entry.flow.flow_class].dscp if self.site.hosts_mark else None
        return Allocation(
            name=entry.flow.name,
            flow_class=entry.flow.flow_class,
            dest=entry.flow.dest,
            rate_bps=entry.payload_bps,
            window_segments=entry.window_segments,
            dscp=dscp,
            standby_bps=entry.standby.payload_bps if entry.standby else None,
            size_bytes=entry.flow.size_bytes,
            circuits=tuple(dict.fromkeys(names)),
        )


@dataclass(frozen=True, slots=True)
class View:
    """A copy of the book for those who ask.

    Attributes:
        desired: the plan that is wanted.
        installed: the plan whose meters are in force, None before the first.
        layers: by link, what each layer lets through at this moment.
        hosts: every host's agent.
        error: why the last step failed, empty if it did not.
        lines: by circuit, how its line is.
        prepared: by circuit, the plan that is held ready for the case that it dies.
    """

    desired: Plan
    installed: Plan | None
    layers: Mapping[Hop, Layers]
    hosts: Mapping[str, HostState]
    error: str
    lines: Mapping[str, LineState]
    prepared: Mapping[str, Plan]
