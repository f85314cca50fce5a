"""What clients are told, as types: mypy checks what is rendered against them, and the API is documented by them."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, with_config
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from controller.plan.admission import OfferKind
from controller.plan.lifecycle import State
from topology.protocol import FlowClass

_WHOLE = ConfigDict(extra="forbid")

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"}, examples=["2026-11-21T22:00:00Z"])]
Bps = Annotated[int, Field(description="bit/s on the wire", examples=[10_000_000_000])]
FrameBps = Annotated[int, Field(description="bit/s of Ethernet frames")]
Nodes = Annotated[list[str], Field(examples=[["ls1", "ch1"]])]
Id = Annotated[str, Field(examples=["9f86d081884c7d65"])]


class Problem(BaseModel):
    """An error as RFC 9457 shapes it; further members carry what the detail says."""

    model_config = ConfigDict(extra="allow")
    type: str = Field(examples=["/problems/not-known"], description="Which kind of problem; never changes.")
    title: str = Field(examples=["not known"], description="The kind for people; never changes.")
    status: int = Field(examples=[404])
    detail: str = Field(description="What, where, how much, what to try.")


@with_config(_WHOLE)
class ConstraintsOut(TypedDict):
    """What the paths were chosen by."""

    include: Nodes
    exclude: Nodes
    max_rtt_ms: float | None
    backup: bool


# Names that are words of Python cannot be written as a class's attributes.
_Ends = TypedDict(
    "_Ends",
    {
        "class": FlowClass,
        "from": Annotated[str, Field(description="Host or site that sends.", examples=["la-serena"])],
        "to": Annotated[str, Field(description="Host or site that receives.", examples=["champaign"])],
    },
)


@with_config(_WHOLE)
class ReservationOut(_Ends):
    """A reservation."""

    id: Id
    version: Annotated[int, Field(description="Grows with every change; the entity tag.")]
    state: State
    reason: Annotated[str, Field(description="Why it is there, when that was not its owner's wish.")]
    rate_bps: Bps
    payload_bps: Annotated[int, Field(description="The TCP payload that fits into it, bit/s.")]
    start: Time
    end: Time
    path: Nodes
    circuits: Annotated[list[str], Field(description="The circuits it crosses.", examples=[["chile-illinois"]])]
    backup: Annotated[list[str], Field(description="The nodes of the second path; none if none was asked for.")]
    constraints: ConstraintsOut
    hold_until: Annotated[Time | None, Field(description="When the hold lapses; null once it is committed.")]
    created: Time
    changed: Time
    description: str


@with_config(_WHOLE)
class ReservationPage(TypedDict):
    """Some of the reservations, in order of creation."""

    reservations: list[ReservationOut]
    next: Annotated[str | None, Field(description="The cursor of the next page; null on the last.")]


_OfferClass = TypedDict("_OfferClass", {"class": FlowClass})


@with_config(_WHOLE)
class OfferOut(_OfferClass):
    """What would be granted at this moment instead."""

    kind: OfferKind
    rate_bps: Bps
    start: Time
    end: Time


class Refusal(Problem):
    """The answer no, with the numbers. They are null where the reason is not one of capacity."""

    resource: str | None = Field(
        description="A direction of a link, or a class's share of one.", examples=["ls1->ch1 urgent"]
    )
    asked_bps: int | None = Field(description="Of this resource, bit/s on the wire.")
    free_bps: int | None = Field(description="What it has at that time, bit/s on the wire.")
    at: Time = Field(description="From when.")
    offers: list[OfferOut]


_RateStepFrom = TypedDict("_RateStepFrom", {"from": Time})


@with_config(_WHOLE)
class RateStep(_RateStepFrom):
    """A rate for a time."""

    until: Time
    rate_bps: Bps


@with_config(_WHOLE)
class VolumeOut(TypedDict):
    """When so many bytes can be moved; null where they cannot."""

    bytes: Annotated[int, Field(description="Payload.")]
    wire_bits: Annotated[int, Field(description="What they take on the wire, in full segments.")]
    soonest: Annotated[list[RateStep] | None, Field(description="The rates that move them soonest.")]
    lowest_constant: Annotated[RateStep | None, Field(description="The lowest rate that moves them within the time.")]


@with_config(_WHOLE)
class WayOut(TypedDict):
    """What is free along one path."""

    path: Nodes
    circuits: list[str]
    rtt_ms: Annotated[float, Field(description="Round trip without queueing.")]
    most_bps: Annotated[int, Field(description="What fits over the whole time, bit/s on the wire.")]
    rates: Annotated[list[RateStep], Field(description="What fits, over time; without gap.")]
    earliest_start: Annotated[
        Time | None, Field(description="When the rate fits first for the duration; null if never or not asked.")
    ]
    volume: VolumeOut | None


@with_config(_WHOLE)
class AvailabilityOut(_Ends):
    """What is free between two ends, the nearest path first; no path if nothing joins them."""

    start: Time
    end: Time
    paths: list[WayOut]


_AnnouncementEnds = TypedDict(
    "_AnnouncementEnds",
    {
        "class": FlowClass,
        "from": Annotated[list[str], Field(description="Sending hosts.", examples=[["base20", "base21"]])],
        "to": Annotated[str, Field(description="Receiving host.", examples=["arch"])],
    },
)


@with_config(_WHOLE)
class AnnouncementOut(_AnnouncementEnds):
    """Bytes that are coming, and the promise."""

    id: Annotated[str, Field(examples=["image"])]
    bytes: Annotated[int, Field(description="Payload, all senders together.")]
    announced: Time
    promised: Annotated[Time, Field(description="When the last byte will be confirmed at the latest.")]
    promised_in_s: float
    rates: Annotated[list[RateStep], Field(description="What each sender is promised.")]
    drawn_on: Annotated[str | None, Field(description="The reservation whose bandwidth it uses; null for none.")]
    lapses: Annotated[Time, Field(description="When it is forgotten if nobody releases it.")]


@with_config(_WHOLE)
class ClassOut(TypedDict):
    """What a class has of one direction of a circuit."""

    wire_bps: Bps
    queue_frame_bps: FrameBps
    meter_frame_bps: FrameBps


@with_config(_WHOLE)
class LinkPlanOut(TypedDict):
    """One direction of a circuit in the plan."""

    circuit: str | None
    wire_bps: Bps
    frame_bps: FrameBps
    classes: dict[FlowClass, ClassOut]


_FlowEnds = TypedDict("_FlowEnds", {"class": FlowClass, "from": str, "to": str})


@with_config(_WHOLE)
class AllocationOut(_FlowEnds):
    """What one host may send to another."""

    name: Annotated[str, Field(examples=["background/base23"])]
    path: Nodes
    payload_bps: Annotated[int, Field(description="TCP payload, bit/s, all its connections together.")]
    window_segments: int


@with_config(_WHOLE)
class PlanOut(TypedDict):
    """The bandwidth plan."""

    epoch: Annotated[int, Field(description="Number of the plan; only grows.")]
    links: dict[str, LinkPlanOut]
    allocations: list[AllocationOut]


@with_config(_WHOLE)
class LayersOut(TypedDict):
    """What each layer lets through on one direction of a circuit at this moment."""

    hosts_frame_bps: dict[FlowClass, int]
    meters_frame_bps: dict[FlowClass, int]
    queues_frame_bps: dict[FlowClass, int]
    circuit_frame_bps: FrameBps


@with_config(_WHOLE)
class ViewOut(TypedDict):
    """The plan: wanted, installed, and what each layer lets through now."""

    desired: PlanOut
    installed: PlanOut | None
    layers: dict[str, LayersOut]
    violations: Annotated[list[str], Field(description="Where a layer lets through more than the next one.")]
    error: Annotated[str, Field(description="Why the last step failed; empty if it did not.")]


@with_config(_WHOLE)
class HealthOut(TypedDict):
    """Whether the wanted plan is in force in the switches."""

    ok: bool
    epoch: int
    error: str
    hosts_missing: Annotated[list[str], Field(description="Hosts without an agent.")]
    hosts_unconfirmed: Annotated[list[str], Field(description="Hosts that have not confirmed what they were sent.")]


@with_config(_WHOLE)
class StepOut(TypedDict):
    """A step from one plan to the next."""

    epoch: int
    place: Annotated[str, Field(examples=["hosts"])]
    started: Time
    started_us: Annotated[int, Field(description="Unix time, microseconds.")]
    done_us: Annotated[int, Field(description="Unix time, microseconds.")]
    error: str


@with_config(_WHOLE)
class CountersOut(TypedDict):
    """One allocation as a host's kernel sees it."""

    name: str
    connections: int
    active: int
    delivered_bytes: int
    sent_segments: int
    retransmitted_segments: int
    rtt_us: int


@with_config(_WHOLE)
class HostStateOut(TypedDict):
    """A host's agent, its lease and its counters."""

    name: str
    connected: bool
    kernel: Annotated[str, Field(description="Its kernel's release.", examples=["6.12"])]
    sent_epoch: int
    confirmed_epoch: int
    lease_left_ms: int | None
    allocations: list[CountersOut]


@with_config(_WHOLE)
class NodeOut(TypedDict):
    """A host of the network."""

    name: str
    site: str
    ip: str


@with_config(_WHOLE)
class SwitchNodeOut(TypedDict):
    """A switch of the network."""

    name: str
    site: str
    dpid: Annotated[str, Field(examples=["0000000000000001"])]


@with_config(_WHOLE)
class SwitchOut(SwitchNodeOut):
    """A switch, and whether it is connected."""

    connected: bool


_LinkEnds = TypedDict("_LinkEnds", {"from": str, "to": str})


@with_config(_WHOLE)
class LinkOut(_LinkEnds):
    """One direction between two neighbours."""

    circuit: Annotated[str | None, Field(description="The circuit that it is; null on a site's own network.")]
    wire_bps: Bps
    delay_us: int
    loss_ppm: int
    buffer_bytes: int


@with_config(_WHOLE)
class TopologyOut(TypedDict):
    """The network."""

    name: str
    mtu_bytes: int
    sites: list[str]
    circuits: list[str]
    hosts: list[NodeOut]
    switches: list[SwitchNodeOut]
    links: list[LinkOut]
