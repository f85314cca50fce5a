"""A world around the real state and its convergence: hosts that are slow, hang, step down or go; switches that fail.

It keeps what every layer really does, apart from what the controller believes of it. Messages of one stream arrive in
order, at any time; a stream that breaks loses what is in it.
"""

import threading
from collections import deque
from dataclasses import dataclass, field, replace

from controller.plan.invariant import Layers, violations
from controller.plan.plan import THE_REST, Entry, Flow, Plan
from controller.plan.policy import DEFAULT_POLICY
from controller.reports import Reports
from controller.site import Site
from controller.southbound.errors import SwitchGone
from controller.state.guard import GuardedState
from controller.state.value import SiteState
from controller.tests.fakes import Clock, value_of
from controller.work.convergence import Convergence
from topology.network import Hop, Network
from topology.protocol import Allocations, Applied, Demand, FlowClass, Hello

LEASE_MS = 3_000
LEASE_US = LEASE_MS * 1000


@dataclass(slots=True)
class WorldHost:
    """A host as it is.

    Attributes:
        in_force: what its kernel holds, and of which epoch.
        until_us: when that lease ends.
        stepped_down: the flows that it keeps to their standby rate.
        inbox: what is on its way to it, with the time it was sent.
        outbox: what is on its way to the controller.
        hangs: it reads nothing.
    """

    in_force: tuple[int, tuple[Entry, ...]] = (0, ())
    until_us: int = 0
    stepped_down: set[str] = field(default_factory=set)
    inbox: deque[tuple[int, int, tuple[Entry, ...]]] = field(default_factory=deque)
    outbox: deque[Applied | Demand] = field(default_factory=deque)
    hangs: bool = False

    def acting(self, now_us: int) -> tuple[Entry, ...]:
        """Return what it really may send."""
        if now_us >= self.until_us:
            return ()
        return tuple(e.stepped_down() if e.flow.name in self.stepped_down else e for e in self.in_force[1])


class World:
    """The site, and what became of it."""

    def __init__(self, network: Network) -> None:
        self.clock = Clock()
        self.flows: tuple[Flow, ...] = ()
        self.capacity_bps: dict[Hop, int] = {}
        self.state = GuardedState(Site(network, DEFAULT_POLICY, (), LEASE_MS, together_us=0), self.clock.instant)
        ledger = self.value.wished.ledger
        ledger.demand = self._demand  # type: ignore[method-assign]  # what promises come to is not the matter
        self.reports = Reports(self.state)
        self.convergence = Convergence(self.state, self, self, threading.Lock())
        self.hosts = {host.name: WorldHost() for host in network.hosts}
        nothing = self.value.desired.plan
        self.meters = {n: {c: x.meter_bps for c, x in link.classes.items()} for n, link in nothing.links.items()}
        self.queues = {n: {c: x.queue_bps for c, x in link.classes.items()} for n, link in nothing.links.items()}
        self.circuits = {n: link.circuit_bps for n, link in nothing.links.items()}
        self.routed: dict[tuple[str, str, int], Flow] = {}  # as switches tell flows apart
        self.fails_after: int | None = None  # so many parts of a switch's step
        for name in self.hosts:
            self.calls(name)

    @property
    def value(self) -> SiteState:
        """The state as it is now."""
        return value_of(self.state)

    def _demand(self, _standing, _now_us, _flow_of):
        from controller.plan.plan import PlanInput

        return PlanInput(self.flows, self.capacity_bps)

    def wants(self, flows: tuple[Flow, ...], capacity_bps: dict[Hop, int]) -> None:
        """Make another plan the wanted one."""
        self.flows, self.capacity_bps = flows, capacity_bps
        with self.state.changed:
            self.state.demand_changed()

    # The layers below, as the convergence knows them.

    def send(self, host: str, allocations: Allocations) -> None:
        """Put a message on its way."""
        entries = self.value.reported.hosts[host].sent
        self.hosts[host].inbox.append((self.clock.now_us, allocations.epoch, entries))

    def put_meters(self, plan: Plan, *, no_higher: bool = False) -> None:
        """Meters that shrink, then rules, then meters that grow; each may be the last that the switch takes."""
        wanted = {n: {c: x.meter_bps for c, x in link.classes.items()} for n, link in plan.links.items()}
        if no_higher:
            wanted = {
                n: {c: min(bps, self.meters[n][c]) for c, bps in by_class.items()} for n, by_class in wanted.items()
            }
        for n, by_class in wanted.items():
            self._part()
            self.meters[n] = {c: min(bps, self.meters[n][c]) for c, bps in by_class.items()}
            self.check()
        self._part()
        self.routed = {_seen_as(e.flow): e.flow for e in plan.entries}
        self.check()
        for n, by_class in wanted.items():
            self._part()
            self.meters[n] = by_class
            self.check()

    def put_queues(self, plan: Plan) -> None:
        """One transaction."""
        self._part()
        self.queues = {n: {c: x.queue_bps for c, x in link.classes.items()} for n, link in plan.links.items()}
        self.circuits = {n: link.circuit_bps for n, link in plan.links.items()}
        self.check()

    def _part(self) -> None:
        if self.fails_after is not None:
            self.fails_after -= 1
            if self.fails_after < 0:
                self.fails_after = None
                raise SwitchGone(dpid=1)

    # What happens to hosts.

    def reads(self, host: str) -> None:
        """A host reads all that has arrived, and acts on the newest; what waited longer than its lease gives none."""
        it, now_us = self.hosts[host], self.clock.now_us
        if it.hangs or not it.inbox:
            return
        sent_us, epoch, entries = it.inbox[-1]
        it.inbox.clear()
        if epoch != it.in_force[0]:
            it.stepped_down = set()
        it.in_force, it.until_us = (epoch, entries), min(now_us, sent_us) + LEASE_US
        it.outbox.append(Applied(epoch))
        self.check()

    def heard(self, host: str) -> None:
        """The controller hears what a host has said first."""
        it = self.hosts[host]
        if it.outbox:
            said = it.outbox.popleft()
            if isinstance(said, Applied):
                self.reports.host_applied(host, said)
            else:
                self.reports.host_demand(host, said)

    def senses(self, host: str, *, wants: bool) -> None:
        """A host's kernel sees that its watched flows want to send, or that their flight has ended."""
        it = self.hosts[host]
        epoch, entries = it.in_force
        if it.hangs or not self.value.reported.hosts[host].connected or self.clock.now_us >= it.until_us:
            return
        for entry in entries:
            if entry.standby:
                if not wants:
                    it.stepped_down.add(entry.flow.name)
                standing_by = entry.flow.name in it.stepped_down or entry.stepped_down() == entry
                it.outbox.append(Demand(epoch, entry.flow.name, wants, standing_by))

    def breaks(self, host: str) -> None:
        """The stream breaks, with all that is in it."""
        it = self.hosts[host]
        it.inbox.clear()
        it.outbox.clear()
        if self.value.reported.hosts[host].connected:
            self.reports.host_down(host)

    def calls(self, host: str) -> None:
        """A host dials again."""
        if self.hosts[host].hangs or self.value.reported.hosts[host].connected:
            return
        told = self.reports.host_up(Hello(host, "0", "6.12"))
        if told.epoch:
            self.send(host, told)

    def passes(self, us: int) -> None:
        """Time passes; who is connected and reads has its lease renewed meanwhile."""
        self.clock.now_us += us
        for name, it in self.hosts.items():
            if self.value.reported.hosts[name].connected and not it.hangs and not it.inbox and it.in_force[0]:
                it.until_us = self.clock.now_us + LEASE_US
        self.check()

    # What must hold.

    def check(self) -> None:
        """Fail if a layer lets through more than the next; a flow no switch knows of is unplanned, and policed so."""
        entries = [e for it in self.hosts.values() for e in it.acting(self.clock.now_us)]
        rules = ((e, self.routed.get(_seen_as(e.flow), self.routed.get((*_seen_as(e.flow)[:2], 0)))) for e in entries)
        real = [replace(e, flow=flow) for e, flow in rules if flow is not None]
        found = violations({n: self._on(n, real) for n in self.meters})
        assert not found, "; ".join(map(str, found))

    def _on(self, link: Hop, entries: list[Entry]) -> Layers:
        crossing = [e for e in entries if link in e.flow.links]
        hosts = {c: sum(e.frame_bps for e in crossing if e.flow.flow_class is c) for c in FlowClass}
        return Layers(hosts, self.meters[link], self.queues[link], self.circuits[link])

    def settles(self) -> None:
        """Let everybody say what he has to say, and check that all is as desired then."""
        self.fails_after = None
        for it in self.hosts.values():
            it.hangs = False
        for _ in range(40):
            self.convergence.step()
            for name in self.hosts:
                self.calls(name)
                self.reads(name)
                while self.hosts[name].outbox:
                    self.heard(name)
            self.passes(LEASE_US // 10)
        desired = self.value.desired.plan
        assert self.value.installed.meters == desired
        assert self.meters == {n: {c: x.meter_bps for c, x in k.classes.items()} for n, k in desired.links.items()}
        assert self.queues == {n: {c: x.queue_bps for c, x in k.classes.items()} for n, k in desired.links.items()}
        for name, it in self.hosts.items():
            assert it.acting(self.clock.now_us) == desired.of_host(name), name
        assert self.routed == {_seen_as(e.flow): e.flow for e in desired.entries}


def _seen_as(flow: Flow) -> tuple[str, str, int]:
    """Return what a switch sees of a flow: the pair of hosts, and its mark; the rest it matches without one."""
    return flow.host, flow.target, 0 if flow.selector == THE_REST else flow.mark or 0
