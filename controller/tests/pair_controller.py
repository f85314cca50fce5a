"""One of two controllers of a world: all its parts are real, but for what is below and beside them."""

import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from controller.database import DatabaseError, DatabaseTaken
from controller.errors import NotKnown
from controller.plan.admission import Request
from controller.plan.faults import Closed, PlaceFault
from controller.plan.leading import TTL_US, PairStanding
from controller.plan.ledger import Created
from controller.plan.plan import Flow, Plan, PlanInput
from controller.plan.reservations import Constraints
from controller.reports import Reports
from controller.site import Site
from controller.southbound.openflow.session import SwitchSessions
from controller.southbound.openflow.tests.recorder import RecordedSwitches
from controller.state.clock import SiteClock
from controller.state.guard import GuardedState
from controller.state.value import SiteState
from controller.tests.fakes import ELAPSED_US, START_US, value_of
from controller.tests.pair_parts import PairDatabase, RoleDatapath, S, WorldProvider, WorldRow
from controller.use_cases import UseCases
from controller.work.clock_watch import ClockWatch
from controller.work.convergence import Convergence
from controller.work.leadership import Leadership
from controller.work.mending import Mending
from controller.work.pair import Pair
from controller.work.purchasing import Purchasing
from controller.work.repeating import Repeating
from topology.network import Hop
from topology.protocol import Allocations, Applied, Declined, FlowClass, Hello

if TYPE_CHECKING:
    from controller.tests.pair_world import PairWorld

LEASE_MS = 3_000
BOUGHT = "south"  # the circuit of which reservations need something; the flows take the other one
HOUR_US = 3_600 * S
REQUEST = Request(
    "la-serena",
    "champaign",
    FlowClass.URGENT,
    10**6,
    START_US + HOUR_US,
    START_US + 2 * HOUR_US,
    Constraints(include=(BOUGHT,)),
)


class Killed(BaseException):
    """A controller dies here."""


class OneSite(Site):
    """The site, of which the flows are the world's: what promises come to is not the matter."""

    flows: Callable[[], tuple[Flow, ...]]

    def ledger(self) -> Any:
        """Return a ledger that keeps promises, and asks for the world's flows."""
        found, flows = super().ledger(), self.flows
        found.demand = lambda *_: PlanInput(flows(), {})  # type: ignore[method-assign]
        return found


class PairController:
    """The parts of one, and what becomes of its process."""

    def __init__(self, world: "PairWorld", name: str, skew_us: int) -> None:
        self.world, self.name, self.skew_us = world, name, skew_us
        self.is_cut = self.is_stopped = self.is_there = self.leads = False
        self.datapaths: dict[str, RoleDatapath] = {}
        self.database: PairDatabase | None = None
        self.begins()

    # What it is asked by its parts.

    def moment(self) -> None:
        """See :class:`controller.tests.pair_parts.Asks`."""
        if self.is_there:
            self.world.moment(self)

    def wall_ms(self) -> int:
        """Its wall clock."""
        return self.wall_us() // 1000

    def wall_us(self) -> int:
        """Its wall clock."""
        return self.world.now_us + self.skew_us

    def elapsed_us(self) -> int:
        """The time that nobody can set; machines count it from different instants."""
        return self.world.now_us - START_US + ELAPSED_US + (S if self.name == "b" else 0)

    # Its process.

    def begins(self) -> None:
        """Start as one that stands by; nothing while the database is away."""
        with suppress(DatabaseError):
            self._begins()

    def _begins(self) -> None:
        world = self.world
        self.row = WorldRow(world.shared, self)
        self.leadership = Leadership(self.row, self.elapsed_us, TTL_US)  # type: ignore[arg-type]
        self.database = PairDatabase(world.shared, self)
        self.database.open_to_read()
        clock = SiteClock(self.elapsed_us, self.wall_us)
        self.state = GuardedState(world.site, clock.now, 0, stands_by=True)
        self.reports = Reports(self.state)
        self.use_cases = UseCases(self.state, self.database)
        saves = self.use_cases.saves
        clocks = ClockWatch(self.state, self.database, clock)
        self.pair = Pair(self.leadership, self.state, self.database, saves, clocks)
        leads = self.leadership.may_decide
        self.sessions = SwitchSessions(RecordedSwitches(), 0, (), lambda: self.leadership.seen_term, leads)
        self.repeating = Repeating(self.state, self.sessions, lambda: self.leadership.standing)
        self.queue_term = 0
        may_decide = self.leadership.may_decide
        self.convergence = Convergence(self.state, self, self, threading.Lock(), may_decide)
        self.mending = Mending(self.state, self, spawn=lambda work: work())
        provider = WorldProvider(world.sold, world.shared, self)
        self.buying = Purchasing(self.state, self.use_cases, BOUGHT, provider, may_decide)
        self.leads = False
        self.leadership.look()
        self.leadership.may_take = self.is_there = True
        for switch in world.switches:
            self.connects(switch)

    def ends(self) -> None:
        """The process is gone, with all its connections."""
        self.is_there = self.leads = False
        for switch in tuple(self.datapaths):
            self.loses(switch)
        self.sessions.close()
        for host in self.world.hosts.values():
            for streams in (host.inbox, host.outbox, host.said):
                streams.pop(self.name, None)
        if self.database is not None:
            self.database.close()

    @property
    def value(self) -> SiteState:
        """Its state."""
        return value_of(self.state)

    def acts(self, act: Callable[[], object]) -> None:
        """Let it do something; one that dies, or has been followed, begins anew."""
        if not self.is_there or self.is_stopped:
            return
        try:
            act()
        except (Killed, DatabaseTaken):
            self.ends()
            self.begins()

    def looks(self) -> None:
        """The thread of its row does its next act, and what follows from that."""
        with suppress(DatabaseError):
            self.leadership.step()
        if self.leadership.standing is PairStanding.DEPOSED:
            raise Killed
        if self.leadership.led.is_set() and not self.leads:
            with suppress(DatabaseError):
                self.pair._look()  # while the session that writes is being opened
            self.moment()
            try:
                self.pair.lead((self.sessions, self), self.greets)
            except DatabaseError:
                raise Killed from None  # its supervisor starts it again
            self.leads = True
        elif not self.leads:
            with suppress(DatabaseError):
                self.pair._look()

    def lead(self, term: int) -> None:
        """Write queues under a term from now on; the plan is made by now."""
        self.queue_term = term
        self.world.led(term)

    def greets(self) -> None:
        """Greet all agents anew, as ``HostSessions`` does."""
        for name, host in self.world.hosts.items():
            if self.name in host.said:
                self.hears(name, replace(host.said[self.name], lease_left_ms=LEASE_MS))

    def works(self) -> None:
        """All of it that decides does what it can."""
        if not self.leads:
            return
        try:
            self.use_cases.saves.recover()
        except DatabaseTaken:
            raise
        except DatabaseError:
            pass
        self.use_cases.tick()
        with self.state.changed:
            self.state.replan()
        self.mending.look()
        self.convergence.step()
        self.buying.step()

    def gives_back(self, name: str) -> bool:
        """Return whether it has said that a reservation is given back, once that is saved."""
        done: list[bool] = []

        def ask() -> None:
            with suppress(DatabaseError, NotKnown):
                self.use_cases.release(name).saved.result()
                done.append(True)

        if self.is_there and not self.is_stopped and self.pair.view().takes:
            self.acts(ask)
        return bool(done)

    def answers(self, key: str) -> str | None:
        """Return the reservation that it answers a request with, once it is saved; None for any other answer."""
        if not self.is_there or self.is_stopped or not self.pair.view().takes:
            return None
        found: list[str] = []

        def ask() -> None:
            with suppress(DatabaseError):
                held = self.use_cases.hold(lambda _: REQUEST, lambda now: Created(f"{key}-{self.name}", now, key, key))
                held.saved.result()
                name = held.value.reservation_id
                with suppress(NotKnown):  # it has ended already
                    self.use_cases.commit(name).saved.result()
                found.append(name)

        self.acts(ask)
        return found[0] if found else None

    # Switches and queues, as its convergence knows them.

    def connects(self, switch: str) -> None:
        """A switch calls it."""
        if self.is_there and switch not in self.datapaths:
            role = self.world.switches[switch]
            datapath = RoleDatapath(self.sessions, id=role.dpid, switch=role)
            self.datapaths[switch] = datapath
            self.sessions.connected(datapath)
            if datapath.is_closed:
                self.loses(switch)

    def loses(self, switch: str) -> None:
        """A switch's connection ends."""
        datapath = self.datapaths.pop(switch, None)
        if datapath is not None:
            datapath.switch.roles.pop(datapath, None)
            self.sessions.disconnected(datapath)

    def put_meters(self, plan: Plan, shut: Closed, *, no_higher: bool = False) -> tuple[PlaceFault, ...]:
        """Each switch by itself."""
        names = [name for name in self.world.switches if name not in shut.switches]
        found = [self._put_meters(name, plan, shut, no_higher=no_higher) for name in names]
        return tuple(fault for fault in found if fault is not None)

    def _put_meters(self, switch: str, plan: Plan, shut: Closed, *, no_higher: bool = False) -> PlaceFault | None:
        silent = PlaceFault(f"switch {switch}", "it does not answer", frozenset({switch}))
        for part in self.world.meter_parts(switch, plan, shut, no_higher=no_higher):
            datapath = self.datapaths.get(switch)
            if datapath is None or datapath.is_closed or datapath.id not in self.sessions.dpids():
                self.loses(switch)
                return silent
            self.moment()
            if self.datapaths.get(switch) is not datapath or not datapath.may_write:
                self.loses(switch)
                return silent
            heard, term = self.world.switches[switch].heard, self.leadership.term
            assert term >= heard, f"term {term} has written to {switch}, which has heard term {heard}"
            part()
            self.world.check()
        return None

    def put_queues(self, plan: Plan, shut: Closed, *, in_doubt: bool = False) -> tuple[PlaceFault, ...]:
        """One transaction, which a later term refuses."""
        return self._put_queues(plan, [hop for hop in plan.links if hop not in shut.ports])

    def _put_queues(self, plan: Plan, hops: Collection[Hop]) -> tuple[PlaceFault, ...]:
        self.moment()
        world = self.world
        if self.queue_term < world.queue_term:
            return tuple(PlaceFault(f"port {hop}", "outranked", ports=frozenset({hop})) for hop in hops)
        world.queue_term = self.queue_term
        world.put_port_queues(plan, hops)
        world.check()
        return ()

    def mended(self, fault: PlaceFault, meters: Plan, queues: Plan) -> tuple[PlaceFault, ...]:
        """Bring a place to what is in force there."""
        told = (self._put_meters(name, meters, Closed(), no_higher=fault.is_unsure) for name in fault.concerned)
        failed = tuple(found for found in told if found is not None)
        return failed or (self._put_queues(queues, fault.ports) if fault.ports else ())

    # Hosts.

    def send(self, host: str, allocations: Allocations) -> None:
        """Put a message on its way."""
        if self.name in self.world.hosts[host].said:
            entries = self.value.reported.hosts[host].sent
            self.world.hosts[host].inbox[self.name].append((self.world.now_us, allocations, entries))

    def hears(self, host: str, said: Applied | Declined | Hello) -> None:
        """Take in what a host says."""
        if isinstance(said, Applied):
            self.reports.hosts_applied([(host, said)])
        elif isinstance(said, Declined):
            self.reports.host_declined(host, said)
        else:
            told = self.reports.host_up(said)
            if told is not None and told.epoch:
                self.send(host, told)
