"""The site's switches as one: a plan goes to each of them, and to the database that has its queues."""

import contextlib
import threading
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain

from controller.plan.differences import differing_keys
from controller.plan.faults import OPEN, Closed, PlaceFault
from controller.plan.plan import Plan
from controller.plan.wiring import with_port_numbers
from controller.security.tls import ShownEnd
from controller.site import Site
from controller.southbound.errors import MetersExhausted, SouthboundError, SwitchGone
from controller.southbound.openflow.connection import Confirmed
from controller.southbound.openflow.desired import class_meter_ids, lowered
from controller.southbound.openflow.meter_numbers import MeterNumbers
from controller.southbound.openflow.plan_aggregates import NO_PLAN, PlanAggregates, plan_aggregates
from controller.southbound.openflow.rules import make_ready
from controller.southbound.openflow.session import SwitchSessions
from controller.southbound.openflow.switch_book import SwitchBook
from controller.southbound.ovsdb.desired_queues import kept_open_bps, link_queues
from controller.southbound.ovsdb.writer import QueueWriter
from topology.network import Hop, Network, Switch

TIMEOUT_S = 5.0  # a switch on the site's own network answers in milliseconds
READY_AFTER_S = 1.0  # a transition takes less, and is not to share its time


def database_fault(
    network: Network, writers: Mapping[str, QueueWriter], writer: QueueWriter, error: SouthboundError
) -> PlaceFault:
    """Return the fault of a whole database: of all our circuit ports in it, whichever were to be written."""
    ours = (Hop(tail, head) for tail, head, _ in network.circuit_links if network.is_ours(tail))
    ports = frozenset(hop for hop in ours if writers.get(hop.tail) is writer)
    return PlaceFault(f"database {writer.remote}", str(error), ports=ports)


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
        self._latest, self._numbers = NO_PLAN, known
        self._brought: dict[str, Confirmed] = {}  # of switches that hold what is their own of the latest plan
        self._numbered: dict[str, object] = {}  # the numbers of meters with which they were brought to it
        self._ready: dict[str, tuple[Network, frozenset[str]]] = {}  # each switch's has one writer at a time
        self._aggregates = NO_PLAN
        self._looking = threading.Lock()  # guards this and what is brought: a fault is mended by another thread
        self._ports = {
            Hop(tail, head): link for tail, head, link in site.network.circuit_links if site.network.is_ours(tail)
        }
        self._latest_queues = NO_PLAN.plan
        self._swept = set[QueueWriter]()  # databases in which no port but these has queues of ours
        self._unlike_queues = {*self._ports}  # ports that may have other queues than those of this plan
        self._pool = ThreadPoolExecutor(2 * len(site.network.switches), thread_name_prefix="switches")

    def certificates(self) -> dict[str, int]:
        """Return, by switch, when the certificate ends that it shows, Unix time in seconds; any thread may ask.

        Open vSwitch has one for OpenFlow and for its database, and shows a renewed one when a connection begins: what
        it has shown last in one that is open is what it has.
        """
        shown = [*self._sessions.certificates().items()]
        shown += [one for writer in {*self._writers.values()} if (one := writer.certificate()) is not None]
        latest: dict[int, ShownEnd] = {}
        for dpid, end in shown:
            latest[dpid] = max(end, latest.get(dpid, end))
        return {one.name: latest[one.dpid].end_s for one in self._site.network.switches if one.dpid in latest}

    def prepare(self, plan: Plan) -> None:
        """Have worked out what switches hold under a plan: who stands by may soon bring them to it.

        Nothing is sent. A switch that has not called yet, or has too few meters for it, is left out.
        """
        aggregates = self._aggregates_of(plan)
        for switch in self._site.network.switches:
            if (ports := self._sessions.ports_heard(switch.dpid)) is not None:
                network = with_port_numbers(self._site.network, switch.name, ports)
                with contextlib.suppress(MetersExhausted):  # is said when it is brought to the plan
                    self._books[switch.name].state(network, plan, aggregates)

    def put_meters(self, plan: Plan, shut: Closed, *, no_higher: bool = False) -> tuple[PlaceFault, ...]:
        """Bring the rules and meters of switches that are not closed to the plan; return what failed.

        With ``no_higher`` meters that are below it are left; those of ports of which nothing is sure are in any case.
        """
        aggregates, every = self._aggregates_of(plan), no_higher or bool(shut.unsure)
        unlike = self._unlike(plan, aggregates)
        others = [
            switch
            for switch in self._site.network.switches
            if (every or switch.name in unlike) and switch.name not in shut.switches
        ]
        found = self._pool.map(
            lambda switch: self._put_meters(switch, plan, aggregates, shut, no_higher=no_higher), others
        )
        return tuple(chain.from_iterable(found))

    def _unlike(self, plan: Plan, aggregates: PlanAggregates) -> set[str]:
        """Return the switches that may not hold a plan; the others hold all that is their own of it.

        No switch is asked. One for which nothing of the plan is another value than in the latest one holds it already.
        """
        had, brought = self._latest, self._brought
        with self._looking:
            differing = {hop.tail for hop in had.plan.hops_apart(plan)}
            differing.update(differing_keys(had.begun, aggregates.begun))
            differing.update(differing_keys(had.crossing, aggregates.crossing))
            for name in brought.keys() & (self._books if had.plan.down != plan.down else differing):
                del brought[name]
            self._latest = replace(aggregates, plan=plan)
            renumbered = differing_keys(self._numbered, self._numbers.known)
            return (self._books.keys() - brought.keys()) | self._sessions.unlike(brought) | {*renumbered}

    def _put_meters(
        self, switch: Switch, plan: Plan, aggregates: PlanAggregates, shut: Closed, *, no_higher: bool
    ) -> tuple[PlaceFault, ...]:
        with self._looking:
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
            with self._looking:
                if is_whole and plan is self._latest.plan:  # what is mended may be brought to another
                    self._brought[switch.name] = Confirmed(switch.dpid, ports, state)
                    self._numbered[switch.name] = self._numbers.latest(switch.name)
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
        differing = self._latest_queues.hops_apart(plan)
        if in_doubt or self._latest_queues.down != plan.down:
            differing = [*self._ports]
        self._unlike_queues.update(hop for hop in differing if hop in self._ports)
        self._latest_queues = plan
        hops = self._unlike_queues - shut.ports
        failed = self._put_queues(plan, hops)
        self._unlike_queues -= hops - {hop for fault in failed for hop in fault.ports}
        return failed

    def _put_queues(self, plan: Plan, hops: Collection[Hop]) -> tuple[PlaceFault, ...]:
        wanted: dict[QueueWriter, dict[str, Hop]] = {}
        for hop in sorted(hops):
            wanted.setdefault(self._writers[hop.tail], {})[self._ports[hop].port_name] = hop
        found = self._pool.map(lambda writer: self._written(writer, plan, wanted[writer]), wanted)
        return tuple(chain.from_iterable(found))

    def _written(self, writer: QueueWriter, plan: Plan, named: Mapping[str, Hop]) -> tuple[PlaceFault, ...]:
        """Write queues of named ports to one database; return what failed: the database, or some of its ports.

        The first time they are taken off ports that were circuits' before the network's file was changed.
        """
        queues = {n: link_queues(plan.links[hop], kept_open_bps(self._ports[hop], plan)) for n, hop in named.items()}
        try:
            failed = writer.apply_each(queues, TIMEOUT_S)
            if writer not in self._swept:
                switches = [s for s in self._site.network.switches if self._writers[s.name] is writer]
                ours = {link.port_name for hop, link in self._ports.items() if self._writers[hop.tail] is writer}
                writer.take_off_others(ours, {switch.dpid for switch in switches}, TIMEOUT_S)
                self._swept.add(writer)
        except SouthboundError as error:
            return (database_fault(self._site.network, self._writers, writer, error),)
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
        self._unlike_queues.update(fault.ports)  # nobody knows what they hold
        return self._put_queues(queues, fault.ports)
