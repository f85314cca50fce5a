"""What the controller and a host agent say to each other, as values.

The agent dials the controller and opens a WebSocket (RFC 6455) at ``ATTACH_PATH`` (see docs/decisions/0010). Each
message is one frame, one JSON object with a ``kind`` field (see docs/decisions/0002). Down come ``Allocations``,
repeated at least every third of the lease; up go ``Hello`` once, ``Applied`` after each new epoch is in the kernel,
``Telemetry`` each second, ``Declined`` for what the agent does not act on, ``Demand`` when an entry that is watched
begins or ends to want its rate, ``Repaired`` for what was not in the kernel as it should have been. The agent pings
every ``PING_S``; an end that has heard nothing for ``SILENT_S`` takes the other for dead.

Either end may be newer than the other. A field that is left out has the value that it always had before there was one,
and one that has this value is left out: so an older end meets only what is used. What an agent says of which its
controller knows nothing is passed over; what it is told and does not know it declines, for a limit that it did not see
would not be kept.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from topology.addresses import Address, Prefix
from topology.telemetry import FIRST_ALONE, REPORT, OpenEnum, Telemetry

ATTACH_PATH = "/headway/agents"
PING_S = 5.0
SILENT_S = 15.0  # two pings may be lost
LONGEST_BYTES = 1 << 20  # of a message
MOST_MISTAKES = 20  # that are said of a message
MOST_INTERFACES, MOST_ADDRESSES = 64, 64  # of a host, and of an interface: more are not told
SAID_AGAIN_S = 60.0  # who is refused dials again every few seconds: either end logs that once in this time

_STRICT = ConfigDict(extra="forbid", strict=False)


class FlowClass(StrEnum):
    """How the plan treats a flow. Source: Freemon 2013 section IV.B, and ``unplanned`` for all the rest."""

    PREDICTABLE = "predictable"
    URGENT = "urgent"
    BACKGROUND = "background"
    UNPLANNED = "unplanned"


class Tail(StrEnum):
    """What becomes of losses in a transfer's last window: sent again, or made again out of parities that follow."""

    PLAIN = "plain"
    CODED = "coded"


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
        own_dscp: only for connections that the application itself has marked with this code point; None for any.
        standby_bps: TCP payload, bit/s, to which the host steps down by itself when the entry's flight has ended; equal
            to ``rate_bps`` for an entry that waits for demand. None: the entry is not watched.
        size_bytes: announced payload, 0 if it is not known; counted from when the entry came or this number changed,
            and anew after a flight that ended with it sent.
        circuits: the names of those that its packets cross, of the way before and of the next while they are led to
            another. When they change the host does not wait for the answers to what is in flight.
        also: the destination's other prefixes; what goes to any of them shares the rate.
        sources: the host's own addresses that its connections are from, where it has several interfaces; none: any.
        lanes: the announcement of which this is one of several lanes; the host deals them the connections to their
            destination that bind no address of its own. Empty: it is no lane.
        tail: coded if parities are to follow the end of a transfer; told only to an agent that offers it.

    Raises:
        ValueError: ``standby_bps`` is above ``rate_bps``.
    """

    name: str
    flow_class: FlowClass
    dest: Prefix
    rate_bps: Annotated[int, Field(gt=0)]
    window_segments: Annotated[int, Field(gt=0)]
    dest_port: Annotated[int, Field(ge=0, le=65535)] = 0
    local_port: Annotated[int, Field(ge=0, le=65535)] = 0
    dscp: Annotated[int, Field(ge=0, le=63)] | None = None
    own_dscp: Annotated[int, Field(ge=0, le=63)] | None = None
    standby_bps: Annotated[int, Field(gt=0)] | None = None
    size_bytes: Annotated[int, Field(ge=0)] = 0
    circuits: Annotated[tuple[str, ...], FIRST_ALONE] = ()
    also: Annotated[tuple[Prefix, ...], FIRST_ALONE] = ()
    sources: Annotated[tuple[Prefix, ...], FIRST_ALONE] = ()
    lanes: str = ""
    tail: Tail = Tail.PLAIN

    def __post_init__(self) -> None:
        """Refuse a standby above the rate."""
        if self.standby_bps is not None and self.standby_bps > self.rate_bps:
            raise ValueError(f"standby of {self.standby_bps} bit/s is above the rate of {self.rate_bps} bit/s")


@dataclass(frozen=True, slots=True, config=_STRICT)
class CalledLane:
    """One of several lanes by which a host is to be sent an announcement, where it makes the connections itself.

    Attributes:
        lanes: the announcement.
        addresses: the sender's, of the interface that the lane is from.
        size_bytes: the payload that is to come by it.
    """

    lanes: str
    addresses: tuple[Prefix, ...]
    size_bytes: Annotated[int, Field(ge=0)] = 0


@dataclass(frozen=True, slots=True, config=_STRICT)
class Allocations:
    """All that one host may do now. Replaces what was; the same epoch again renews the lease.

    Attributes:
        epoch: number of the plan; only grows. 0, without entries, from a controller that has no plan for the host yet:
            what is in force stays until its lease ends.
        lease_ms: how long the entries hold without another message.
        entries: the host's allocations, none if it has no part in the plan.
        receive_window_bytes: the window its receiving sockets must be able to open; 0 leaves the host's own setting.
        called: lanes by which it is sent what it connects for; it deals its connections to them.
    """

    epoch: int
    lease_ms: Annotated[int, Field(gt=0)]
    entries: tuple[Allocation, ...] = ()
    receive_window_bytes: Annotated[int, Field(ge=0)] = 0
    called: tuple[CalledLane, ...] = ()
    kind: Literal["allocations"] = "allocations"


@dataclass(frozen=True, slots=True, config=REPORT)
class HostInterface:
    """An interface of the agent's host, by the host's own kernel.

    Attributes:
        name: as ``ip link`` shows it.
        addresses: those that it has, link-local ones too.
        mtu_bytes: the largest IP packet that it carries.
        rate_bps: of its line; 0 if it does not say.
    """

    name: str
    addresses: Annotated[tuple[Address, ...], Field(max_length=MOST_ADDRESSES)]
    mtu_bytes: Annotated[int, Field(ge=0)] = 1500
    rate_bps: Annotated[int, Field(ge=0)] = 0


@dataclass(frozen=True, slots=True, config=REPORT)
class Hello:
    """The agent's first message: who it is, and what it acts on from before.

    Attributes:
        host: its name in the network.
        version: the agent's.
        kernel: its kernel's release.
        epoch: of what its kernel holds, 0 if nothing; None from an older agent, which does not say.
        lease_left_ms: for how long that still holds.
        entries: what it is.
        interfaces: its host's that have addresses, the loopback aside; said when it calls, and when these have changed.
            None from an older agent.
        codes_tails: whether it sends parities where an allocation says so, and rebuilds what those that come are for.
    """

    host: str
    version: str
    kernel: str
    epoch: int | None = None
    lease_left_ms: Annotated[int, Field(ge=0)] = 0
    entries: Annotated[tuple[Allocation, ...], FIRST_ALONE] = ()
    interfaces: Annotated[tuple[HostInterface, ...], Field(max_length=MOST_INTERFACES)] = ()
    codes_tails: bool = False
    kind: Literal["hello"] = "hello"


@dataclass(frozen=True, slots=True, config=REPORT)
class Applied:
    """``epoch`` is in force in the kernel: no connection sends by an older one from its next ACK on."""

    epoch: int
    kind: Literal["applied"] = "applied"


@dataclass(frozen=True, slots=True, config=REPORT)
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


@dataclass(frozen=True, slots=True, config=REPORT)
class Demand:
    """Whether an entry with ``standby_bps`` wants its rate: told when that changes, and after each new epoch.

    It is a state, not a change: one that is lost, or that nobody looked at before the next came, harms nothing.

    Attributes:
        epoch: the plan that this is said of.
        name: the allocation's.
        wants: a connection of the entry could use the plan's rate now: its peer's window is open, and more data waits
            than would go out at once, or the last of a transfer does. False: the flight has ended; nothing waits to be
            sent, though not all that was sent is confirmed.
        standing_by: the host sends at no more than ``standby_bps`` under this epoch, whatever comes: the kernel part
            had stepped down before this left the host, and only a newer epoch lifts that. Always so of an entry that
            does not want its rate; one that does began again after its flight had ended, and needs a newer epoch.
    """

    epoch: int
    name: str
    wants: bool
    standing_by: bool
    kind: Literal["demand"] = "demand"


class Fault(OpenEnum):
    """How a part of the plan in the kernel differed from what it should have been."""

    MISSING = "missing"
    MISCONFIGURED = "misconfigured"
    EXCESS = "excess"
    OTHER = "other"  # a way that only newer agents know


@dataclass(frozen=True, slots=True, config=REPORT)
class Repaired:
    """Something of the plan was not in the kernel as it should have been, and was put right.

    Attributes:
        epoch: the plan in force.
        name: the allocation's; empty if it was of no allocation's, or of all.
        fault: how it differed.
        what: the part that differed, for the operator.
    """

    epoch: int
    name: str
    fault: Fault
    what: str
    kind: Literal["repaired"] = "repaired"


UpMessage = Hello | Applied | Telemetry | Declined | Demand | Repaired

_DOWN: TypeAdapter[Allocations] = TypeAdapter(Allocations)
_UP: TypeAdapter[UpMessage] = TypeAdapter(Annotated[UpMessage, Field(discriminator="kind")])
_OUT = {kind: TypeAdapter(kind) for kind in (Allocations, Hello, Applied, Telemetry, Declined, Demand, Repaired)}


def to_bytes(message: Allocations | UpMessage) -> bytes:
    """Return the message as it goes over the stream: its kind, and what is not as if left out."""
    said = _OUT[type(message)].dump_json(message, exclude_defaults=True)
    return b'{"kind":"%b"%b%b' % (message.kind.encode(), b"" if said == b"{}" else b",", said[1:])


def parsed_allocations(data: bytes) -> Allocations:
    """Return the controller's message.

    Raises:
        ValueError: not a valid message (pydantic names the field).
    """
    return _DOWN.validate_json(data)


def parsed_from_agent(data: bytes) -> UpMessage:
    """Return the agent's message.

    Raises:
        ValueError: not a valid message (pydantic names the field; of many mistakes it is said how many).
    """
    try:
        return _UP.validate_json(data)
    except ValidationError as error:
        if error.error_count() > MOST_MISTAKES:  # the text of all of them would be many times the message
            raise ValueError(f"{error.error_count()} mistakes") from None
        raise
