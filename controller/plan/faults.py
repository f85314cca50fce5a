"""Faults: places that cannot be changed now, what needs them, and the plan that leaves them as they are. Pure.

A place is a switch, a port or a database of queues. While it has a fault, it goes on with what it holds: so the plan
keeps the limits of its links as they are in force, and a flow across it stays on its way there with at most what it had
when the fault began, also if it would go another way now; one that was not there is not carried. All else is planned as
ever, and finds what those leave.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from controller.plan.failover import crossed, led_another_way
from controller.plan.paths import Path
from controller.plan.plan import THE_REST, Entry, Flow, Plan, PlanInput, entry
from controller.plan.planning import planned
from controller.plan.policy import Policy
from controller.plan.transitions import lesser_of, with_meters
from controller.plan.workings import Workings
from topology.network import Hop, Network, hops
from topology.wire import Layer, converted_bps


@dataclass(frozen=True, slots=True)
class Closed:
    """Where nothing is to be changed now.

    Attributes:
        switches: by name, those whose rules and meters stay as they are.
        ports: the links whose queues stay as they are, each at the switch it leaves.
        unsure: of those, the ones of whose queues nothing was ever confirmed; meters there are not raised.
    """

    switches: frozenset[str] = frozenset()
    ports: frozenset[Hop] = frozenset()
    unsure: frozenset[Hop] = frozenset()

    def __bool__(self) -> bool:
        """Return whether there is any such place."""
        return bool(self.switches or self.ports)

    def is_crossed(self, network: Network, path: tuple[str, ...]) -> bool:
        """Return whether a path, or the answers along it, need one of them."""
        switches, ports = path_needs(network, path)
        return not (self.switches.isdisjoint(switches) and self.ports.isdisjoint(ports))

    def holds(self, hop: Hop) -> bool:
        """Return whether a link's limits stay as they are."""
        return hop in self.ports or hop.tail in self.switches


OPEN = Closed()


@dataclass(frozen=True, slots=True)
class PlaceFault:
    """A switch, a port or a database that does not do what it is told.

    Attributes:
        place: its name for people, such as ``switch ls1``.
        why: what went wrong.
        switches: the switches whose rules and meters cannot be changed, by name.
        ports: the links whose queues cannot be changed.
        is_gone: it is not connected; it says so itself when it is again.
        since_us: since when, elapsed time.
        held: what was in force across it when that began.
        is_unsure: no plan was ever in force there.
        is_back: it has answered since, and is not known to hold what is in force yet.
        is_told: whether anybody was told that it began; not yet of what has not had the time to call since the start.
    """

    place: str
    why: str
    switches: frozenset[str] = frozenset()
    ports: frozenset[Hop] = frozenset()
    is_gone: bool = False
    since_us: int = 0
    held: tuple[Entry, ...] = ()
    is_unsure: bool = False
    is_back: bool = False
    is_told: bool = True

    def __str__(self) -> str:
        """Return what and why, for people."""
        return f"{self.place}: {self.why}"

    @property
    def closed(self) -> Closed:
        """Where nothing is to be changed because of it."""
        if self.is_back:
            return OPEN
        return Closed(self.switches, self.ports, self.ports if self.is_unsure else frozenset())

    @property
    def concerned(self) -> frozenset[str]:
        """The switches to be brought to what is in force; before queues of which nothing is sure, their meters."""
        return self.switches | {hop.tail for hop in self.ports if self.is_unsure}

    def held_entry(self, flow: Flow) -> Entry | None:
        """Return what a flow had across it, on the same way and in the same class."""
        return next((e for e in self.held if (e.flow.path, _seen_as(e.flow)) == (flow.path, _seen_as(flow))), None)


def _seen_as(flow: Flow) -> tuple[object, ...]:
    """Return what must be the same of a flow on the same way for a switch to take it for the one it knows."""
    mark = None if flow.selector == THE_REST else flow.mark
    return flow.name, flow.flow_class, flow.selector, mark


Faults = Mapping[str, PlaceFault]  # by place


@lru_cache(maxsize=32_768)  # each plan beside a fault asks of each flow
def path_needs(network: Network, path: tuple[str, ...]) -> tuple[frozenset[str], frozenset[Hop]]:
    """Return the switches that a path needs, and the circuits' links: of the data, and of the answers to it."""
    there = [hop for hop in hops(path) if network.link(*hop).circuit]
    return frozenset(path), frozenset((*there, *(network.against(*hop) for hop in there)))


def closed(faults: Iterable[PlaceFault]) -> Closed:
    """Return where nothing is to be changed because of some faults."""
    places = [fault.closed for fault in faults]
    return Closed(
        frozenset().union(*(p.switches for p in places)),
        frozenset().union(*(p.ports for p in places)),
        frozenset().union(*(p.unsure for p in places)),
    )


def across(network: Network, path: tuple[str, ...], faults: Faults) -> tuple[PlaceFault, ...]:
    """Return the faults in a path's way."""
    return tuple(f for f in faults.values() if f.closed.is_crossed(network, path)) if faults else ()


class FaultsByPlace:
    """Faults by where they are, and what flows had across each, by flow: for who asks of every flow."""

    def __init__(self, network: Network, faults: Faults) -> None:
        self._network, self._faults = network, tuple(faults.values())
        self._at: dict[str | Hop, list[int]] = {}  # by switch, and by link
        self._held: list[dict[tuple[object, ...], dict[Path, Entry]]] = []  # by fault; by flow, and by its way
        for number, fault in enumerate(self._faults):
            shut = fault.closed
            places: tuple[str | Hop, ...] = (*shut.switches, *shut.ports)
            for place in places:
                self._at.setdefault(place, []).append(number)
            held: dict[tuple[object, ...], dict[Path, Entry]] = {}
            for e in fault.held:
                held.setdefault(_seen_as(e.flow), {}).setdefault(e.flow.path, e)
            self._held.append(held)

    def across(self, path: Path) -> list[int]:
        """Return the numbers of the faults in a path's way, as :func:`across` has them."""
        switches, ports = path_needs(self._network, path)
        places: tuple[str | Hop, ...] = (*switches, *ports)
        return sorted({number for place in places for number in self._at.get(place, [])})

    def kept(self, flow: Flow) -> Entry | None:
        """Return what a flow with faults in its way may keep: the least that it had at each; None if nothing."""
        alive = [self._of(number, flow).get(flow.path) for number in self.across(flow.path)]
        least = min((one for one in alive if one is not None), key=lambda one: one.frame_bps, default=None)
        return None if None in alive else least

    def way_there(self, flow: Flow, down: frozenset[str]) -> Path:
        """Return the way that a flow has across faults in its way; its own if it has none there that is alive."""
        ways = [{*self._of(number, flow)} for number in self.across(flow.path)]
        common = set.intersection(*ways) if ways else set()
        if flow.path in common:
            return flow.path
        return next((way for way in sorted(common) if not crossed(self._network, way, down)), flow.path)

    def _of(self, number: int, flow: Flow) -> dict[Path, Entry]:
        """Return what a flow had across a fault when that began, by its way."""
        return self._held[number].get(_seen_as(flow), _NOTHING)


_NOTHING: dict[Path, Entry] = {}


def planned_beside(
    epoch: int, before: Workings, demand: PlanInput, faults: Faults, in_force: tuple[Plan, Plan] | None
) -> Plan:
    """Return the plan that gives each flow its share and leaves places with a fault as they are.

    Args:
        epoch: number of the plan.
        before: of another plan, from which this one is worked out.
        demand: who wants to send now, and what is promised.
        faults: the faults there are.
        in_force: the plan whose rules and meters are in force, and the one whose queues are; None before the first.
    """
    network, policy = before.network, before.policy
    if not closed(faults.values()):
        return planned(epoch, network, policy, demand, before)
    places = FaultsByPlace(network, faults)
    demand = _staying(network, policy, demand, places)
    keeps = {f.name: places.kept(f) for f in demand.flows if places.across(f.path)}
    demand = replace(demand, flows=tuple(f for f in demand.flows if keeps.get(f.name, f) is not None))
    plan = planned(epoch, network, policy, demand, before)
    above = {e.flow.name: has for e in plan.entries if (has := keeps.get(e.flow.name)) and has.frame_bps < e.frame_bps}
    if above:  # others find what it cannot use
        flows = tuple(_at_most(network, f, above[f.name]) if f.name in above else f for f in demand.flows)
        plan = planned(epoch, network, policy, replace(demand, flows=flows), plan.workings)
        entries = tuple(
            entry(e.flow, min(e.frame_bps, above[e.flow.name].frame_bps), network, policy)
            if e.flow.name in above
            else e
            for e in plan.entries
        )
        plan = replace(plan, entries=entries)
    return plan if in_force is None else _with_links_held(plan, closed(faults.values()), *in_force)


def _staying(network: Network, policy: Policy, demand: PlanInput, places: FaultsByPlace) -> PlanInput:
    """Return the demand with flows on the ways that they have across faults, where nobody can be told of another."""
    ways = {f.name: way for f in demand.flows if (way := places.way_there(f, demand.down)) != f.path}
    staying = replace(demand, flows=tuple(f for f in demand.flows if f.name not in ways))
    for flow in demand.flows:
        if flow.name in ways:
            staying = led_another_way(network, policy, staying, [replace(flow, path=ways[flow.name])])
    return staying if ways else demand


def _at_most(network: Network, flow: Flow, has: Entry) -> Flow:
    """Return a flow that wants no more than it has; rounded up, so that it is not less."""
    wire_bps = converted_bps(has.frame_bps, Layer.FRAME, Layer.WIRE, network.framing_of(flow.path)) + 1
    wanted_bps = wire_bps if flow.wanted_bps is None else min(flow.wanted_bps, wire_bps)
    return replace(flow, wanted_bps=wanted_bps, floor_bps=min(flow.floor_bps, wire_bps))


def _with_links_held(plan: Plan, shut: Closed, meters: Plan, queues: Plan) -> Plan:
    links = {
        hop: with_meters(queues.links[hop], meters.links[hop]) if shut.holds(hop) else link
        for hop, link in plan.links.items()
    }
    return replace(plan, links=links)


def partly(network: Network, old: Plan | None, new: Plan, shut: Closed) -> Plan:
    """Return what is in force for sure after a step that some places have not confirmed: there, the lesser of both."""
    if old is None or not shut:
        return new
    lesser = lesser_of(old, new)
    links = {hop: lesser.links[hop] if shut.holds(hop) else link for hop, link in new.links.items()}
    entries = (e for e in new.entries if not shut.is_crossed(network, e.flow.path))
    there = (e for e in lesser.entries if shut.is_crossed(network, e.flow.path))
    return replace(new, links=links, entries=(*entries, *there))


def in_the_way(network: Network, path: tuple[str, ...], faults: Faults) -> tuple[str, ...]:
    """Return what a path cannot be sure of, each with its reason; nothing if there is no fault in its way.

    It may go on as it was; nobody can tell, nor change it.
    """
    return tuple(str(fault) for fault in across(network, path, faults))
