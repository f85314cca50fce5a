"""A world around the real state and its convergence: hosts that are slow, hang, step down or go; switches that fail.

It keeps what every layer really does, apart from what the controller believes of it. Messages of one stream arrive in
order, at any time; a stream that breaks loses what is in it.
"""

import threading
from dataclasses import replace

from controller.database.terms import TERM_STEP
from controller.plan.failover import METER_STEP_BPS
from controller.plan.faults import Closed, PlaceFault
from controller.plan.invariant import Layers, violations
from controller.plan.paths import way_round
from controller.plan.plan import Entry, Flow, Plan
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.transitions import within
from controller.reports import Reports
from controller.site import Site
from controller.state.acts import acts
from controller.state.desired import demand_now, desired_plan
from controller.state.grants import grant
from controller.state.guard import GuardedState
from controller.state.layers import UNKNOWN, link_layers
from controller.state.value import SiteState
from controller.tests.fakes import Clock, value_of
from controller.tests.ground import Ground
from controller.tests.world_host import WorldHost
from controller.work.convergence import Convergence
from controller.work.kept import KeptLooks, untold
from controller.work.mending import Mending
from controller.work.timekeeper import prepare
from topology.network import Hop, Network, hops
from topology.protocol import Allocations, Applied, Demand, Hello

LEASE_MS = 3_000
LEASE_US = LEASE_MS * 1000
FOREVER_US = 2**62
AN_END = (1, 1)  # of a circuit; one end's word is enough
START_TAKES_US = 100_000  # epochs begin with the time, so that none is given twice


class World(Ground):
    """The site, and what became of it."""

    def __init__(self, network: Network) -> None:
        self.clock = Clock()
        self.term = 0
        self.flows: tuple[Flow, ...] = ()
        self.capacity_bps: dict[Hop, int] = {}
        self.cut: set[str] = set()  # circuits whose line is dead
        self.worked_on: set[str] = set()  # circuits that are to carry nothing
        self.site = Site(network, DEFAULT_POLICY, (), LEASE_MS, together_us=0)
        self.inherited_until_us = 0
        self.inherited_bps: dict[Hop, int] = {}  # all that hosts may send, by the ways they were told
        self._controller_begins()
        self.hosts = {host.name: WorldHost() for host in network.hosts}
        super().__init__(network, self.value.desired.plan)
        self.fails_after: int | None = None  # so many parts of a switch's step, once
        self.broken: set[str | Hop] = set()  # switches, ports and databases that do not do what they are told
        for name in self.hosts:
            self.calls(name)

    def _controller_begins(self) -> None:
        self.term += TERM_STEP
        self.state = GuardedState(self.site, self.clock.instant, self.term)
        ledger = self.value.wished.ledger
        self._scheduled = ledger.demand
        ledger.demand = self._demand  # type: ignore[method-assign]  # what promises come to is not the matter
        for circuit in self.worked_on:
            self._set_rate(circuit, 0)
        for circuit in self.cut:
            self._says(circuit, is_live=False)
        self.reports = Reports(self.state)
        self.convergence = Convergence(self.state, self, self, threading.Lock())
        self.kept, self.kept_layers = KeptLooks(), UNKNOWN
        self.mending = Mending(self.state, self, spawn=lambda work: work())

    def starts_again(self) -> None:
        """The controller dies, and another one begins, which knows what is wanted and nothing else."""
        self.inherited_until_us = self.clock.now_us + START_TAKES_US + LEASE_US
        self.inherited_bps = self._sockets_bps()
        for host in self.hosts:
            self.breaks(host)
        self.clock.now_us += START_TAKES_US
        self._controller_begins()
        with self.state.changed:
            self.state.demand_changed()
        self.check()

    @property
    def value(self) -> SiteState:
        """The state as it is now."""
        return value_of(self.state)

    def _demand(self, standing, now_us, flow_of, path_of):
        scheduled = self._scheduled(standing, now_us, flow_of, path_of)
        return replace(scheduled, flows=self.flows, capacity_bps=scheduled.capacity_bps | self.capacity_bps)

    def wants(self, flows: tuple[Flow, ...], capacity_bps: dict[Hop, int]) -> None:
        """Make another plan the wanted one."""
        self.flows, self.capacity_bps = flows, capacity_bps
        with self.state.changed:
            self.state.demand_changed()

    # What happens to circuits.

    def line(self, circuit: str, *, is_live: bool) -> None:
        """Let a circuit's line die, or be there again; its switch says so."""
        (self.cut.discard if is_live else self.cut.add)(circuit)
        self._says(circuit, is_live=is_live)

    def _says(self, circuit: str, *, is_live: bool) -> None:
        with self.state.changed:
            reported = self.state.reported
            lines = reported.lines.said(circuit, AN_END, self.state.elapsed_us(), is_live=is_live)
            self.state.put(reported=replace(reported, lines=lines))
            self.state.note_lines()

    def works_on(self, circuit: str, *, is_over: bool) -> None:
        """Let a circuit carry nothing from now on, or what it carries by itself."""
        (self.worked_on.discard if is_over else self.worked_on.add)(circuit)
        self._set_rate(circuit, None if is_over else 0)
        with self.state.changed:
            self.state.demand_changed()

    def _set_rate(self, circuit: str, rate_bps: int | None) -> None:
        links = [(Hop(tail, head), link) for tail, head, link in self.site.network.circuit_links]
        for hop, link in links:
            if link.circuit == circuit:
                bps = link.rate_bps if rate_bps is None else rate_bps
                self.value.wished.ledger.set_schedule(hop, [(self.clock.now_us, FOREVER_US, bps)])

    def clock_looks(self) -> None:
        """The clock's thread sees what has changed by itself, and prepares for deaths."""
        with self.state.changed:
            self.state.replan()
        if not self.value.installed.faults:
            self._check_plan_is_of_now()
        prepare(self.state)

    # The layers below, as the convergence knows them.

    def send(self, host: str, allocations: Allocations) -> None:
        """Put a message on its way."""
        entries = self.value.reported.hosts[host].sent
        told = [(one.name, one.rate_bps) for one in allocations.entries]
        assert told == [(e.flow.name, e.payload_bps) for e in entries], "it counts as told of something else"
        self.hosts[host].inbox.append((self.clock.now_us, allocations.epoch, entries))

    def put_meters(self, plan: Plan, shut: Closed, *, no_higher: bool = False) -> tuple[PlaceFault, ...]:
        """Each switch by itself."""
        names = [switch.name for switch in self.state.site.network.switches if switch.name not in shut.switches]
        found = [self._put_meters(name, plan, shut, no_higher=no_higher) for name in names]
        return tuple(fault for fault in found if fault is not None)

    def _put_meters(self, switch: str, plan: Plan, shut: Closed, *, no_higher: bool = False) -> PlaceFault | None:
        """Meters that shrink, then rules, then meters that grow; each may be the last that the switch takes."""
        for part in self.meter_parts(switch, plan, shut, no_higher=no_higher):
            if self._fails(switch):
                return _silent(switch)
            part()
            self.check()
        return None

    def put_queues(self, plan: Plan, shut: Closed, *, in_doubt: bool = False) -> tuple[PlaceFault, ...]:
        """One transaction for each switch's database, for ports that are there and have, or may have, other queues."""
        unlike = [hop for hop in plan.links if in_doubt or not self.has_queues(plan, hop)]
        return self._put_queues(plan, [hop for hop in unlike if hop not in shut.ports])

    def _put_queues(self, plan: Plan, hops: list[Hop]) -> tuple[PlaceFault, ...]:
        silent: dict[str, list[Hop]] = {}
        for hop in hops:
            if database_of(hop.tail) in self.broken:
                silent.setdefault(database_of(hop.tail), []).append(hop)
        failed = [hop for hop in hops if database_of(hop.tail) not in silent and self._fails(hop)]
        self.put_port_queues(plan, [hop for hop in hops if database_of(hop.tail) not in silent and hop not in failed])
        self.check()
        return (
            *(PlaceFault(f"port {hop}", "it is not there", ports=frozenset({hop})) for hop in failed),
            *(PlaceFault(place, "it does not answer", ports=frozenset(ports)) for place, ports in silent.items()),
        )

    def mended(self, fault: PlaceFault, meters: Plan, queues: Plan) -> tuple[PlaceFault, ...]:
        """Bring a place to what is in force there."""
        told = (self._put_meters(name, meters, Closed(), no_higher=fault.is_unsure) for name in fault.concerned)
        return tuple(fault for f in told if f is not None) or self._put_queues(queues, list(fault.ports))

    def _fails(self, place: str | Hop) -> bool:
        if self.fails_after is not None:
            self.fails_after -= 1
            if self.fails_after < 0:
                self.fails_after = None
                return True
        return place in self.broken

    # What happens to hosts.

    def reads(self, host: str) -> None:
        """A host reads all that has arrived, and acts on the newest; what waited longer than its lease gives none."""
        it, now_us = self.hosts[host], self.clock.now_us
        if it.hangs or not it.inbox:
            return
        sent_us, epoch, entries = it.inbox[-1]
        it.inbox.clear()
        begins = [e.flow.name for e in entries if e.standby] if it.is_first else []
        if epoch != it.in_force[0]:
            it.stepped_down, it.is_first = {*begins}, False
        it.in_force, it.until_us = (epoch, entries), min(now_us, sent_us) + LEASE_US
        it.outbox += (Applied(epoch), *(Demand(epoch, name, wants=False, standing_by=True) for name in begins))
        self.check()

    def heard(self, host: str) -> None:
        """The controller hears what a host has said first."""
        it = self.hosts[host]
        if it.outbox:
            said = it.outbox.popleft()
            if isinstance(said, Applied):
                self.reports.hosts_applied([(host, said)])
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

    def starts_anew(self, host: str) -> None:
        """A host's machine starts anew: it holds nothing, and remembers nothing of what it has said."""
        self.breaks(host)
        self.hosts[host] = WorldHost(hangs=self.hosts[host].hangs, is_first=True)

    def calls(self, host: str) -> None:
        """A host dials again."""
        if self.hosts[host].hangs or self.value.reported.hosts[host].connected:
            return
        it = self.hosts[host]
        epoch, entries = it.in_force if self.clock.now_us < it.until_us else (0, ())
        held = grant(self.site, self.value.desired.plan, host, epoch, entries).entries
        left_ms = max(0, it.until_us - self.clock.now_us) // 1000
        told = self.reports.host_up(Hello(host, "0", "6.12", epoch, left_ms, held))
        if told.epoch:
            self.send(host, told)

    def passes(self, us: int) -> None:
        """Time passes; who is connected and reads has its lease renewed meanwhile."""
        self.clock.now_us += us
        for name, it in self.hosts.items():
            known, epoch = self.value.reported.hosts[name], it.in_force[0]
            if known.connected and not it.hangs and not it.inbox and epoch and epoch == known.sent_epoch:
                it.until_us = self.clock.now_us + LEASE_US
        self.check()

    # What must hold.

    def check(self) -> None:
        """Fail if a layer lets through more than the next, or if what is kept of earlier looks changes an answer."""
        self._check_kept()
        self._check_layers()

    def _check_kept(self) -> None:
        """Fail if an answer that is worked out from the last look's is not what it is without."""
        now, at_us, kept = self.value, self.clock.now_us, self.kept
        seen = kept.acts(now.reported, now.installed.meters, at_us)
        whole = acts(now.reported, now.installed.meters, at_us)
        assert (seen.by_host, seen.ends_us) == (whole.by_host, whole.ends_us)
        assert {hop: by for hop, by in seen.bps.items() if any(by.values())} == whole.bps
        self.kept_layers = link_layers(self.site, now, at_us, seen, self.kept_layers)
        without = link_layers(self.site, now, at_us, whole)
        assert self.kept_layers.by_link == without.by_link
        assert self.kept_layers.violations == without.violations
        for plan in filter(None, (now.desired.plan, now.installed.meters)):
            assert kept.untold(now.reported.hosts, plan) == untold(now.reported.hosts, plan).names
            is_within = within([e for entries in whole.by_host.values() for e in entries], plan)
            assert kept.is_within(seen.by_host, plan, "a plan") is is_within

    def _check_layers(self) -> None:
        """Fail if a layer lets through more than the next; a flow no switch knows of is unplanned, and policed so."""
        entries = [e for it in self.hosts.values() for e in it.acting(self.clock.now_us)]
        found = violations({n: self._with_inherited(n, seen) for n, seen in self.layers(entries).items()})
        assert not found, "; ".join(map(str, found))

    def _with_inherited(self, link: Hop, now: Layers) -> Layers:
        """Return layers with what switches let through of what hosts do, until a controller's first plan is granted.

        Its hosts may do what an earlier one granted them, and all together no more than they did then.
        """
        if not self.inherited_bps or (
            self.clock.now_us >= self.inherited_until_us and self.value.installed.hosts_epoch
        ):
            return now
        sockets_bps, most_bps = self._sockets_bps()[link], max(self.inherited_bps[link], now.circuit_bps)
        assert sockets_bps <= most_bps, f"{link}: sockets of {sockets_bps:,} bit/s after a start, {most_bps:,} before"
        return replace(now, hosts_bps={c: min(bps, now.meters_bps[c]) for c, bps in now.hosts_bps.items()})

    def _sockets_bps(self) -> dict[Hop, int]:
        """Return what all hosts may send by each link, whether a switch would let it through or not."""
        entries = [e for it in self.hosts.values() for e in it.acting(self.clock.now_us)]
        return {n: sum(e.frame_bps for e in entries if n in e.flow.links) for n in self.meters}

    def settles(self) -> None:
        """Let everybody say what he has to say, and check that all is as desired then."""
        self.fails_after = None
        self.broken = set()
        for it in self.hosts.values():
            it.hangs = False
        for _ in range(40):
            with self.state.changed:
                self.state.replan()  # as the clock's thread does for hosts that have called
            self.mending.look()
            self.convergence.step()
            for name in self.hosts:
                self.calls(name)
                self.reads(name)
                while self.hosts[name].outbox:
                    self.heard(name)
            self.passes(LEASE_US // 10)
        self._check_plan_is_of_now()
        desired = self.value.desired.plan
        self._check_ways(desired)
        assert self.value.installed.meters == desired
        assert self.is_as_planned(desired)
        for name, it in self.hosts.items():
            assert _whole_kbit(it.acting(self.clock.now_us)) == _whole_kbit(desired.of_host(name)), name
        assert not self.value.installed.faults

    def _check_plan_is_of_now(self) -> None:
        """Fail if the desired plan is not the one that is worked out of what there is now."""
        value, desired = self.value, self.value.desired.plan
        demand = demand_now(self.site, value.wished, value.reported, self.clock.instant())
        assert desired == desired_plan(self.site, value.installed, desired.epoch, demand), "it is worked out otherwise"

    @property
    def down(self) -> frozenset[str]:
        """The circuits that are to carry nothing and have a way round them."""
        return self.site.redundant & (self.cut | self.worked_on)

    def led_over_dead(self, plan: Plan) -> list[Entry]:
        """Return the entries of a plan whose way is by a circuit that is down."""
        return [e for e in plan.entries if not self.down.isdisjoint(self.site.network.circuits_along(e.flow.path))]

    def _check_ways(self, plan: Plan) -> None:
        """Fail if a flow goes by a circuit that is down, or has no part though there is a way round that."""
        network, down = self.site.network, self.down
        assert not self.led_over_dead(plan)
        moved = [f for f in self.flows if not down.isdisjoint(network.circuits_along(f.path))]
        ways = {f.name: way_round(network, f.host, f.target, down) for f in moved}
        empty = {hop for hop, bps in self.capacity_bps.items() if not bps}
        both_ways = {name: {*hops(way), *hops(way[::-1])} for name, way in ways.items() if way is not None}
        led = {name for name, there in both_ways.items() if empty.isdisjoint(there)}  # answers need room too
        assert led <= {e.flow.name for e in plan.entries}


def database_of(switch: str) -> str:
    """Return the name of the database that has the queues of a switch's ports."""
    return f"database of {switch}"


def _silent(switch: str) -> PlaceFault:
    return PlaceFault(f"switch {switch}", "it does not answer", frozenset({switch}))


def _whole_kbit(entries: tuple[Entry, ...]) -> list[Entry]:
    """Return entries as they are; what stands by with all that it has, to less than a meter's step, as it stands by."""
    return [
        e.stepped_down() if e.standby is not None and e.frame_bps < e.standby.frame_bps + METER_STEP_BPS else e
        for e in entries
    ]
