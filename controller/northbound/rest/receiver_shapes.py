"""What the answers on receivers look like."""

from typing import Annotated

from pydantic import Field, with_config
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from controller.northbound.rest.shapes import WHOLE, Time
from controller.plan.intake import Brake


@with_config(WHOLE)
class ChangedFlowOut(TypedDict):
    """A flow that has another rate because a receiver is slow."""

    flow: Annotated[str, Field(description="Its name in the plan.")]
    planned_bps: Annotated[int, Field(description="What it is planned for, bit/s of payload.")]
    without_bps: Annotated[int, Field(description="What it would have if no receiver was slow.")]


@with_config(WHOLE)
class ReceiverOut(TypedDict):
    """A store of a host, or the receiver of a flow that takes less than it could be sent."""

    host: Annotated[str, Field(description="Whose it is.")]
    store: Annotated[str | None, Field(description="The store's name; null for the receiver of a flow.")]
    flow: Annotated[str | None, Field(description="The flow's name; null for a store.")]
    drains_bps: Annotated[
        int | None, Field(description="What it drains for good, bit/s of payload; null: all that it is sent.")
    ]
    room_bytes: Annotated[int | None, Field(description="What it can take at once now; null if nobody tells.")]
    unread_bytes: Annotated[int | None, Field(description="What has arrived and is unread; null if nobody tells.")]
    waiting: Annotated[bool | None, Field(description="Whether something waits for it; null if nobody tells.")]
    why: Annotated[Brake | None, Field(description="What makes it slow; null if it is not.")]
    since: Annotated[Time, Field(description="Since when that is so.")]
    holds: Annotated[list[ChangedFlowOut], Field(description="The flows that have less because of it.")]


@with_config(WHOLE)
class ReceiversOut(TypedDict):
    """What receivers take, and who has what the flows that they hold do not use."""

    receivers: Annotated[list[ReceiverOut], Field(description="Every store, and the receivers of flows that are slow.")]
    gained: Annotated[list[ChangedFlowOut], Field(description="The flows that have more because others are held.")]
