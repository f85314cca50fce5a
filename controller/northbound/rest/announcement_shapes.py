"""What clients are told of announcements, as types."""

from typing import Annotated

from pydantic import Field, with_config
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from controller.northbound.rest.shapes import (
    WHOLE,
    Carried,
    ClassOf,
    ConnectionsOut,
    Creator,
    Lacks,
    Owned,
    RateStep,
    Reasons,
    Time,
)
from controller.plan.announcement_states import AnnouncementState
from controller.state.progress import Hindrance
from topology.protocol import Tail

_AnnouncementEnds = TypedDict(
    "_AnnouncementEnds",
    {
        "class": ClassOf,
        "from": Annotated[list[str], Field(description="Sending hosts.", examples=[["base20", "base21"]])],
        "to": Annotated[str, Field(description="Receiving host.", examples=["arch"])],
    },
)


@with_config(WHOLE)
class DeliveredOut(TypedDict):
    """What one sender has delivered, or one lane."""

    host: Annotated[str, Field(description="The sending host.", examples=["base20"])]
    delivered_bytes: Annotated[int, Field(description="Payload that the receiver has confirmed.")]
    hindrance: Annotated[
        Hindrance | None,
        Field(description="What is in the way of more; null if it has what is planned, or the announcement has ended."),
    ]
    since: Annotated[Time | None, Field(description="Since when that is so; null if the announcement has ended.")]


@with_config(WHOLE)
class LaneOut(TypedDict):
    """One of several circuits that are used at once: what goes by it."""

    host: Annotated[str, Field(description="The sending interface.", examples=["base20.eth1"])]
    path: Annotated[list[str], Field(description="The nodes it crosses.")]
    bytes: Annotated[int, Field(description="Payload that is planned to go by it.")]
    rates: Annotated[list[RateStep], Field(description="What it is promised.")]


@with_config(WHOLE)
class AnnouncementOut(_AnnouncementEnds):
    """Bytes that are coming, and the promise."""

    id: Annotated[str, Field(description="Its name.", examples=["image"])]
    bytes: Annotated[int, Field(description="Payload, all senders together.")]
    announced: Annotated[Time, Field(description="When it was announced.")]
    promised: Annotated[Time, Field(description="When the last byte will be confirmed at the latest.")]
    promised_in_s: Annotated[float, Field(description="From the announcement to the promise, seconds.")]
    store: Annotated[str | None, Field(description="Where its receiver stores it; null if that is not known.")]
    stored: Annotated[
        Time | None, Field(description="When all of it will be stored at the latest; null if that is not known.")
    ]
    stored_in_s: Annotated[float | None, Field(description="From the announcement to that, seconds.")]
    rates: Annotated[list[RateStep], Field(description="What each sender is promised, by all its lanes.")]
    lanes: Annotated[
        list[LaneOut], Field(description="The circuits that are used at once; empty if it is not over several.")
    ]
    connections: Annotated[ConnectionsOut, Field(description="Which connections of each sender to the target.")]
    tail: Annotated[Tail, Field(description="coded: parities are to follow what each sender sends.")]
    drawn_on: Annotated[str | None, Field(description="The reservation whose bandwidth it uses; null for none.")]
    state: Annotated[AnnouncementState, Field(description="How it stands; the last three have ended.")]
    delivered_bytes: Annotated[int, Field(description="Payload that was confirmed, all senders together.")]
    exact: Annotated[
        bool,
        Field(description="Whether all that was delivered was counted, the last of it too; else it is the least."),
    ]
    senders: Annotated[list[DeliveredOut], Field(description="What each sender has delivered.")]
    finished: Annotated[
        Time | None, Field(description="When the last of the announced bytes was confirmed; null if it was not.")
    ]
    late_s: Annotated[
        float | None, Field(description="From the promise to that, seconds; below 0 if it was sooner, null if not.")
    ]
    ended: Annotated[Time | None, Field(description="When it left the plan; null while it is there.")]
    lapses: Annotated[Time, Field(description="When it is forgotten if nobody releases it.")]
    owner: Owned
    creator: Creator
    carried: Carried
    reasons: Reasons


@with_config(WHOLE)
class AnnouncementPage(TypedDict):
    """Some of the announcements, in the order they were made."""

    announcements: Annotated[list[AnnouncementOut], Field(description="In the order they were made.")]
    next: Annotated[str | None, Field(description="The cursor of the next page; null on the last.")]
    lacks: Lacks
