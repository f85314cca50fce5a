"""The site's switches as one: a plan goes to each of them, and to the database that has its queues."""

import threading
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from operator import is_

from controller.plan.faults import OPEN, Closed, PlaceFault
from controller.plan.plan import LinkPlan, Plan
from controller.plan.wiring import SeenPorts, with_port_numbers
from controller.site import Site
from controller.southbound.errors import SouthboundError, SwitchGone
from controller.southbound.openflow.circuit_ports import circuit_ports
from controller.southbound.openflow.desired import class_meter_ids, lowered
from controller.southbound.openflow.meter_numbers import MeterNumbers
from controller.southbound.openflow.plan_aggregates import NO_PLAN, PlanAggregates, plan_aggregates
from controller.southbound.openflow.rules import make_ready
from controller.southbound.openflow.session import SwitchSessions
from controller.southbound.openflow.state import SwitchState
from controller.southbound.openflow.switch_book import SwitchBook
from controller.southbound.ovsdb.desired_queues import kept_open_bps, link_queues
from controller.southbound.ovsdb.queues import PortQueues
from controller.southbound.ovsdb.writer import QueueWriter
from topology.network import Hop, Network, Switch

_NONE: Mapping[object, object] = {}
TIMEOUT_S = 5.0  # a switch on the site's own network answers in milliseconds
READY_AFTER_S = 1.0  # a transition takes less, and is not to share its time


@dataclass(frozen=True, slots=True)
class _Brought:
    """What a switch has confirmed last, and of what it was made: a plan that has the very same needs no look at it."""

    down: frozenset[str]
    ports: SeenPorts
    begun: object
    crossing: object
    numbers: object
    links: tuple[LinkPlan, ...]
    state: SwitchState


@dataclass(frozen=True, slots=True)
class _PortBrought:
    """The queues that a port has confirmed last, and of what they were made."""

    link: LinkPlan
    least_bps: int
    queues: PortQueues


class SiteSwitches:
    """Every switch of the site."""

    def __init__(
        self,
        site: Site,
        sessions: SwitchSessions,
        writers: Mapping[str, QueueWriter],
        numbers: MeterNumbers | None = None,
    ) -> None:
        """Wire the switches.

        Args:
            site: the network and the policy.
            sessions: the OpenFlow connections.
            writers: by switch name, the writer of its queues; switches that share a database share a writer.
            numbers: of senders' meters; an audit of these switches has the same.
        """
        self._site = site
        self._sessions = sessions
        self._writers = writers
        known = numbers or MeterNumbers()
        self._books = {switch.name: SwitchBook(switch, site.policy, known) for switch in site.network.switches}
        self._brought: dict[str, _Brought] = {}
        self._numbers = known
        self._leaving: dict[str, tuple[Hop, ...]] = {
            switch.name: tuple(Hop(switch.name, head) for head, _ in circuit_ports(site.network, switch.name))
            for switch in site.network.switches
        }
        self._ready: dict[str, tuple[Network, frozenset[str]]] = {}  # each switch's has one writer at a time
        self._aggregates, self._looking = NO_PLAN, threading.Lock()  # a fault is mended by another thread
        self._ports = {
            Hop(tail, head): link for tail, head, link in site.network.circuit_links if site.network.is_ours(tail)
        }
        self._queues: dict[Hop, _PortBrought] = {}  # confirmed last; each value is whole, a lost one is made anew
        self._pool = ThreadPoolExecutor(2 * len(site.network.switches), thread_name_prefix="switches")

    def put_meters(self, plan: Plan, shut: Closed, *, no_higher: bool = False) -> tuple[PlaceFault, ...]:
        """Bring the rules and meters of switches that are not closed to the plan; return what failed.

        With ``no_higher`` meters that are below it are left; those of ports of which nothing is sure are in any case.
        """
        aggregates, every = self._aggregates_of(plan), no_higher or bool(shut.unsure)
        others = [
            switch
            for switch in self._site.network.switches
            if switch.name not in shut.switches and (every or not self._has(switch, plan, aggregates))
        ]
        found = self._pool.map(
            lambda switch: self._put_meters(switch, plan, aggregates, shut, no_higher=no_higher), others
        )
        return tuple(chain.from_iterable(found))

    def _has(self, switch: Switch, plan: Plan, aggregates: PlanAggregates) -> bool:
        """Return whether a switch holds a plan already, without asking it: what is its own of that is as it was."""
        known, name, links = self._brought.get(switch.name), switch.name, plan.links
        return (
            known is not None
            and known.begun is aggregates.begun.get(name, _NONE)
            and known.crossing is aggregates.crossing.get(name, _NONE)
            and known.numbers is self._numbers.latest(name)
            and all(map(is_, known.links, map(links.__getitem__, self._leaving[name])))
            and known.down == plan.down
            and self._sessions.has(switch.dpid, known.ports, known.state)
        )

    def _put_meters(
        self, switch: Switch, plan: Plan, aggregates: PlanAggregates, shut: Closed, *, no_higher: bool
    ) -> tuple[PlaceFault, ...]:
        self._brought.pop(switch.name, None)
        try:
            ports = self._sessions.ports(switch.dpid, TIMEOUT_S)
            network = with_port_numbers(self._site.network, switch.name, ports)
            unsure = class_meter_ids(network, switch, shut.unsure)
            state = self._books[switch.name].state(network, plan, aggregates)
            is_whole = not no_higher and not unsure
            if not is_whole:
                state = lowered(state, self._sessions.installed(switch.dpid, TIMEOUT_S), None if no_higher else unsure)
            self._sessions.apply(switch.dpid, state, TIMEOUT_S)
            if is_whole:
                name = switch.name
                self._brought[name] = _Brought(
                    plan.down,
                    ports,
                    aggregates.begun.get(name, _NONE),
                    aggregates.crossing.get(name, _NONE),
                    self._numbers.latest(name),
                    tuple(plan.links[hop] for hop in self._leaving[name]),
                    state,
                )
            self._make_ready(network, switch, plan.down)
        except SouthboundError as error:
            gone = isinstance(error, SwitchGone)
            return (PlaceFault(f"switch {switch.name}", str(error), frozenset({switch.name}), is_gone=gone),)
        return ()

    def _make_ready(self, network: Network, switch: Switch, down: frozenset[str]) -> None:
        """Have what a switch holds when a circuit dies worked out, when the transition under way is over."""
        known = self._ready.get(switch.name)
        if known is not None and known[0] is network and known[1] == down:
            return
        self._ready[switch.name] = network, down
        timer = threading.Timer(READY_AFTER_S, make_ready, (network, switch, down, self._site.redundant))
        timer.daemon = True
        timer.start()

    def _aggregates_of(self, plan: Plan) -> PlanAggregates:
        """Return the aggregates of a plan, worked out from those of the one before."""
        with self._looking:
            self._aggregates = plan_aggregates(self._site.network, plan, self._site.policy, self._aggregates)
            return self._aggregates

    def put_queues(self, plan: Plan, shut: Closed, *, in_doubt: bool = False) -> tuple[PlaceFault, ...]:
        """Bring the queues of our circuit ports that are not closed to the plan, by database; return what failed.

        Ports that have confirmed these very queues are left out, unless they may have lost them (``in_doubt``).
        """
        if in_doubt:
            self._queues.clear()
        return self._put_queues(plan, [hop for hop in self._ports if hop not in shut.ports])

    def _put_queues(self, plan: Plan, hops: Collection[Hop]) -> tuple[PlaceFault, ...]:
        wanted: dict[QueueWriter, dict[Hop, _PortBrought]] = {}
        for hop in hops:
            link, least_bps, known = plan.links[hop], kept_open_bps(self._ports[hop], plan), self._queues.get(hop)
            if known is None or known.link is not link or known.least_bps != least_bps:
                one = _PortBrought(link, least_bps, link_queues(link, least_bps))
                wanted.setdefault(self._writers[hop.tail], {})[hop] = one
        found = self._pool.map(lambda writer: self._written(writer, wanted[writer]), wanted)
        return tuple(chain.from_iterable(found))

    def _written(self, writer: QueueWriter, wanted: Mapping[Hop, _PortBrought]) -> tuple[PlaceFault, ...]:
        """Write queues to one database; return what failed: the database, or some of its ports."""
        named = {self._ports[hop].port_name: hop for hop in wanted}
        for hop in wanted:
            self._queues.pop(hop, None)
        try:
            failed = writer.apply_each({name: wanted[hop].queues for name, hop in named.items()}, TIMEOUT_S)
        except SouthboundError as error:
            return (PlaceFault(f"database {writer.remote}", str(error), ports=frozenset(wanted)),)
        self._queues.update((hop, wanted[hop]) for name, hop in named.items() if name not in failed)
        return tuple(
            PlaceFault(f"port {name} of {named[name].tail}", str(why), ports=frozenset({named[name]}))
            for name, why in failed.items()
        )

    def mended(self, fault: PlaceFault, meters: Plan, queues: Plan) -> tuple[PlaceFault, ...]:
        """Try to bring a place with a fault to what is in force there; return what is still wrong, or found so.

        A switch that is gone is not waited for: it calls.
        """
        still: tuple[PlaceFault, ...] = ()
        for switch in self._site.network.switches:
            if switch.name not in fault.concerned:
                continue
            if fault.is_gone and switch.dpid not in self._sessions.dpids():
                still += (fault,)
            elif fault.is_unsure or not fault.is_gone:
                failed = self._put_meters(switch, meters, self._aggregates_of(meters), OPEN, no_higher=fault.is_unsure)
                still += failed if switch.name in fault.switches else (fault,) * len(failed)
        if still:
            return still
        for hop in fault.ports:  # nobody knows what it holds
            self._queues.pop(hop, None)
        return self._put_queues(queues, fault.ports)
