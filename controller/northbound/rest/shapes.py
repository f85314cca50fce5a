"""What clients are told, as types: mypy checks what is rendered against them, and the API is documented by them."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, with_config
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from controller.plan.admission import OfferKind
from controller.plan.lifecycle import ReservationState
from controller.plan.quotas import Limit
from controller.state.progress import Hindrance
from topology.protocol import FlowClass, Tail

WHOLE = ConfigDict(extra="forbid")

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"}, examples=["2026-11-21T22:00:00Z"])]
ClassOf = Annotated[FlowClass, Field(description="Whose share of the circuit it is.")]
Bps = Annotated[int, Field(description="bit/s on the wire", examples=[10_000_000_000])]
FrameBps = Annotated[int, Field(description="bit/s of Ethernet frames")]
Nodes = Annotated[list[str], Field(examples=[["ls1", "ch1"]])]
Id = Annotated[str, Field(examples=["9f86d081884c7d65"])]


class Problem(BaseModel):
    """An error as RFC 9457 shapes it; further members carry what the detail says."""

    model_config = ConfigDict(extra="allow")
    type: str = Field(examples=["/problems/not-known"], description="Which kind of problem; never changes.")
    title: str = Field(examples=["not known"], description="The kind for people; never changes.")
    status: int = Field(examples=[404], description="The status of the answer.")
    detail: str = Field(description="What, where, how much, what to try.")


@with_config(WHOLE)
class ConstraintsOut(TypedDict):
    """What the paths were chosen by."""

    include: Annotated[Nodes, Field(description="Nodes or circuits it crosses.")]
    exclude: Annotated[Nodes, Field(description="Nodes or circuits it does not touch.")]
    max_rtt_ms: Annotated[float | None, Field(description="Longest round trip allowed, milliseconds; null for any.")]
    backup: Annotated[bool, Field(description="Whether a second path was asked for.")]


# Names that are words of Python cannot be written as a class's attributes.
_Ends = TypedDict(
    "_Ends",
    {
        "class": ClassOf,
        "from": Annotated[str, Field(description="Host or site that sends.", examples=["la-serena"])],
        "to": Annotated[str, Field(description="Host or site that receives.", examples=["champaign"])],
    },
)


Carried = Annotated[
    bool | None,
    Field(
        description="Whether switches, queues and hosts are able to carry it at this moment; null if it is not due, "
        "and from a controller that stands by."
    ),
]
Owned = Annotated[
    str | None,
    Field(description="Who may change it: `group:NAME` or a principal; null for nobody.", examples=["group:lsst"]),
]
Creator = Annotated[
    str | None, Field(description="Who has asked for it; null if that was not noted.", examples=["token:ana"])
]
Reasons = Annotated[
    list[str], Field(description="Why not, each with where.", examples=[["base20: its agent is not connected"]])
]


@with_config(WHOLE)
class ConnectionsOut(TypedDict):
    """Which connections of two hosts are meant: with 0, 0 and null all that no other promise has."""

    dest_port: Annotated[int, Field(description="The receiver's TCP port; 0 for any.")]
    local_port: Annotated[int, Field(description="The sender's TCP port; 0 for any.")]
    own_dscp: Annotated[int | None, Field(description="The code point the application has set; null for any.")]


@with_config(WHOLE)
class ReservationOut(_Ends):
    """A reservation."""

    id: Annotated[Id, Field(description="Its name.")]
    version: Annotated[int, Field(description="Grows with every change; the entity tag.")]
    state: Annotated[ReservationState, Field(description="Where it stands.")]
    reason: Annotated[str, Field(description="Why it is there, when that was not its owner's wish.")]
    rate_bps: Bps
    payload_bps: Annotated[int, Field(description="The TCP payload that fits into it, bit/s.")]
    start: Annotated[Time, Field(description="When it begins.")]
    end: Annotated[Time, Field(description="When it ends; not in it any more.")]
    path: Annotated[Nodes, Field(description="The nodes it crosses.")]
    circuits: Annotated[list[str], Field(description="The circuits it crosses.", examples=[["chile-illinois"]])]
    backup: Annotated[list[str], Field(description="The nodes of the second path; none if none was asked for.")]
    constraints: Annotated[ConstraintsOut, Field(description="What the paths were chosen by.")]
    connections: Annotated[
        ConnectionsOut, Field(description="Between two hosts, which of their connections it is for.")
    ]
    hold_until: Annotated[Time | None, Field(description="When the hold lapses; null once it is committed.")]
    created: Annotated[Time, Field(description="When it was held first.")]
    changed: Annotated[Time, Field(description="When it changed last.")]
    description: Annotated[str, Field(description="Its owner's words.")]
    owner: Owned
    creator: Creator
    carried: Carried
    reasons: Reasons
    not_guaranteed: Annotated[
        list[str],
        Field(
            description="What of it the providers of its circuits do not guarantee, each with where; none if all is.",
            examples=[["chile-illinois: at chic-cr6:1/1/b1 400 of 1000 Mbit/s are reserved"]],
        ),
    ]


Lacks = Annotated[
    str | None,
    Field(description="Why those that have ended are not all there: the database's words; null if they are."),
]


@with_config(WHOLE)
class ReservationPage(TypedDict):
    """Some of the reservations, in order of creation."""

    reservations: Annotated[list[ReservationOut], Field(description="In order of creation.")]
    next: Annotated[str | None, Field(description="The cursor of the next page; null on the last.")]
    lacks: Lacks


_OfferClass = TypedDict("_OfferClass", {"class": ClassOf})


@with_config(WHOLE)
class OfferOut(_OfferClass):
    """What would be granted at this moment instead."""

    kind: Annotated[OfferKind, Field(description="In what it differs from what was asked.")]
    rate_bps: Bps
    start: Annotated[Time, Field(description="When it would begin.")]
    end: Annotated[
        Time, Field(description="When it would end; for an announcement, when the last byte would be confirmed.")
    ]
    circuits: Annotated[list[str], Field(description="The circuits it would cross.", examples=[["chile-illinois"]])]


@with_config(WHOLE)
class BeyondOut(TypedDict):
    """The quota that would be exceeded, in the unit of what is limited."""

    owner: Annotated[str, Field(description="Whose quota.", examples=["group:lsst"])]
    limit: Annotated[Limit, Field(description="What it limits.")]
    quota: Annotated[int, Field(description="How much it is.")]
    asked: Annotated[int, Field(description="How much more is asked.")]
    left: Annotated[int, Field(description="How much more there may be; below 0 if the quota has become smaller.")]


class Refusal(Problem):
    """The answer no, with the numbers. They are null where the reason is not one of capacity."""

    resource: str | None = Field(
        description="A direction of a link, or a class's share of one.", examples=["ls1->ch1 urgent"]
    )
    asked_bps: int | None = Field(description="Of this resource, bit/s on the wire.")
    free_bps: int | None = Field(description="What it has at that time, bit/s on the wire.")
    at: Time = Field(description="From when.")
    offers: list[OfferOut] = Field(description="What would be granted instead.")
    quota: BeyondOut | None = Field(description="The quota that would be exceeded; null if none would.")


_RateStepFrom = TypedDict("_RateStepFrom", {"from": Annotated[Time, Field(description="From then on.")]})


@with_config(WHOLE)
class RateStep(_RateStepFrom):
    """A rate for a time."""

    until: Annotated[Time, Field(description="Not in it any more.")]
    rate_bps: Bps


@with_config(WHOLE)
class VolumeOut(TypedDict):
    """When so many bytes can be moved; null where they cannot."""

    bytes: Annotated[int, Field(description="Payload.")]
    wire_bits: Annotated[int, Field(description="What they take on the wire, in full segments.")]
    soonest: Annotated[list[RateStep] | None, Field(description="The rates that move them soonest.")]
    lowest_constant: Annotated[RateStep | None, Field(description="The lowest rate that moves them within the time.")]


@with_config(WHOLE)
class WayOut(TypedDict):
    """What is free along one path."""

    path: Annotated[Nodes, Field(description="The nodes it crosses.")]
    circuits: Annotated[list[str], Field(description="The circuits it crosses.")]
    rtt_ms: Annotated[float, Field(description="Round trip without queueing.")]
    most_bps: Annotated[int, Field(description="What fits over the whole time, bit/s on the wire.")]
    rates: Annotated[list[RateStep], Field(description="What fits, over time; without gap.")]
    earliest_start: Annotated[
        Time | None, Field(description="When the rate fits first for the duration; null if never or not asked.")
    ]
    volume: Annotated[VolumeOut | None, Field(description="When the bytes can be moved; null if not asked.")]


@with_config(WHOLE)
class AvailabilityOut(_Ends):
    """What is free between two ends, the nearest path first; no path if nothing joins them."""

    start: Annotated[Time, Field(description="From then on.")]
    end: Annotated[Time, Field(description="Until then.")]
    paths: Annotated[list[WayOut], Field(description="The nearest first.")]
    next: Annotated[
        Time | None, Field(description="Where `rates` go on: ask again with this as `start`; null if these are all.")
    ]


@with_config(WHOLE)
class ClassOut(TypedDict):
    """What a class has of one direction of a circuit."""

    wire_bps: Bps
    queue_frame_bps: FrameBps
    meter_frame_bps: FrameBps


@with_config(WHOLE)
class LinkPlanOut(TypedDict):
    """One direction of a circuit in the plan."""

    circuit: Annotated[str | None, Field(description="The circuit it is a direction of.")]
    wire_bps: Bps
    frame_bps: FrameBps
    classes: Annotated[dict[FlowClass, ClassOut], Field(description="What each class has of it.")]


_FlowEnds = TypedDict(
    "_FlowEnds",
    {
        "class": ClassOf,
        "from": Annotated[str, Field(description="The sending host.", examples=["base23"])],
        "to": Annotated[str, Field(description="The receiving host.", examples=["arch"])],
    },
)


@with_config(WHOLE)
class ProgressOut(TypedDict):
    """What is delivered of an allocation, and what is in the way of more."""

    delivered_bytes: Annotated[int, Field(description="Payload confirmed since its host had it first.")]
    delivered_bps: Annotated[int, Field(description="Payload, bit/s, in the last second or so.")]
    least: Annotated[bool, Field(description="Whether some of it may not have been counted.")]
    hindrance: Annotated[
        Hindrance | None, Field(description="What is in the way of more; null if it has what is planned.")
    ]
    since: Annotated[Time, Field(description="Since when that is so.")]


@with_config(WHOLE)
class AllocationOut(_FlowEnds):
    """What one host may send to another."""

    name: Annotated[str, Field(description="Unique in the plan.", examples=["background/base23"])]
    path: Annotated[Nodes, Field(description="The nodes it crosses.")]
    payload_bps: Annotated[int, Field(description="TCP payload, bit/s, all its connections together.")]
    window_segments: Annotated[int, Field(description="All its connections together, segments.")]
    connections: Annotated[ConnectionsOut, Field(description="Which of the two hosts' connections it is for.")]
    dscp: Annotated[int | None, Field(description="The code point its packets are marked with; null for none.")]
    tail: Annotated[Tail, Field(description="coded: parities follow its transfers; the agents of both ends offer it.")]
    carries: Annotated[list[str], Field(description="The flows it stands for, itself included.")]
    progress: Annotated[
        ProgressOut | None, Field(description="What is delivered; null in a plan that is only held ready.")
    ]


@with_config(WHOLE)
class PlanOut(TypedDict):
    """The bandwidth plan."""

    epoch: Annotated[int, Field(description="Number of the plan; only grows.")]
    links: Annotated[dict[str, LinkPlanOut], Field(description="By name, each direction of each circuit.")]
    allocations: Annotated[list[AllocationOut], Field(description="Ordered by name.")]


@with_config(WHOLE)
class LayersOut(TypedDict):
    """What each layer lets through on one direction of a circuit at this moment."""

    hosts_frame_bps: Annotated[
        dict[FlowClass, int], Field(description="By class, what all hosts may send, bit/s of frames.")
    ]
    meters_frame_bps: Annotated[
        dict[FlowClass, int], Field(description="By class, what the meter lets through, bit/s of frames.")
    ]
    queues_frame_bps: Annotated[
        dict[FlowClass, int], Field(description="By class, what the queue is guaranteed, bit/s of frames.")
    ]
    circuit_frame_bps: FrameBps


@with_config(WHOLE)
class ViewOut(TypedDict):
    """The plan: wanted, installed, and what each layer lets through now."""

    desired: Annotated[PlanOut, Field(description="The plan that is wanted.")]
    installed: Annotated[
        PlanOut | None, Field(description="The plan whose meters are in force; null before the first.")
    ]
    layers: Annotated[dict[str, LayersOut], Field(description="By link, what each layer lets through now.")]
    violations: Annotated[list[str], Field(description="Where a layer lets through more than the next one.")]
    error: Annotated[str, Field(description="Why the last step failed; empty if it did not.")]


@with_config(WHOLE)
class HealthOut(TypedDict):
    """Whether the wanted plan is in force in the switches, and all that is promised is carried."""

    ok: Annotated[bool, Field(description="Whether it is; then there are no reasons.")]
    reasons: Annotated[
        list[str],
        Field(
            description="Why not, each with where.",
            examples=[["ls1: port 1 ls1-eth1 to base20 is port 7 ls1-eth1"]],
        ),
    ]
    epoch: Annotated[int, Field(description="Number of the plan that is wanted.")]
    error: Annotated[str, Field(description="Why the last step of a plan failed; empty if it did not.")]
    hosts_missing: Annotated[list[str], Field(description="Hosts without an agent.")]
    hosts_unconfirmed: Annotated[list[str], Field(description="Hosts that have not confirmed what they were sent.")]
    calendar_off_us: Annotated[
        int,
        Field(description="The wall clock less the time that promises are kept by, microseconds; 0 below a second."),
    ]
    unsaved_us: Annotated[
        int,
        Field(description="Age of the oldest answer that the database has not confirmed, microseconds; 0 if none."),
    ]


@with_config(WHOLE)
class ChangeOut(TypedDict):
    """What a step has changed of one thing, counted in Ethernet frames."""

    where: Annotated[str, Field(description="The host, or the link.", examples=["base23"])]
    what: Annotated[str, Field(description="The allocation, or the class.", examples=["background/base23"])]
    from_frame_bps: Annotated[int, Field(description="Before; 0 if it was not there.")]
    to_frame_bps: Annotated[int, Field(description="After; 0 if it is not there any more.")]


class StepOut(TypedDict):
    """A step from one plan to the next."""

    epoch: Annotated[int, Field(description="Of the plan that was put in.")]
    place: Annotated[str, Field(description="Which layer: hosts, meters or queues.", examples=["hosts"])]
    started: Annotated[Time, Field(description="When it began.")]
    started_us: Annotated[int, Field(description="Unix time, microseconds.")]
    done_us: Annotated[int, Field(description="Unix time, microseconds.")]
    error: Annotated[str, Field(description="Why it failed; empty if it did not.")]
    changes: Annotated[list[ChangeOut], Field(description="What it has changed.")]
