"""The plan, worked out where it differs from the one before. Pure.

A link's limits follow from the flows that cross it, and a flow's rate from the links that it crosses. So what a change
touches are the links of the flows that have come, gone or changed, or whose answers go otherwise, and those whose
capacity or promises have.
What the flows of an interface could have of their circuits, and it does not carry, they do not get.
All else is the very same value as before. The whole plan is the change from no plan at all.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter

from controller.plan.answers import answered_shares, answers, may_send_bps
from controller.plan.differences import differing_keys
from controller.plan.interfaces import interface_parts, interfaces_of, within_interfaces
from controller.plan.keys import ClassShare, FlowId
from controller.plan.members import divided
from controller.plan.plan import LEAST_TOLD_BPS, ClassLimits, Entry, Flow, LinkPlan, Plan, PlanInput, entry, standing_in
from controller.plan.policy import Policy
from controller.plan.shares import class_shares
from controller.plan.workings import Workings
from topology.network import Hop, Network
from topology.protocol import FlowClass
from topology.wire import PPM, Framing, Layer, answers_ppm, conversion, converted_bps

_NAME = attrgetter("name")
Pair = tuple[str, str]
ByHop = Mapping[Hop, Mapping[FlowId, Flow]]
AnswersByHop = Mapping[Hop, Mapping[FlowClass, int]]  # what they may come to take of touched links, bit/s on the wire


def planned(epoch: int, network: Network, policy: Policy, demand: PlanInput, before: Workings | None = None) -> Plan:
    """Return the plan that gives each flow its share.

    Every layer's limit is derived from the layer above it and rounded down, so that
    hosts <= meter <= queue <= circuit holds exactly, per class and in total, on each direction of each circuit. A flow
    that crosses several circuits gets the least of what they have for it.

    Args:
        epoch: number of the plan.
        network: where.
        policy: what each class may have.
        demand: who wants to send now, and what is promised.
        before: of any other plan; the answer is the same with it and without, and costs what differs from it.
    """
    if before is None or before.network is not network or before.policy is not policy:
        before = no_workings(network, policy)
    made = _worked_out(before, demand, _Touched(set() if before.links else {*before.parts}))
    return Plan(epoch, made.links, tuple(made.entries.values()), demand.down, made)


def no_workings(network: Network, policy: Policy) -> Workings:
    """Return the workings before the first plan."""
    hops = [Hop(tail, head) for tail, head, _ in network.circuit_links]
    flows: ByHop = {hop: {} for hop in hops}
    parts: Mapping[Hop, Mapping[FlowId, int]] = {hop: {} for hop in hops}
    return Workings(network, policy, PlanInput(()), {}, {}, {}, flows, flows, {}, parts, {}, {}, {}, {})


@dataclass(slots=True)
class _Touched:
    """What a change touches, as far as it is known: links, and flows whose allocations are to be made again."""

    links: set[Hop]
    flows: set[FlowId] = field(default_factory=set)


def _worked_out(before: Workings, demand: PlanInput, touched: _Touched) -> Workings:
    """Return the workings for another demand."""
    flows, known = dict(zip(map(_NAME, demand.flows), demand.flows, strict=True)), before.flows
    come = [flows[name] for name in differing_keys(known, flows) if name in flows and known.get(name) != flows[name]]
    gone = [known[name] for name in known.keys() - flows.keys()] + [known[f.name] for f in come if f.name in known]
    made = replace(before, demand=demand, flows=flows)
    if come or gone:
        made = _with_flows(made, come, gone, touched)
    touched.links |= _differing(before.demand, demand) & made.parts.keys()
    answers_bps = {hop: _answers_bps(made, hop) for hop in touched.links & made.parts.keys()}
    made = _with_parts(_with_links(made, answers_bps), answers_bps, touched)
    return _with_entries(_with_interfaces(_with_sums(made, known, touched), touched), touched)


def _differing(old: PlanInput, new: PlanInput) -> set[Hop]:
    """Return the links whose capacity or promises differ."""
    capacity, reserved = old.capacity_bps, old.reserved_bps
    hops = {hop for hop, bps in new.capacity_bps.items() if capacity.get(hop) != bps}
    hops |= capacity.keys() - new.capacity_bps.keys()
    hops |= {share[0] for share, bps in new.reserved_bps.items() if reserved.get(share) != bps}
    return hops | {hop for hop, _ in reserved.keys() - new.reserved_bps.keys()}


class _Crossings:
    """Which flows cross each circuit, and each host's interface too; those of a link are copied before they change."""

    def __init__(self, by_hop: ByHop, touched: _Touched, circuits: Collection[Hop], *, interfaces: bool) -> None:
        self._by_hop, self._circuits, self._interfaces = by_hop, circuits, interfaces
        self._own: dict[Hop, dict[FlowId, Flow]] = {}
        self._touched = touched

    def put(self, flow: Flow, way: Flow, *, crosses: bool) -> None:
        """Let a flow cross the links of a way, or not any more."""
        for hop in way.links:
            if hop not in self._circuits and not (self._interfaces and hop in interfaces_of(way)):
                continue
            if hop not in self._own:
                self._own[hop] = dict(self._by_hop.get(hop, {}))
                self._touched.links.add(hop)
            self._own[hop].pop(flow.name, None)
            if crosses:
                self._own[hop][flow.name] = flow

    def by_hop(self) -> ByHop:
        """Return them all, those of a link in the order of their names."""
        own = {hop: dict(sorted(flows.items())) for hop, flows in self._own.items()}
        found = {**self._by_hop, **own}
        for hop in [hop for hop, flows in own.items() if not flows and hop not in self._circuits]:
            del found[hop]
        return found


def _with_flows(made: Workings, come: Iterable[Flow], gone: Iterable[Flow], touched: _Touched) -> Workings:
    """Return workings with flows that have come, and without those that have gone; one that has changed is both."""
    pairs, carriers = dict(made.pairs), dict(made.carriers)
    data = _Crossings(made.data, touched, made.parts, interfaces=True)
    answered = _Crossings(made.answered, touched, made.parts, interfaces=False)
    members = {(flow.host, flow.target): {f.name: f for f in pairs.get((flow.host, flow.target), ())} for flow in gone}
    for flow in gone:
        data.put(members[flow.host, flow.target].pop(flow.name), flow, crosses=False)
        touched.flows.add(flow.name)
    for flow in come:
        pair = flow.host, flow.target
        if pair not in members:
            members[pair] = {f.name: f for f in pairs.get(pair, ())}
        stands = within_interfaces(standing_in(flow, made.network, made.policy), made.network)
        members[pair][flow.name] = stands
        data.put(stands, stands, crosses=True)
        touched.flows.add(flow.name)
    around = {pair[::-1]: pairs.get(pair[::-1], ()) for pair in members}
    around |= {pair: tuple(sorted(of_pair.values(), key=lambda f: f.name)) for pair, of_pair in members.items()}
    led = answers((flow for of_pair in around.values() for flow in of_pair), made.policy)
    for pair, of_pair in around.items():
        old, new = carriers.pop(pair, None), led.get(pair)
        before = pairs.pop(pair, ())
        if old is not None and (old != new or pair in members):
            for flow in before:
                answered.put(flow, old, crosses=False)
        if new is not None:
            if old != new or pair in members:
                for flow in of_pair:
                    answered.put(flow, new, crosses=True)
            carriers[pair], pairs[pair] = new, of_pair
    return replace(made, pairs=pairs, carriers=carriers, data=data.by_hop(), answered=answered.by_hop())


def _with_links(made: Workings, answers_bps: AnswersByHop) -> Workings:
    """Return workings with the limits of touched links; those that come out as they were are the same values."""
    links = dict(made.links)
    for hop, of_hop_bps in answers_bps.items():
        link = link_plan(made, hop, of_hop_bps)
        if links.get(hop) != link:
            links[hop] = link
    if links.keys() != made.links.keys():
        links = {hop: links[hop] for hop in made.parts}
    return replace(made, links=links)


def link_plan(made: Workings, hop: Hop, answers_bps: Mapping[FlowClass, int]) -> LinkPlan:
    """Return the limits of one direction of a circuit.

    Answers want what they may come to take, and after all others what is left, for what is sent back beside them.
    """
    network, policy, demand = made.network, made.policy, made.demand
    capacity_bps = demand.capacity_bps.get(hop, network.link(*hop).rate_bps)
    framing = network.framing_of(hop)
    wanted = dict.fromkeys(policy.classes, 0)
    spare = {flow.flow_class for flow in made.data[hop].values() if flow.is_away}
    for flow in made.data[hop].values():
        wanted[flow.flow_class] += capacity_bps if flow.wanted_bps is None else max(flow.wanted_bps, flow.floor_bps)
    for flow_class, bps in answers_bps.items():
        wanted[flow_class] += bps
        spare.add(flow_class)
    reserved = {c: demand.reserved_bps.get(ClassShare(hop, c), 0) for c in policy.classes}
    shares = class_shares(capacity_bps, policy, wanted, reserved, spare)
    circuit_bps = converted_bps(capacity_bps, Layer.WIRE, Layer.FRAME, framing)
    return LinkPlan(capacity_bps, circuit_bps, {c: _limits(wire_bps, framing) for c, wire_bps in shares.items()})


def _limits(wire_bps: int, framing: Framing) -> ClassLimits:
    queue_bps = converted_bps(wire_bps, Layer.WIRE, Layer.FRAME, framing)
    return ClassLimits(wire_bps, queue_bps, queue_bps // 1000 * 1000)


def _with_parts(made: Workings, answers_bps: AnswersByHop, touched: _Touched) -> Workings:
    """Return workings with the touched links divided anew."""
    parts = dict(made.parts)
    for hop, of_hop_bps in answers_bps.items():
        before, parts[hop] = parts[hop], _parts(made, hop, of_hop_bps)
        if before != parts[hop]:
            touched.flows.update(name for name, bps in parts[hop].items() if before.get(name) != bps)
    return replace(made, parts=parts)


def _with_sums(made: Workings, known: Mapping[FlowId, Flow], touched: _Touched) -> Workings:
    """Return workings with what the circuits have for touched flows, by flow and summed by interface.

    Args:
        made: the workings.
        known: the flows that the sums are of.
        touched: which flows have another part; the links of their interfaces are added.
    """
    of_circuits, sums, changes = dict(made.of_circuits), dict(made.sums), list[tuple[Flow, int]]()
    for name in touched.flows:
        old, new, had_bps = known.get(name), made.flows.get(name), of_circuits.get(name, 0)
        if new is None:
            of_circuits.pop(name, None)
        else:
            of_circuits[name] = _of_circuits(made, new)
        if old is new and new is not None:  # as nearly all
            changes.append((new, of_circuits[name] - had_bps))
            continue
        changes += [(old, -had_bps)] if old is not None else []
        changes += [(new, of_circuits[name])] if new is not None else []
    for flow, more_bps in changes:
        for hop in dict.fromkeys(interfaces_of(flow)):
            if hop not in made.parts:
                sums[hop] = sums.get(hop, 0) + more_bps
                touched.links.add(hop)
    for hop in touched.links & sums.keys():
        if hop not in made.data:
            del sums[hop]
    return replace(made, of_circuits=of_circuits, sums=sums)


def _with_interfaces(made: Workings, touched: _Touched) -> Workings:
    """Return workings with the interfaces of touched flows divided anew, where they cannot carry all."""
    held = dict(made.held)
    for hop in touched.links - made.parts.keys():
        before, after = held.pop(hop, {}), _held(made, hop)
        if after:
            held[hop] = after
        changed = (name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        touched.flows.update(name for name in changed if name in made.flows)
    return replace(made, held=held)


def _held(made: Workings, hop: Hop) -> Mapping[FlowId, int]:
    """Return what each flow gets of an interface; none if all of them can have what their circuits give."""
    framing, rate_bps = made.network.framing_of(hop), made.network.link(*hop).rate_bps
    total_bps = converted_bps(rate_bps, Layer.WIRE, Layer.FRAME, framing)
    if made.sums.get(hop, 0) <= total_bps:
        return {}
    members = [(f, made.of_circuits[name]) for name, f in made.data[hop].items()]
    parts = interface_parts(total_bps, made.policy, members, framing)
    return {flow.name: bps for (flow, _), bps in zip(members, parts, strict=True)}


def _of_circuits(made: Workings, flow: Flow) -> int:
    """Return the least that a flow's circuits have for it, bit/s of frames; 0 if it crosses none."""
    return min([made.parts[hop][flow.name] for hop in flow.links if hop in made.parts], default=0)


def _parts(made: Workings, hop: Hop, answers_bps: Mapping[FlowClass, int]) -> Mapping[FlowId, int]:
    """Return what each flow that crosses a link can have of it, beside answers."""
    framing = made.network.framing_of(hop)
    by_class: dict[FlowClass, list[Flow]] = {}
    for flow in made.data[hop].values():
        by_class.setdefault(flow.flow_class, []).append(flow)
    parts: dict[FlowId, int] = {}
    frames_bps = conversion(Layer.WIRE, Layer.FRAME, framing)
    for flow_class, members in by_class.items():
        meter_bps = made.links[hop].classes[flow_class].meter_bps
        shared = divided(meter_bps, frames_bps(answers_bps.get(flow_class, 0)), members, framing)
        parts.update(zip((flow.name for flow in members), shared, strict=True))
    return parts


def _answers_bps(made: Workings, hop: Hop) -> dict[FlowClass, int]:
    """Return what the answers of each class may come to take of a link, bit/s on the wire.

    Whether their data is there now does not matter: a circuit that changes hands changes in the direction of the data
    alone, and whatever is at its far end need not be told (decision 53).
    """
    network, found = made.network, dict[FlowClass, int]()
    part_ppm = answers_ppm(network.framing_of(hop))
    answered = answered_shares(made.answered[hop].values(), made.carriers, network.against(*hop))
    for flow_class, shares in answered.items():
        data_bps = 0
        for share, senders in shares.items():
            most_bps = made.policy.most_bps(share.flow_class, network.link(*share.hop).rate_bps)
            data_bps += min(most_bps, sum(may_send_bps(f, most_bps) for f in senders))
        found[flow_class] = data_bps * part_ppm // PPM
    return found


def _with_entries(made: Workings, touched: _Touched) -> Workings:
    """Return workings with the allocations of touched flows; one that comes out as it was is the same value."""
    entries = dict(made.entries)
    for name in touched.flows:
        before = entries.get(name)
        after = _entry(made, made.flows[name]) if name in made.flows else None
        if after is None:
            entries.pop(name, None)
        elif after != before:
            entries[name] = after
    if entries.keys() != made.entries.keys():
        entries = dict(sorted(entries.items()))
    return replace(made, entries=entries)


def _entry(made: Workings, asked: Flow) -> Entry | None:
    """Return the allocation of a flow: the least that its links have for it; None if no host can be told so little."""
    of_pair, frame_bps = made.pairs[asked.host, asked.target], made.of_circuits[asked.name]
    flow = of_pair[0] if len(of_pair) == 1 else next(f for f in of_pair if f.name == asked.name)
    for hop in flow.links if made.held else ():
        if hop in made.held:
            frame_bps = min(frame_bps, made.held[hop][flow.name])
    found = entry(flow, frame_bps, made.network, made.policy)
    return found if found.payload_bps >= LEAST_TOLD_BPS else None
