"""Flows are held to what their receivers take; what that frees is for others. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from controller.plan.intake import Intake
from controller.plan.keys import FlowId
from controller.plan.plan import Flow
from controller.plan.receivers import Incoming, ReceiverBucket, ceilings_bps
from topology.network import Network
from topology.wire import Layer, converted_bps


@dataclass(frozen=True, slots=True)
class Intaking:
    """A receiver that is held, and who sends to it now.

    Attributes:
        intake: what it takes.
        flows: the names of those that send to it.
    """

    intake: Intake
    flows: Collection[FlowId]


def can_be_held(flow: Flow) -> bool:
    """Return whether a flow may be planned for less than it is promised: a reservation keeps what it has reserved."""
    return not flow.floor_bps or bool(flow.standby_bps)


def held(
    flows: Iterable[Flow], receivers: Iterable[Intaking], left_bytes: Mapping[FlowId, int], network: Network
) -> tuple[Flow, ...]:
    """Return flows as they are planned while their receivers take less than they could be sent.

    Args:
        flows: who wants to send.
        receivers: those that are held.
        left_bytes: what a flow has yet to send, where that was announced.
        network: where.
    """
    found = {flow.name: flow for flow in flows}
    for one in receivers:
        ceiling_bps = one.intake.ceiling_bps
        sending = [found[name] for name in sorted(one.flows) if name in found and can_be_held(found[name])]
        if ceiling_bps is None or not sending:
            continue
        bucket = ReceiverBucket(one.intake.room_bytes, ceiling_bps)
        incoming = [Incoming(_most_bps(flow, network), left_bytes.get(flow.name)) for flow in sending]
        for flow, most_bps in zip(sending, ceilings_bps(bucket, incoming), strict=True):
            found[flow.name] = _down_to(flow, most_bps, network)
    return tuple(found.values())


def _most_bps(flow: Flow, network: Network) -> int:
    """Return what a flow could use at the most, bit/s of payload."""
    wire_bps = min(network.link(*hop).rate_bps for hop in flow.links)
    if flow.wanted_bps is not None:
        wire_bps = min(wire_bps, max(flow.wanted_bps, flow.floor_bps))
    return converted_bps(wire_bps, Layer.WIRE, Layer.PAYLOAD, network.framing_of(flow.path))


def _down_to(flow: Flow, payload_bps: int, network: Network) -> Flow:
    """Return a flow that wants, and is promised, no more than a rate of payload; never less than it stands by with."""
    wire_bps = converted_bps(payload_bps, Layer.PAYLOAD, Layer.WIRE, network.framing_of(flow.path))
    most_bps = max(wire_bps, flow.standby_bps)
    wanted_bps = most_bps if flow.wanted_bps is None else min(flow.wanted_bps, most_bps)
    return replace(flow, wanted_bps=wanted_bps, floor_bps=min(flow.floor_bps, wanted_bps))
