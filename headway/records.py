"""Made from the API's description by contrib/api_client.py: what has ended, changes, who asks, who leads, works."""

from typing import Any, Literal, NotRequired, TypedDict

from headway.promises import AnnouncementOut, ReservationOut

# A reservation that a maintenance breaks, or interrupts.
BrokenOut = TypedDict(
    "BrokenOut",
    {
        "id": str,
        "why": str,
        "until": str | None,
        "instead": str,
    },
)

# A reservation or an announcement that has ended; the other is null.
EndedOut = TypedDict(
    "EndedOut",
    {
        "cursor": str,
        "reservation": ReservationOut | None,
        "announcement": AnnouncementOut | None,
    },
)

# Some of what has ended, in the order in which that was saved.
HistoryPage = TypedDict(
    "HistoryPage",
    {
        "ended": list[EndedOut],
        "next": str | None,
    },
)

# Which controller leads, as the one that is asked knows it.
LeaderOut = TypedDict(
    "LeaderOut",
    {
        "leading": bool,
        "standing": str,
        "term": int,
        "leader": str | None,
        "address": str | None,
        "since": str | None,
        "lag_s": float,
        "standbys": list[str],
    },
)

# When a circuit is to be worked on.
MaintenanceIn = TypedDict(
    "MaintenanceIn",
    {
        "circuit": str,
        "start": NotRequired[str],
        "end": NotRequired[str],
        "duration_s": NotRequired[float | None],
        "description": NotRequired[str],
        "only_look": NotRequired[bool],
        "force": NotRequired[bool],
    },
)

# A time in which a circuit carries nothing.
MaintenanceOut = TypedDict(
    "MaintenanceOut",
    {
        "id": str,
        "circuit": str,
        "start": str,
        "end": str,
        "description": str,
        "creator": str | None,
        "created": str,
    },
)

# What became of a wish for maintenance.
PlannedOut = TypedDict(
    "PlannedOut",
    {
        "maintenance": MaintenanceOut,
        "breaks": list[BrokenOut],
        "beside": list[MaintenanceOut],
        "planned": bool,
    },
)

# What an owner may have; null for as much as there is.
QuotaOut = TypedDict(
    "QuotaOut",
    {
        "rate_bps": int | None,
        "bytes": int | None,
        "ahead_s": int | None,
        "entries": int | None,
    },
)

# A change of a reservation or an announcement.
RememberedOut = TypedDict(
    "RememberedOut",
    {
        "cursor": str,
        "number": int,
        "at": str,
        "who": str,
        "address": str,
        "request_id": str,
        "kind": str,
        "id": str,
        "old": dict[str, Any] | None,
        "new": dict[str, Any],
        "outcome": str,
        "hash": str,
    },
)

# Some changes, in the order in which they were saved.
RememberedPage = TypedDict(
    "RememberedPage",
    {
        "changes": list[RememberedOut],
        "next": str | None,
    },
)

Role = Literal["read", "reserve", "operate", "admin"]

# What an owner has.
UsedOut = TypedDict(
    "UsedOut",
    {
        "rate_bps": int,
        "bytes": int,
        "entries": int,
    },
)

# An owner in whose name one may ask.
OwnerOut = TypedDict(
    "OwnerOut",
    {
        "owner": str,
        "quota": QuotaOut | None,
        "used": UsedOut,
        "left": QuotaOut | None,
    },
)

# Who asks.
WhoamiOut = TypedDict(
    "WhoamiOut",
    {
        "name": str,
        "role": Role,
        "groups": list[str],
        "owners": list[OwnerOut],
    },
)
