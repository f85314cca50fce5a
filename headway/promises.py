"""Made from the API's description by contrib/api_client.py: reservations, announcements, availability."""

from typing import Literal, NotRequired, TypedDict

AnnouncementState = Literal["promised", "under-way", "late", "arrived", "released", "lapsed"]

# Which connections of two hosts a promise is for: those with these ports.
ConnectionsIn = TypedDict(
    "ConnectionsIn",
    {
        "dest_port": NotRequired[int],
        "local_port": NotRequired[int],
    },
)

# Which connections of two hosts are meant: with 0, 0 and null all that no other promise has.
ConnectionsOut = TypedDict(
    "ConnectionsOut",
    {
        "dest_port": int,
        "local_port": int,
        "own_dscp": int | None,
    },
)

# What the path must satisfy.
ConstraintsIn = TypedDict(
    "ConstraintsIn",
    {
        "include": NotRequired[list[str]],
        "exclude": NotRequired[list[str]],
        "max_rtt_ms": NotRequired[float | None],
        "backup": NotRequired[bool],
    },
)

# What the paths were chosen by.
ConstraintsOut = TypedDict(
    "ConstraintsOut",
    {
        "include": list[str],
        "exclude": list[str],
        "max_rtt_ms": float | None,
        "backup": bool,
    },
)

FlowClass = Literal["predictable", "urgent", "background", "unplanned"]

Hindrance = Literal[
    "nothing-to-send",
    "receiver-window",
    "send-buffer",
    "loss",
    "fallback",
    "no-agent",
    "no-lease",
    "not-applied",
    "not-known",
]

# What one sender has delivered, or one lane.
DeliveredOut = TypedDict(
    "DeliveredOut",
    {
        "host": str,
        "delivered_bytes": int,
        "hindrance": Hindrance | None,
        "since": str | None,
    },
)

Limit = Literal["rate_bps", "bytes", "ahead_s", "entries"]

# The quota that would be exceeded, in the unit of what is limited.
BeyondOut = TypedDict(
    "BeyondOut",
    {
        "owner": str,
        "limit": Limit,
        "quota": int,
        "asked": int,
        "left": int,
    },
)

OfferKind = Literal["earliest-start", "highest-rate", "lower-class", "later-deadline"]

# What would be granted at this moment instead.
OfferOut = TypedDict(
    "OfferOut",
    {
        "class": FlowClass,
        "kind": OfferKind,
        "rate_bps": int,
        "start": str,
        "end": str,
        "circuits": list[str],
    },
)

# An error as RFC 9457 shapes it; further members carry what the detail says.
Problem = TypedDict(
    "Problem",
    {
        "type": str,
        "title": str,
        "status": int,
        "detail": str,
    },
)

# A rate for a time.
RateStep = TypedDict(
    "RateStep",
    {
        "from": str,
        "until": str,
        "rate_bps": int,
    },
)

# One of several circuits that are used at once: what goes by it.
LaneOut = TypedDict(
    "LaneOut",
    {
        "host": str,
        "path": list[str],
        "bytes": int,
        "rates": list[RateStep],
    },
)

# The answer no, with the numbers. They are null where the reason is not one of capacity.
Refusal = TypedDict(
    "Refusal",
    {
        "type": str,
        "title": str,
        "status": int,
        "detail": str,
        "resource": str | None,
        "asked_bps": int | None,
        "free_bps": int | None,
        "at": str,
        "offers": list[OfferOut],
        "quota": BeyondOut | None,
    },
)

# For how long a hold is kept.
RenewalIn = TypedDict(
    "RenewalIn",
    {
        "hold_s": NotRequired[int],
    },
)

# What shall be different; what is absent or null stays as it is.
ReservationChange = TypedDict(
    "ReservationChange",
    {
        "rate_bps": NotRequired[int | None],
        "rate": NotRequired[str],
        "start": NotRequired[str],
        "end": NotRequired[str],
        "class": NotRequired[FlowClass | None],
        "constraints": NotRequired[ConstraintsIn | None],
        "description": NotRequired[str | None],
        "owner": NotRequired[str | None],
    },
)

# Bandwidth that is wanted from one end to the other for a time.
ReservationIn = TypedDict(
    "ReservationIn",
    {
        "rate_bps": NotRequired[int | None],
        "rate": NotRequired[str],
        "from": str,
        "to": str,
        "class": NotRequired[FlowClass],
        "start": NotRequired[str],
        "end": NotRequired[str],
        "duration_s": NotRequired[float | None],
        "constraints": NotRequired[ConstraintsIn | None],
        "connections": NotRequired[ConnectionsIn | None],
        "description": NotRequired[str],
        "hold_s": NotRequired[int],
        "commit": NotRequired[bool],
        "owner": NotRequired[str | None],
    },
)

ReservationState = Literal["held", "committed", "provisioning", "active", "released", "expired", "failed"]

# A reservation.
ReservationOut = TypedDict(
    "ReservationOut",
    {
        "class": FlowClass,
        "from": str,
        "to": str,
        "id": str,
        "version": int,
        "state": ReservationState,
        "reason": str,
        "rate_bps": int,
        "payload_bps": int,
        "start": str,
        "end": str,
        "path": list[str],
        "circuits": list[str],
        "backup": list[str],
        "constraints": ConstraintsOut,
        "connections": ConnectionsOut,
        "hold_until": str | None,
        "created": str,
        "changed": str,
        "description": str,
        "owner": str | None,
        "creator": str | None,
        "carried": bool | None,
        "reasons": list[str],
        "not_guaranteed": list[str],
    },
)

# Some of the reservations, in order of creation.
ReservationPage = TypedDict(
    "ReservationPage",
    {
        "reservations": list[ReservationOut],
        "next": str | None,
        "lacks": str | None,
    },
)

Tail = Literal["plain", "coded"]

# Bytes that are coming.
AnnouncementIn = TypedDict(
    "AnnouncementIn",
    {
        "id": NotRequired[str | None],
        "class": NotRequired[FlowClass],
        "bytes": int,
        "from": list[str],
        "to": str,
        "deadline_s": NotRequired[float | None],
        "deadline_for": NotRequired[Literal["across", "stored"]],
        "lanes": NotRequired[int],
        "connects": NotRequired[Literal["sender", "receiver"]],
        "session_s": NotRequired[float],
        "tail": NotRequired[Tail],
        "connections": NotRequired[ConnectionsIn | None],
        "owner": NotRequired[str | None],
    },
)

# Bytes that are coming, and the promise.
AnnouncementOut = TypedDict(
    "AnnouncementOut",
    {
        "class": FlowClass,
        "from": list[str],
        "to": str,
        "id": str,
        "bytes": int,
        "announced": str,
        "promised": str,
        "promised_in_s": float,
        "store": str | None,
        "stored": str | None,
        "stored_in_s": float | None,
        "rates": list[RateStep],
        "lanes": list[LaneOut],
        "connections": ConnectionsOut,
        "tail": Tail,
        "drawn_on": str | None,
        "state": AnnouncementState,
        "delivered_bytes": int,
        "exact": bool,
        "senders": list[DeliveredOut],
        "finished": str | None,
        "late_s": float | None,
        "ended": str | None,
        "lapses": str,
        "owner": str | None,
        "creator": str | None,
        "carried": bool | None,
        "reasons": list[str],
    },
)

# Some of the announcements, in the order they were made.
AnnouncementPage = TypedDict(
    "AnnouncementPage",
    {
        "announcements": list[AnnouncementOut],
        "next": str | None,
        "lacks": str | None,
    },
)

# When so many bytes can be moved; null where they cannot.
VolumeOut = TypedDict(
    "VolumeOut",
    {
        "bytes": int,
        "wire_bits": int,
        "soonest": list[RateStep] | None,
        "lowest_constant": RateStep | None,
    },
)

# What is free along one path.
WayOut = TypedDict(
    "WayOut",
    {
        "path": list[str],
        "circuits": list[str],
        "rtt_ms": float,
        "most_bps": int,
        "rates": list[RateStep],
        "earliest_start": str | None,
        "volume": VolumeOut | None,
    },
)

# What is free between two ends, the nearest path first; no path if nothing joins them.
AvailabilityOut = TypedDict(
    "AvailabilityOut",
    {
        "class": FlowClass,
        "from": str,
        "to": str,
        "start": str,
        "end": str,
        "paths": list[WayOut],
        "next": str | None,
    },
)
