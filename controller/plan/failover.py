"""What the plan becomes when a circuit dies: which way its flows take, and what they keep of a promise. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

import networkx as nx

from controller.plan.announcements import Announcement
from controller.plan.claims import part_later
from controller.plan.keys import ClassShare, FlowId
from controller.plan.paths import Path, candidates, satisfies, way_round
from controller.plan.plan import Entry, Flow, Plan, PlanInput
from controller.plan.policy import Policy
from controller.plan.reservations import Constraints
from controller.plan.resources import need, of_circuit
from controller.plan.told_apart import planned_parts_bps
from topology.network import Hop, Network
from topology.wire import PPM, Framing, Layer, converted_bps

METER_STEP_BPS = 1000  # a meter counts whole kbit/s
NOTHING_ASKED: Mapping[FlowId, Constraints] = MappingProxyType({})
NOTHING_PROMISED: Mapping[FlowId, int] = MappingProxyType({})


def redundant(network: Network) -> frozenset[str]:
    """Return the circuits whose two ends are joined without them too."""
    return frozenset(one.name for one in network.circuits if has_way_round(network, one.name, frozenset({one.name})))


@lru_cache(maxsize=1_000)  # as for controller.plan.paths.candidates
def has_way_round(network: Network, name: str, down: frozenset[str]) -> bool:
    """Return whether the two ends of a circuit are joined without those that are down."""
    (circuit,) = (one for one in network.circuits if one.name == name)
    rest = nx.DiGraph(
        (t, h)
        for t, h, link in network.links()
        if down.isdisjoint((link.circuit, t, h)) and not network.leads_through(t, h, circuit.a_end)
    )
    ends = circuit.a_end, circuit.z_end
    return rest.nodes >= {*ends} and nx.has_path(rest, *ends)


class _Ways(NamedTuple):
    """What ways flows may take: beside the circuits that carry nothing, and as is asked of those of some flows."""

    network: Network
    gone: frozenset[str]
    asked: Mapping[FlowId, Constraints]

    def nearest(self, flow: Flow) -> Path | None:
        """Return the nearest of a flow, as all that it stands for have asked; None if there is none."""
        way = way_round(self.network, flow.host, flow.target, self.gone)
        asked = [self.asked[name] for name in flow.names if name in self.asked] if self.asked else []
        if way is None or self._is_as(way, asked):
            return way
        exclude = self.gone.union(*(one.exclude for one in asked))
        others = candidates(self.network, flow.host, flow.target, Constraints(exclude=tuple(sorted(exclude))))
        return next((other for other in others if self._is_as(other, asked)), None)

    def _is_as(self, way: Path, asked: Iterable[Constraints]) -> bool:
        return all(satisfies(self.network, way, one) for one in asked)


def without(
    network: Network,
    policy: Policy,
    demand: PlanInput,
    down: frozenset[str],
    asked: Mapping[FlowId, Constraints] = NOTHING_ASKED,
    promised_bps: Mapping[FlowId, int] = NOTHING_PROMISED,
) -> PlanInput:
    """Return what a plan is made for while circuits are down: they carry nothing, and their flows go another way.

    A flow without any other way waits, as one does without any that is as ``asked``, by flow, of its way; none goes by
    a circuit that carries nothing, such as one that is not bought.
    What is promised on a circuit that is left is kept before what comes to it: a flow that moves keeps of its promise
    as much as is not promised there, by priority of the classes, then by name. It goes by the nearest way that has room
    for all of its promise, else by the one that has most.
    But lanes of one announcement have one promise, and are counted together: a lane that moves has its part of what
    others of it are promised there, since what it has yet to send is late or in time with theirs.
    All go the ways that they would go if none stood by: nobody moves for that somebody pauses.

    Args:
        network: where.
        policy: what each class may have.
        demand: what the plan would be made of with all circuits.
        down: those that carry nothing.
        asked: by flow, what is asked of its way.
        promised_bps: by flow, what those are promised that have no floor now, since they have nothing to send.
    """
    if not down:
        return demand
    dead = {Hop(tail, head) for tail, head, link in network.circuit_links if link.circuit in down}
    capacity_bps = {**demand.capacity_bps, **dict.fromkeys(dead, 0)}
    stay = [flow for flow in demand.flows if dead.isdisjoint(flow.links)]
    move = [flow for flow in demand.flows if not dead.isdisjoint(flow.links)]
    led = replace(demand, flows=tuple(stay), capacity_bps=capacity_bps, down=down)
    in_order = sorted(move, key=lambda f: (policy.classes[f.flow_class].priority, f.name))
    carry_nothing = {
        link.circuit for tail, head, link in network.circuit_links if not capacity_bps.get(Hop(tail, head), 1)
    }
    gone = down.union(filter(None, carry_nothing))
    ways = _Ways(network, gone, asked)
    nearest = ((flow, ways.nearest(flow)) for flow in in_order)
    come = [replace(flow, path=path) for flow, path in nearest if path is not None]
    if promised_bps.keys().isdisjoint(flow.name for flow in come):
        return _led(ways, policy, led, come)
    as_promised = (replace(flow, floor_bps=promised_bps.get(flow.name, flow.floor_bps)) for flow in come)
    chosen = {flow.name: flow.path for flow in _led(ways, policy, led, as_promised).flows}
    return _led(ways, policy, led, (replace(flow, path=chosen[flow.name]) for flow in come), are_chosen=True)


def _led(
    ways: _Ways, policy: Policy, demand: PlanInput, come: Iterable[Flow], *, are_chosen: bool = False
) -> PlanInput:
    """Return the demand with flows that come by their nearest ways, or by further ones that can promise them more.

    Where the ways ``are_chosen`` they come by those.
    """
    for moved in _by_promise(come):
        if len(moved) > 1 or moved[0].lanes_of:
            demand = led_another_way(ways.network, policy, *_lanes_together(ways.network, demand, moved))
        elif are_chosen:
            demand = led_another_way(ways.network, policy, demand, moved)
        else:
            demand = _led_by_most_room(ways, policy, demand, moved[0])
    return demand


def _led_by_most_room(ways: _Ways, policy: Policy, demand: PlanInput, nearest: Flow) -> PlanInput:
    """Return the demand with a flow that comes by its nearest way, or by a further one that can promise it more."""
    network = ways.network
    best, way = led_another_way(network, policy, demand, [nearest]), nearest.path
    while best.flows[-1].floor_bps < nearest.floor_bps and (crossed := network.circuits_along(way)):
        ways = ways._replace(gone=ways.gone.union(crossed))
        further = ways.nearest(nearest)
        if further is None:
            break
        way = further
        if not any(_is_mixed_up(flow, nearest, way) for flow in demand.flows):
            led = led_another_way(network, policy, demand, [replace(nearest, path=way)])
            best = max(best, led, key=lambda one: one.flows[-1].floor_bps)
    return best


def _is_mixed_up(one: Flow, other: Flow, way: Path) -> bool:
    """Return whether a switch could not tell a flow from another one if that went another way."""
    same = (one.host, one.target, one.flow_class) == (other.host, other.target, other.flow_class)
    return same and one.path != way and part_later(one.path, way)


def _by_promise(flows: Iterable[Flow]) -> Iterable[list[Flow]]:
    """Return flows by what they are promised together: lanes of one announcement, and each other flow by itself."""
    found: dict[tuple[str, str], list[Flow]] = {}
    for flow in flows:
        found.setdefault((flow.lanes_of, "" if flow.lanes_of else flow.name), []).append(flow)
    return found.values()


def _lanes_together(network: Network, demand: PlanInput, moved: Sequence[Flow]) -> tuple[PlanInput, Sequence[Flow]]:
    """Return the demand without the lanes that are where others of theirs come to; and all of those, as promised."""
    lanes_of, come_to = moved[0].lanes_of, {share for flow in moved for share in _taken_ppm(network, flow)}
    # One that stands for other promises too is left as it is: those are kept before what comes.
    lanes = [f for f in demand.flows if f.lanes_of == lanes_of and not f.carries] if lanes_of else []
    there = [f for f in lanes if not come_to.isdisjoint(_taken_ppm(network, f))]
    if not there:
        return demand, moved
    reserved = dict(demand.reserved_bps)
    for flow in there:
        for share, ppm in _taken_ppm(network, flow).items():
            reserved[share] = max(0, reserved.get(share, 0) - flow.floor_bps * ppm // PPM)
    others = tuple(f for f in demand.flows if f not in there)
    return replace(demand, flows=others, reserved_bps=reserved), _by_size([*there, *moved])


def _by_size(lanes: Sequence[Flow]) -> list[Flow]:
    """Return lanes that send with what all of those are promised divided by what each is to carry; others as they are.

    Not by what each is promised now: that ends some round trips of its own before the last bytes of all are confirmed.
    """
    senders = {lane.name for lane in lanes if lane.wanted_bps is None and not lane.carries}
    whole_bps = sum(lane.floor_bps for lane in lanes if lane.name in senders)
    size_bytes = sum(lane.size_bytes for lane in lanes if lane.name in senders)
    return [
        replace(lane, floor_bps=whole_bps * lane.size_bytes // size_bytes)
        if size_bytes and lane.name in senders
        else lane
        for lane in lanes
    ]


def led_another_way(network: Network, policy: Policy, demand: PlanInput, flows: Sequence[Flow]) -> PlanInput:
    """Return the demand with flows that come to other circuits than were booked, and what these can promise them.

    Several are served in proportion to what each was promised; what one cannot have for want of room elsewhere others
    have.
    """
    taken_ppm = {flow.name: _taken_ppm(network, flow) for flow in flows}
    free_bps = {share: _free_bps(network, policy, demand, share) for taken in taken_ppm.values() for share in taken}
    reserved, floors_bps = dict(demand.reserved_bps), dict.fromkeys(taken_ppm, 0)
    for _ in flows:
        lacks_bps = {flow.name: flow.floor_bps - floors_bps[flow.name] for flow in flows}
        left_bps = {share: bps - _takes(floors_bps, taken_ppm, share) // PPM for share, bps in free_bps.items()}
        wanted = {share: _takes(lacks_bps, taken_ppm, share) for share in free_bps}
        for name, lack_bps in lacks_bps.items():
            parts_bps = (lack_bps * left_bps[s] * PPM // wanted[s] for s in taken_ppm[name] if wanted[s])
            floors_bps[name] += min((lack_bps, *parts_bps))
    for share in free_bps:
        reserved[share] = reserved.get(share, 0) + _takes(floors_bps, taken_ppm, share) // PPM
    led = (replace(flow, floor_bps=floors_bps[flow.name]) for flow in flows)
    return replace(demand, flows=(*demand.flows, *led), reserved_bps=reserved)


def _taken_ppm(network: Network, flow: Flow) -> dict[ClassShare, int]:
    """Return what one bit/s of a flow takes of classes' shares on its circuits, parts per million."""
    needed = need(network, (flow.path,), flow.flow_class).shares_ppm
    return {share: ppm for share, ppm in needed if ppm and isinstance(share, ClassShare)}


def _takes(
    rates_bps: Mapping[FlowId, int], taken_ppm: Mapping[FlowId, Mapping[ClassShare, int]], share: ClassShare
) -> int:
    """Return what rates of flows take of a share together, in millionths of a bit/s."""
    return sum(bps * taken_ppm[name].get(share, 0) for name, bps in rates_bps.items())


def _free_bps(network: Network, policy: Policy, demand: PlanInput, share: ClassShare) -> int:
    """Return what is not promised to anybody of a class's share of a circuit, bit/s on the wire."""
    hop, own = share
    sale = of_circuit(hop, demand.capacity_bps.get(hop, network.link(*hop).rate_bps), policy)
    booked = {c: demand.reserved_bps.get(ClassShare(hop, c), 0) for c in policy.classes}
    return max(0, min(sale[hop] - sum(booked.values()), sale[share] - booked[own]))


class _Move(NamedTuple):
    """A flow that goes another way under the new plan than under the old one."""

    old: Entry
    new: Entry

    @property
    def left(self) -> set[Hop]:
        """The links it gives up."""
        return set(self.old.flow.links) - set(self.new.flow.links)

    @property
    def entered(self) -> set[Hop]:
        """The links it comes to."""
        return set(self.new.flow.links) - set(self.old.flow.links)


def carried(old: Plan, new: Plan) -> tuple[Entry, ...]:
    """Return what flows may send while they move to a circuit beside theirs: the lesser of both plans.

    They are turned over by one switch, with one rule, so none need pause that has room on both circuits meanwhile. One
    that comes to where another has not gone yet has none; it is not among them. Each is still on its old way.

    An image moves from a circuit of 1 Gbit/s to one of half of that::

        base20 --- ls1 --+-- north --+-- ch1 --- arch     before
                         +-- south --+                    after

    >>> from controller.plan.flows import flow_on
    >>> from controller.plan.keys import flow_id
    >>> from topology.protocol import FlowClass
    >>> from controller.plan.plan import PlanInput
    >>> from controller.plan.planning import planned
    >>> from controller.plan.policy import DEFAULT_POLICY
    >>> from mininet_tests.testing.networks import chile_illinois_2
    >>> network = chile_illinois_2()
    >>> def image(line, epoch):
    ...     way = ("base20", "ls1", line, "ch1", "arch")
    ...     flow = flow_on(network, flow_id("image", "base20"), FlowClass.URGENT, way)
    ...     return planned(epoch, network, DEFAULT_POLICY, PlanInput((flow,)))
    >>> before, after = image("north", 2), image("south", 4)
    >>> (meanwhile,) = carried(before, after)
    >>> "north" in meanwhile.flow.path, [e.frame_bps // 10**6 for e in (*before.entries, meanwhile, *after.entries)]
    (True, [924, 462, 462])
    """
    to_come = {(e.flow.name, e.flow.flow_class): e for e in new.apart(old)}
    others = old.apart(new)
    both = (_Move(e, then) for e in others if (then := to_come.get((e.flow.name, e.flow.flow_class))))
    moves = [move for move in both if move.old.flow.path != move.new.flow.path]
    left = {hop for move in moves for hop in move.left}
    return tuple(
        replace(min(move, key=lambda entry: entry.frame_bps), flow=move.old.flow)
        for move in moves
        if _beside(move.old.flow, move.new.flow, old) and left.isdisjoint(move.entered)
    )


def is_dead(hop: Hop, plan: Plan) -> bool:
    """Return whether a link leads into a line that is down under a plan, so that the switch sends by another."""
    return hop.head in plan.down


def turned(entries: Iterable[Entry], new: Plan) -> tuple[Entry, ...]:
    """Return entries each on the way that a plan has for it."""
    return tuple([e if new.has(e) else _turned(e, new) for e in entries])


def _turned(entry: Entry, new: Plan) -> Entry:
    """Return an entry on the way that a plan has for it; the very same if it is on that."""
    flow, there = entry.flow, new.of_host(entry.flow.machine)
    if len(there) == 1 and there[0].flow is flow:  # as nearly all
        return entry
    of_host = (e.flow for e in reversed(there))
    path = next((f.path for f in of_host if (f.name, f.flow_class) == (flow.name, flow.flow_class)), flow.path)
    return entry if path == flow.path else replace(entry, flow=replace(flow, path=path))


def _beside(one: Flow, other: Flow, plan: Plan) -> bool:
    """Return whether two ways pass the same switches and differ in lines alone.

    A line is entered by a circuit's link and left by none; a switch that is on one way only is left by one.
    """
    if len(one.path) != len(other.path):
        return False
    apart = [(a, b) for a, b in zip(one.links[1:], other.links[1:], strict=True) if a.tail != b.tail]
    return plan.links.keys().isdisjoint(chain.from_iterable(apart))


def late(
    announcements: Iterable[Announcement],
    plan: Plan,
    framing: Framing,
    now_us: int,
    waiting: frozenset[str] = frozenset(),
) -> Iterator[tuple[str, int, int | None]]:
    """Yield the promises that a plan does not keep: name, when it was promised, and when it will be done as planned.

    The last is None for one that the plan has nothing for, or whose host is absent. What has been sent so far is taken
    to be what was promised. Flows that wait for something to send are not late by that.
    """
    planned_bps: dict[FlowId, int] = {}
    announcements = tuple(announcements)
    for host in {flow.machine for known in announcements for flow in known.flows}:
        for e in plan.of_host(host):
            planned_bps |= planned_parts_bps(e.flow, 0 if e.flow.is_away else e.frame_bps)
    for known in announcements:
        promised_bps = converted_bps(known.floor_bps(now_us), Layer.WIRE, Layer.FRAME, framing)
        floors_bps = [converted_bps(bps, Layer.WIRE, Layer.FRAME, framing) for bps in known.floors_bps(now_us)]
        least_bps = _least_bps(known, planned_bps, waiting, floors_bps)
        if least_bps > promised_bps - METER_STEP_BPS:
            continue
        parts = [(max(now_us, part.start_us), part.end_us, part.rate_bps) for part in known.rates]
        left = sum(max(0, end_us - start_us) * bps for start_us, end_us, bps in parts)
        wire_bps = least_bps * framing.segment_bytes(Layer.WIRE) // framing.segment_bytes(Layer.FRAME)
        yield known.announcement_id, known.promised_us, now_us + left // wire_bps if wire_bps else None


def _least_bps(
    known: Announcement, planned_bps: Mapping[FlowId, int], waiting: frozenset[str], floors_bps: Sequence[int]
) -> int:
    """Return what each sender of an announcement has at least, by all its lanes; one that waits has its floor."""
    has_bps = [
        floor_bps if flow.name in waiting else planned_bps.get(flow.name, 0)
        for flow, floor_bps in zip(known.flows, floors_bps, strict=True)
    ]
    return sum(has_bps) if known.lanes else min(has_bps)


def carries(entry: Entry, name: FlowId, rate_bps: int, network: Network, down: frozenset[str]) -> bool:
    """Return whether an allocation has a rate for a flow, and none of the circuits that are down on its way.

    Args:
        entry: the allocation.
        name: a flow that it may stand for.
        rate_bps: what that is promised, bit/s on the wire.
        network: where.
        down: the circuits that are down.
    """
    part_bps = planned_parts_bps(entry.flow, entry.frame_bps).get(name, -1)
    frame_bps = converted_bps(rate_bps, Layer.WIRE, Layer.FRAME, network.framing_of(entry.flow.path))
    return part_bps > frame_bps - METER_STEP_BPS and not crossed(network, entry.flow.path, down)


def crossed(network: Network, path: Path, down: frozenset[str]) -> tuple[str, ...]:
    """Return the circuits of a path that are down, in its order."""
    return tuple(name for name in network.circuits_along(path) if name in down) if down else ()
