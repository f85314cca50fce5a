"""What a plan means between each two hosts, for all switches at once: where it enters a circuit, and whom it crosses.

It is worked out from that of another plan, where the two differ: what lies between two hosts follows from the entries
of the one to the other and back, and from nothing else. What does not differ is the very same value. Pure.

An aggregate is what one host sends another with one mark, by one way in one class (RFC 2475, traffic aggregate).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from controller.plan.answers import answers, may_send_bps
from controller.plan.differences import with_changed
from controller.plan.keys import ClassShare
from controller.plan.plan import THE_REST, Entry, Flow, Plan
from controller.plan.policy import Policy
from topology.network import Hop, Network
from topology.protocol import FlowClass
from topology.wire import PPM, answers_ppm

AggregateKey = tuple[str, str, int | None]  # the host here, the one beyond, and the mark that tells it from others
_Pair = tuple[str, str]  # two hosts, in the order of their names


class AggregateWay(NamedTuple):
    """The class and the path of an aggregate, and what it takes, bit/s of frames.

    Attributes:
        flow_class: its class.
        path: the nodes it crosses, from host to target.
        data_bps: its allocation.
        answers_bps: the answers in it to what is allocated now.
        may_answer_bps: the answers in it to all that those they answer may come to send, whoever sends now.
    """

    flow_class: FlowClass
    path: tuple[str, ...]
    data_bps: int = 0
    answers_bps: int = 0
    may_answer_bps: int = 0

    @property
    def share(self) -> ClassShare:
        """The circuit link by which it leaves its first switch, and its class there."""
        return ClassShare(Hop(self.path[1], self.path[2]), self.flow_class)


AggregateWays = Mapping[AggregateKey, AggregateWay]
NO_AGGREGATES: AggregateWays = {}


@dataclass(frozen=True, slots=True)
class PlanAggregates:
    """The aggregates of a plan.

    Attributes:
        plan: of which they are.
        pairs: by two hosts, the entries between them either way, in the plan's order.
        between: by two hosts, their aggregates.
        begun: by switch, the aggregates that enter a circuit there, by link and class.
        crossing: by node further on, but for the last switch, the aggregates that come by it.
    """

    plan: Plan
    pairs: Mapping[_Pair, tuple[Entry, ...]]
    between: Mapping[_Pair, AggregateWays]
    begun: Mapping[str, Mapping[ClassShare, AggregateWays]]
    crossing: Mapping[str, AggregateWays]


NO_PLAN = PlanAggregates(Plan(0, {}, ()), {}, {}, {}, {})


def plan_aggregates(network: Network, plan: Plan, policy: Policy, before: PlanAggregates = NO_PLAN) -> PlanAggregates:
    """Return the aggregates of a plan, the same whatever it is worked out from.

    Args:
        network: where.
        plan: who may send what.
        policy: what each class may have.
        before: those of another plan on the same network.
    """
    come, gone = plan.not_among(before.plan), before.plan.not_among(plan)
    if not come and not gone and len(plan.entries) == len(before.plan.entries):
        return before
    touched: dict[_Pair, list[Entry]] = {_pair(entry): [] for entry in (*come, *gone)}
    for pair, entries in touched.items():
        entries += [entry for entry in before.pairs.get(pair, ()) if plan.named(entry.flow.name) is entry]
    for entry in come:
        touched[_pair(entry)].append(entry)
    pairs, between = dict(before.pairs), dict(before.between)
    begun, crossing = _Begun(before.begun), _Kept(before.crossing)
    ppm = answers_ppm(network.framing)
    for pair, members in touched.items():
        pairs[pair] = ordered = plan.in_order(members)
        old, is_same = between.pop(pair, NO_AGGREGATES), _has_same_flows(before.pairs.get(pair, ()), ordered)
        new = _needing(old if is_same else _between(ordered, policy), ordered, network, policy, ppm)
        for key, way in () if is_same else old.items():
            if (now := new.get(key)) is None or now[:2] != way[:2]:
                begun.of(way).pop(key)
                for node in way.path[2:-2]:
                    crossing.own(node).pop(key)
        for key, way in new.items():
            if old.get(key) != way:
                begun.of(way)[key] = way
                for node in way.path[2:-2]:
                    crossing.own(node)[key] = way
        if new:
            between[pair] = new
        else:
            del pairs[pair]
    return PlanAggregates(plan, pairs, between, begun.by_switch(), crossing.all())


class _Kept:
    """Aggregates by where they are; those of a place are copied before they change."""

    def __init__(self, before: Mapping[str, AggregateWays]) -> None:
        self._before = before
        self._own: dict[str, dict[AggregateKey, AggregateWay]] = {}

    def own(self, place: str) -> dict[AggregateKey, AggregateWay]:
        """Return those of a place, to be changed."""
        if place not in self._own:
            self._own[place] = dict(self._before.get(place, NO_AGGREGATES))
        return self._own[place]

    def all(self) -> Mapping[str, AggregateWays]:
        """Return them all."""
        return with_changed(self._before, self._own)


class _Begun:
    """Aggregates by the switch and the class's link where they begin; those of a link are copied before they change."""

    def __init__(self, before: Mapping[str, Mapping[ClassShare, AggregateWays]]) -> None:
        self._before = before
        self._own: dict[ClassShare, dict[AggregateKey, AggregateWay]] = {}

    def of(self, way: AggregateWay) -> dict[AggregateKey, AggregateWay]:
        """Return those where an aggregate begins, to be changed."""
        share = way.share
        if share not in self._own:
            self._own[share] = dict(self._before.get(share.hop.tail, {}).get(share, NO_AGGREGATES))
        return self._own[share]

    def by_switch(self) -> Mapping[str, Mapping[ClassShare, AggregateWays]]:
        """Return them all."""
        found = dict(self._before)
        for switch in {share.hop.tail for share in self._own}:
            own = {share: ways for share, ways in self._own.items() if share.hop.tail == switch}
            found[switch] = with_changed(found.get(switch, {}), own)
        return found


def _pair(entry: Entry) -> _Pair:
    flow = entry.flow
    return (flow.host, flow.target) if flow.host < flow.target else (flow.target, flow.host)


def _has_same_flows(had: Sequence[Entry], have: Sequence[Entry]) -> bool:
    """Return whether entries are of the very same flows, so that only their rates may differ, as mostly."""
    return len(had) == len(have) and all(one.flow is other.flow for one, other in zip(had, have, strict=True))


def _between(entries: Sequence[Entry], policy: Policy) -> AggregateWays:
    """Return the aggregates of two hosts: data, and answers, which carry no mark. What is within a site has none."""
    ways: dict[AggregateKey, AggregateWay] = {}
    for flow in (entry.flow for entry in entries):
        ways.setdefault(aggregate_key(flow), AggregateWay(flow.flow_class, flow.path))
    for (host, target), flow in answers([entry.flow for entry in entries], policy).items():
        ways.setdefault((target, host, None), AggregateWay(flow.flow_class, flow.path))
    return {key: way for key, way in ways.items() if len(way.path) > 3}


def _needing(
    ways: AggregateWays, entries: Sequence[Entry], network: Network, policy: Policy, ppm: int
) -> AggregateWays:
    """Return the aggregates of two hosts with what they need for these entries; ``ppm``: what answers take of data."""
    needs = {key: [0, 0, 0] for key in ways}  # as the members of an aggregate's way are: data, answers, may answer
    for entry in entries:
        flow = entry.flow
        if data := needs.get(aggregate_key(flow)):
            data[0] += entry.frame_bps
        if back := needs.get((flow.target, flow.host, None)):
            most_bps = policy.most_bps(flow.flow_class, network.narrowest_bps(flow.path))
            sent_bps = max(entry.frame_bps, may_send_bps(flow, most_bps))
            back[1] += -(-entry.frame_bps * ppm // PPM)
            back[2] += -(-sent_bps * ppm // PPM)
    return {key: AggregateWay(way.flow_class, way.path, *needs[key]) for key, way in ways.items()}


def aggregate_key(flow: Flow) -> AggregateKey:
    """Return what tells the aggregate of a flow's data from others."""
    return flow.host, flow.target, None if flow.selector == THE_REST else flow.mark
