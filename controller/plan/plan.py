"""The plan: who may send how much on a circuit, and what that means at each layer that enforces it."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network

from controller.plan.policy import PPM, Policy
from controller.plan.shares import class_shares, split
from topology.protocol import FlowClass
from topology.wire import Framing, Layer, converted_bps, cwnd_segments


@dataclass(frozen=True, slots=True)
class Flow:
    """Somebody who wants to send: a standing flow from the configuration, or a part of an announcement.

    Attributes:
        name: unique, e.g. ``background/base23``.
        flow_class: its class.
        host: the sending host.
        target: the receiving host.
        dest: the receiver's address as a prefix.
    """

    name: str
    flow_class: FlowClass
    host: str
    target: str
    dest: IPv4Network


@dataclass(frozen=True, slots=True)
class Entry:
    """One allocation: a flow, its rate and its window.

    Attributes:
        flow: who sends.
        frame_bps: its part of the class's meter, bit/s of Ethernet frames.
        payload_bps: what the host paces at, bit/s of TCP payload.
        window_segments: the fixed congestion window.
    """

    flow: Flow
    frame_bps: int
    payload_bps: int
    window_segments: int


@dataclass(frozen=True, slots=True)
class ClassLimits:
    """What one class has at each layer.

    Attributes:
        wire_bps: its share of the circuit, bit/s on the wire.
        queue_bps: what its queue is guaranteed, bit/s of frames.
        meter_bps: what its meter lets through, bit/s of frames, whole kbit/s (OpenFlow 1.3 ofp_meter_band).
    """

    wire_bps: int
    queue_bps: int
    meter_bps: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The bandwidth plan of one circuit. Even epochs are settled, odd ones are on the way between two.

    Attributes:
        epoch: number of the plan; only grows.
        wire_bps: the circuit, bit/s on the wire.
        circuit_bps: the same in frames, which is what the switch's port may send.
        classes: every class's limits.
        entries: the allocations, ordered by name.
    """

    epoch: int
    wire_bps: int
    circuit_bps: int
    classes: dict[FlowClass, ClassLimits]
    entries: tuple[Entry, ...]

    def of_host(self, host: str) -> tuple[Entry, ...]:
        """Return the entries of one sending host."""
        return tuple(e for e in self.entries if e.flow.host == host)


@dataclass(frozen=True, slots=True)
class CircuitPath:
    """What the planner must know of a circuit: rate on the wire, round trip from host to host, framing."""

    wire_bps: int
    rtt_us: int
    framing: Framing


def planned(epoch: int, path: CircuitPath, policy: Policy, flows: Iterable[Flow]) -> Plan:
    """Return the plan that gives each flow its share.

    Every layer's limit is derived from the layer above it and rounded down, so that
    hosts <= meter <= queue <= circuit holds exactly, per class and in total.

    Args:
        epoch: number of the plan.
        path: the circuit.
        policy: what each class may have.
        flows: who wants to send now.
    """
    by_class: dict[FlowClass, list[Flow]] = {c: [] for c in policy.classes}
    for flow in sorted(flows, key=lambda f: f.name):
        by_class[flow.flow_class].append(flow)
    wanted = {c: path.wire_bps for c, members in by_class.items() if members}
    shares = class_shares(path.wire_bps, policy, wanted)
    limits = {c: _limits(wire_bps, path.framing) for c, wire_bps in shares.items()}
    entries = [e for c, members in by_class.items() for e in _entries(limits[c], members, path, policy)]
    return Plan(
        epoch=epoch,
        wire_bps=path.wire_bps,
        circuit_bps=converted_bps(path.wire_bps, Layer.WIRE, Layer.FRAME, path.framing),
        classes=limits,
        entries=tuple(sorted(entries, key=lambda e: e.flow.name)),
    )


def _limits(wire_bps: int, framing: Framing) -> ClassLimits:
    queue_bps = converted_bps(wire_bps, Layer.WIRE, Layer.FRAME, framing)
    return ClassLimits(wire_bps, queue_bps, queue_bps // 1000 * 1000)


def _entries(limits: ClassLimits, flows: list[Flow], path: CircuitPath, policy: Policy) -> list[Entry]:
    return [
        entry(flow, frame_bps, path, policy)
        for flow, frame_bps in zip(flows, split(limits.meter_bps, [1] * len(flows)), strict=True)
    ]


def entry(flow: Flow, frame_bps: int, path: CircuitPath, policy: Policy) -> Entry:
    """Return the allocation that fills ``frame_bps`` of a meter, with the window its rate needs."""
    payload_bps = converted_bps(frame_bps, Layer.FRAME, Layer.PAYLOAD, path.framing)
    bare_segments = cwnd_segments(max(1, payload_bps), path.rtt_us, path.framing.mss_bytes)
    window_segments = -(-bare_segments * (PPM + policy.window_slack_ppm) // PPM)
    return Entry(flow, frame_bps, payload_bps, window_segments)
