"""Flows are held to what their receivers take; what that frees is for others. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import inf
from types import MappingProxyType

from controller.plan.announced_flows import AWAKE_BPS
from controller.plan.intake import Intake
from controller.plan.keys import FlowId, StorePlace
from controller.plan.plan import Flow
from controller.plan.policy import Policy
from controller.plan.receivers import Incoming, ReceiverBucket, Turn, ceilings_in_turn_bps
from topology.network import Network
from topology.protocol import FlowClass
from topology.wire import PPM, Layer, converted_bps

KEPT = 7, 8  # of what is promised: who takes that much is promised it, for rooms are measured while they fill
WAITING = 256  # who waits for a disk has a 256th of it, and no less than keeps its connection awake


@dataclass(frozen=True, slots=True)
class Intaking:
    """A receiver that is held, and who sends to it now.

    Attributes:
        intake: what it takes.
        flows: the names of those that send to it.
    """

    intake: Intake
    flows: Collection[FlowId]


@dataclass(frozen=True, slots=True)
class StorePromise:
    """What is promised of what a flow sends to a store.

    Attributes:
        place: the store.
        stored_us: when it is stored, Unix time.
        is_due: whether it is promised some rate now.
        is_under_way: whether some of it has arrived, and all is not promised to be stored yet.
    """

    place: StorePlace
    stored_us: int
    is_due: bool = True
    is_under_way: bool = False


NO_PROMISES: Mapping[FlowId, StorePromise] = MappingProxyType({})


def can_be_held(flow: Flow) -> bool:
    """Return whether a flow may be planned for less than it is promised: a reservation keeps what it has reserved."""
    return not flow.floor_bps or bool(flow.standby_bps)


@dataclass(frozen=True, slots=True)
class Where:
    """The network and its policy."""

    network: Network
    policy: Policy


def held(
    flows: Iterable[Flow],
    receivers: Iterable[Intaking],
    left_bytes: Mapping[FlowId, int],
    where: Where,
    promises: Mapping[FlowId, StorePromise] = NO_PROMISES,
) -> tuple[Flow, ...]:
    """Return flows as they are planned while their receivers take less than they could be sent.

    A receiver is given as a circuit is: guarantees first, then what is promised, then by the priority of the classes.
    In a class what is promised to be stored first comes first, alone: a disk that is shared is late for all but one.
    Who is not promised any rate yet waits until what was promised before is stored, not only across: what lies in a
    page cache is written in turns.

    Args:
        flows: who wants to send.
        receivers: those that are held.
        left_bytes: what a flow has yet to send, where that was announced.
        where: the network and its policy.
        promises: what is promised of what a flow sends to a store, where that was promised.
    """
    classes = where.policy.classes
    flows, receivers = tuple(flows), tuple(receivers)
    if not receivers:
        return flows
    found = {flow.name: flow for flow in flows}
    for one in receivers:
        ceiling_bps = one.intake.ceiling_bps
        sending = [found[name] for name in sorted(one.flows) if name in found and can_be_held(found[name])]
        if ceiling_bps is None or not sending:
            continue
        for name in _waiting(sending, promises):
            found[name] = _down_to_waiting(found[name], ceiling_bps, where.network)
        sending = [flow for flow in sending if found[flow.name] is flow]
        bucket = ReceiverBucket(one.intake.room_bytes, ceiling_bps)
        by_class = [
            (flow_class, [flow for flow in sending if flow.flow_class is flow_class])
            for flow_class in sorted({flow.flow_class for flow in sending}, key=lambda c: classes[c].priority)
        ]
        all_kept_bps = _kept_bps(bucket.drain_bps, by_class, where)
        in_turn = [
            (group, 0 if number else kept_bps)
            for (_, members), kept_bps in zip(by_class, all_kept_bps, strict=True)
            for number, group in enumerate(_by_promise(members, promises))
        ]
        turns = [
            Turn([Incoming(_most_bps(f, where), left_bytes.get(f.name)) for f in group], kept_bps)
            for group, kept_bps in in_turn
        ]
        for (group, _), rates_bps in zip(in_turn, ceilings_in_turn_bps(bucket, turns), strict=True):
            for flow, most_bps in zip(group, rates_bps, strict=True):
                found[flow.name] = _down_to(flow, most_bps, where.network)
    return tuple(found.values())


def _waiting(sending: Iterable[Flow], promises: Mapping[FlowId, StorePromise]) -> list[FlowId]:
    """Return those who wait for what was promised before to be stored: it is under way, and they are not due yet."""
    names = {flow.name: None for flow in sending if flow.name in promises}
    early = [name for name in names if not promises[name].is_due]
    first_us: dict[StorePlace, int] = {}
    for name in (*names, *promises) if early else ():
        one = promises[name]
        if one.is_under_way or name in names:
            first_us[one.place] = min(one.stored_us, first_us.get(one.place, one.stored_us))
    return [name for name in early if first_us[promises[name].place] < promises[name].stored_us]


def _by_promise(members: Iterable[Flow], promises: Mapping[FlowId, StorePromise]) -> list[list[Flow]]:
    """Return the flows of a class in turn: by when they are promised to be stored, and those that are not, last."""

    def when_us(flow: Flow) -> float:
        return promises[flow.name].stored_us if flow.name in promises else inf

    return [list(group) for _, group in groupby(sorted(members, key=when_us), key=when_us)]


def _kept_bps(drain_bps: int, by_class: Iterable[tuple[FlowClass, Sequence[Flow]]], where: Where) -> list[int]:
    """Return what each class keeps of a drain: its guarantee's part, and what is promised as far as there is more."""
    by_class = list(by_class)
    least = [drain_bps * where.policy.classes[c].guarantee_ppm // PPM for c, _ in by_class]
    left_bps, kept = drain_bps - sum(least), list[int]()
    for (_, members), least_bps in zip(by_class, least, strict=True):
        promised_bps = sum(
            converted_bps(f.floor_bps, Layer.WIRE, Layer.PAYLOAD, where.network.framing_of(f.path)) for f in members
        )
        more_bps = min(left_bps, max(0, promised_bps - least_bps))
        left_bps -= more_bps
        kept.append(least_bps + more_bps)
    return kept


def _most_bps(flow: Flow, where: Where) -> int:
    """Return what a flow could use at the most, bit/s of payload: no more than its class may have of a circuit."""
    network, cap_ppm = where.network, where.policy.classes[flow.flow_class].cap_ppm
    links = [network.link(*hop) for hop in flow.links]
    wire_bps = min(link.rate_bps * cap_ppm // PPM if link.circuit else link.rate_bps for link in links)
    if flow.wanted_bps is not None:
        wire_bps = min(wire_bps, max(flow.wanted_bps, flow.floor_bps))
    return converted_bps(wire_bps, Layer.WIRE, Layer.PAYLOAD, network.framing_of(flow.path))


def _down_to_waiting(flow: Flow, drain_bps: int, network: Network) -> Flow:
    """Return a flow that waits for a disk: next to nothing of it comes, and the connection stays awake."""
    payload_bps = max(drain_bps // WAITING, AWAKE_BPS)
    wire_bps = converted_bps(payload_bps, Layer.PAYLOAD, Layer.WIRE, network.framing_of(flow.path))
    return replace(flow, wanted_bps=min(wire_bps, flow.standby_bps or wire_bps), floor_bps=0)


def _down_to(flow: Flow, payload_bps: int, network: Network) -> Flow:
    """Return a flow that wants, and is promised, no more than a rate of payload; never less than it stands by with."""
    wire_bps = converted_bps(payload_bps, Layer.PAYLOAD, Layer.WIRE, network.framing_of(flow.path))
    most_bps = max(wire_bps, flow.standby_bps)
    if most_bps * KEPT[1] >= flow.floor_bps * KEPT[0]:
        most_bps = max(most_bps, flow.floor_bps)
    wanted_bps = most_bps if flow.wanted_bps is None else min(flow.wanted_bps, most_bps)
    return replace(flow, wanted_bps=wanted_bps, floor_bps=min(flow.floor_bps, wanted_bps))
