"""What the controller and a host agent say to each other, as values.

The agent dials the controller and opens a WebSocket (RFC 6455) at ``ATTACH_PATH`` (see docs/decisions/0010). Each
message is one frame, one JSON object with a ``kind`` field (see docs/decisions/0002). Down come ``Allocations``,
repeated at least every third of the lease; up go ``Hello`` once, ``Applied`` after each new epoch is in the kernel,
``Telemetry`` each second, ``Declined`` for what the agent does not act on. The agent pings every ``PING_S``; an end
that has heard nothing for ``SILENT_S`` takes the other for dead.
"""

from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass

ATTACH_PATH = "/headway/agents"
PING_S = 5.0
SILENT_S = 15.0  # two pings may be lost
LONGEST_BYTES = 1 << 20  # of a message

_STRICT = ConfigDict(extra="forbid", strict=False)


class FlowClass(StrEnum):
    """How the plan treats a flow. Source: Freemon 2013 section IV.B, and ``unplanned`` for all the rest."""

    PREDICTABLE = "predictable"
    URGENT = "urgent"
    BACKGROUND = "background"
    UNPLANNED = "unplanned"


@dataclass(frozen=True, slots=True, config=_STRICT)
class Allocation:
    """One entry of the plan: what one host may send to one destination, all matching connections together.

    Attributes:
        name: unique within the plan, e.g. ``urgent/base20``.
        flow_class: the class the flow belongs to.
        dest: destination prefix; the longest match wins.
        dest_port: remote TCP port, 0 for any.
        local_port: local TCP port, 0 for any.
        rate_bps: TCP payload, bit/s, all matching connections together.
        window_segments: congestion window, segments, all matching connections together.
        dscp: DiffServ code point for the packets; None leaves the application's own.
    """

    name: str
    flow_class: FlowClass
    dest: IPv4Network | IPv6Network
    rate_bps: Annotated[int, Field(gt=0)]
    window_segments: Annotated[int, Field(gt=0)]
    dest_port: Annotated[int, Field(ge=0, le=65535)] = 0
    local_port: Annotated[int, Field(ge=0, le=65535)] = 0
    dscp: Annotated[int, Field(ge=0, le=63)] | None = None


@dataclass(frozen=True, slots=True, config=_STRICT)
class Allocations:
    """All that one host may do now. Replaces what was; the same epoch again renews the lease.

    Attributes:
        epoch: number of the plan; only grows. 0, without entries, from a controller that has no plan for the host yet:
            what is in force stays until its lease ends.
        lease_ms: how long the entries hold without another message.
        entries: the host's allocations, none if it has no part in the plan.
        receive_window_bytes: the window its receiving sockets must be able to open; 0 leaves the host's own setting.
    """

    epoch: int
    lease_ms: Annotated[int, Field(gt=0)]
    entries: tuple[Allocation, ...] = ()
    receive_window_bytes: Annotated[int, Field(ge=0)] = 0
    kind: Literal["allocations"] = "allocations"


@dataclass(frozen=True, slots=True, config=_STRICT)
class Hello:
    """The agent's first message: who it is and what it can do."""

    host: str
    version: str
    kernel: str
    kind: Literal["hello"] = "hello"


@dataclass(frozen=True, slots=True, config=_STRICT)
class Applied:
    """``epoch`` is in force in the kernel: no connection sends by an older one from its next ACK on."""

    epoch: int
    kind: Literal["applied"] = "applied"


@dataclass(frozen=True, slots=True, config=_STRICT)
class EntryTelemetry:
    """One allocation as the kernel sees it. Counters only grow while the entry exists.

    Attributes:
        name: the allocation's name.
        connections: matching connections open now.
        active: of these, how many share the rate now.
        delivered_bytes: payload confirmed by the receiver, cumulative.
        sent_segments: segments sent, retransmissions included, cumulative.
        retransmitted_segments: segments sent again, cumulative.
        rtt_us: smoothed round-trip time of the connection that was served last, 0 if none yet.
        fallback: why the connections run the host's own congestion control although the lease runs; empty if they do
            not.
    """

    name: str
    connections: int
    active: int
    delivered_bytes: int
    sent_segments: int
    retransmitted_segments: int
    rtt_us: int
    fallback: Literal["", "loss"] = ""


@dataclass(frozen=True, slots=True, config=_STRICT)
class Telemetry:
    """What the kernel holds and has done, once a second."""

    epoch: int
    lease_left_ms: int
    entries: tuple[EntryTelemetry, ...] = ()
    kind: Literal["telemetry"] = "telemetry"


@dataclass(frozen=True, slots=True, config=_STRICT)
class Declined:
    """The agent does not act on what it was sent; its reason, for the operator at the other end.

    Attributes:
        epoch: of what was sent.
        in_force: the epoch that the kernel holds, or held last.
        why: one line.
    """

    epoch: int
    in_force: int
    why: str
    kind: Literal["declined"] = "declined"


UpMessage = Hello | Applied | Telemetry | Declined
FromAgent = Annotated[UpMessage, Field(discriminator="kind")]

_DOWN: TypeAdapter[Allocations] = TypeAdapter(Allocations)
_UP: TypeAdapter[UpMessage] = TypeAdapter(FromAgent)
_OUT = {kind: TypeAdapter(kind) for kind in (Allocations, Hello, Applied, Telemetry, Declined)}


def to_bytes(message: Allocations | UpMessage) -> bytes:
    """Return the message as it goes over the stream."""
    return _OUT[type(message)].dump_json(message)


def parsed_allocations(data: bytes) -> Allocations:
    """Return the controller's message.

    Raises:
        ValueError: not a valid message (pydantic names the field).
    """
    return _DOWN.validate_json(data)


def parsed_from_agent(data: bytes) -> UpMessage:
    """Return the agent's message.

    Raises:
        ValueError: not a valid message (pydantic names the field).
    """
    return _UP.validate_json(data)
