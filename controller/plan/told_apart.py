"""Several promises of one pair of hosts as flows of the plan, and how their connections and packets are told apart.

Hosts hold, and switches class, connections. A promise says which of the pair's it is for by their ports; or it is for
the rest, of which the most urgent class has what no other claims and each other class what the application has marked
with its code point (docs/decisions/0019). Promises for the same connections are one flow in the plan. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import compress
from operator import attrgetter
from typing import NamedTuple

from controller.plan.calendar import Need
from controller.plan.keys import ClassShare, FlowId
from controller.plan.paths import Path
from controller.plan.plan import THE_REST, Carried, Flow, Selector
from controller.plan.policy import Policy
from topology.network import hops
from topology.protocol import FlowClass, Tail

_PAIR = attrgetter("host", "target")
LOCAL_USE_DSCPS = range(3, 64, 4)  # xxxx11, RFC 2474 section 6


def told_apart(flows: Iterable[Flow], policy: Policy) -> tuple[Flow, ...]:
    """Return one flow for each choice of connections that is wanted, with what tells it from others of its pair.

    Promises for the same connections are added up on the way of the first that is promised anything; what another way
    has promised is not counted on this one, so that the sum of floors is never above what was booked there.
    """
    flows = [*flows]
    pairs = [*map(_PAIR, flows)]
    several = {pair for pair, count in Counter(pairs).items() if count > 1}
    by_pair: dict[tuple[str, str], dict[tuple[FlowClass, Selector], list[Flow]]] = {}
    shared = [*map(several.__contains__, pairs)]
    for pair, flow in compress(zip(pairs, flows, strict=True), shared):
        by_pair.setdefault(pair, {}).setdefault((flow.flow_class, flow.selector), []).append(flow)
    told: list[Flow] = []
    for pair, flow, is_shared in zip(pairs, flows, shared, strict=True):
        if not is_shared and flow.selector is THE_REST:  # as nearly all
            told.append(flow)
        elif not is_shared:
            told += _marked([flow], policy)
        elif pair in by_pair:
            told += _marked([_one_flow(members) for members in by_pair.pop(pair).values()], policy)
    return tuple(told)


def _one_flow(members: list[Flow]) -> Flow:
    """Return some flows for the same connections as one."""
    first = next((f for f in members if f.floor_bps), members[0])
    if len(members) == 1:
        return first
    watched = all(f.standby_bps for f in members)
    wanted = [f.wanted_bps for f in members if f.wanted_bps is not None]
    return replace(
        first,
        floor_bps=sum(f.floor_bps for f in members if f.path == first.path),
        wanted_bps=sum(wanted) if len(wanted) == len(members) else None,
        standby_bps=sum(f.standby_bps for f in members) if watched else 0,
        size_bytes=sum(f.size_bytes for f in members) if all(f.size_bytes for f in members) else 0,
        carries=tuple(Carried(f.name, f.floor_bps) for f in members),
        tail=Tail.CODED if any(f.tail is Tail.CODED for f in members) else Tail.PLAIN,
    )


def _marked(of_pair: list[Flow], policy: Policy) -> Iterator[Flow]:
    """Yield the flows of a pair, each with the connections it is for and the mark of its packets."""
    if len(of_pair) == 1 and of_pair[0].selector == THE_REST:
        yield of_pair[0]
        return
    for_the_rest = _by_urgency((f for f in of_pair if f.selector == THE_REST), policy)
    for flow in for_the_rest[:1]:
        yield replace(flow, mark=0) if len(of_pair) > 1 else flow
    taken = {0}
    for flow in for_the_rest[1:]:
        dscp = policy.classes[flow.flow_class].dscp
        taken.add(dscp)
        yield replace(flow, selector=Selector(own_dscp=dscp), mark=dscp)
    by_ports = {f.selector: f for f in reversed(_by_urgency((f for f in of_pair if f.selector != THE_REST), policy))}
    for flow in reversed(by_ports.values()):
        own = policy.classes[flow.flow_class].dscp
        mark = next((dscp for dscp in (own, *LOCAL_USE_DSCPS) if dscp not in taken), None)
        if mark is not None:  # else it has too many choices of ports: so many are not promised (beside.py)
            taken.add(mark)
            yield replace(flow, mark=mark)


def _by_urgency(flows: Iterable[Flow], policy: Policy) -> list[Flow]:
    return sorted(flows, key=lambda f: (policy.classes[f.flow_class].priority, f.name))


class Booked(NamedTuple):
    """What is booked now for a pair of hosts, or of sites: what it needs along which paths, and bit/s on the wire."""

    ends: tuple[str, str]
    need: Need
    paths: tuple[Path, ...]
    rate_bps: int


def reserved_bps(booked: Iterable[Booked], carriers: Mapping[tuple[str, str], Flow]) -> dict[ClassShare, int]:
    """Return what is booked of each class's shares, answers in the class in which they go (:func:`plan.answers`)."""
    reserved: dict[ClassShare, int] = {}
    for ends, wanted, paths, rate_bps in booked:
        there = {hop for path in paths for hop in hops(path)}
        for resource, bps in wanted.claims(rate_bps):
            if isinstance(resource, ClassShare):
                back = carriers.get(ends) if resource.hop not in there else None
                share = ClassShare(resource.hop, back.flow_class) if back else resource
                reserved[share] = reserved.get(share, 0) + bps
    return reserved


def planned_parts_bps(flow: Flow, rate_bps: int) -> dict[FlowId, int]:
    """Return what each promise that a flow stands for gets of its rate, rounded up, in proportion to what it has."""
    if not flow.carries:
        return {flow.name: rate_bps}
    promised_bps = sum(known.floor_bps for known in flow.carries)
    if not promised_bps:
        return {known.name: rate_bps // len(flow.carries) for known in flow.carries}
    return {known.name: -(-rate_bps * known.floor_bps // promised_bps) for known in flow.carries}
