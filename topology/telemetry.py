"""What a host agent tells its controller each second: what its kernel and its stores have done.

A message of :mod:`topology.protocol`, which says what holds for all of them.
"""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, FailFast, Field
from pydantic.dataclasses import dataclass

from topology.addresses import Prefix

MOST_STORES = 64  # of a host
LONGEST_NAME = 64  # of a store, characters
REPORT = ConfigDict(extra="ignore", strict=False)  # what an agent says: a field of a newer one is passed over
FIRST_ALONE = FailFast()  # of the mistakes in a list: a message may be full of them, and each is kept and written down


@dataclass(frozen=True, slots=True, config=REPORT)
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
        fallback: why they run the host's own congestion control while the lease runs: ``loss``; empty if they do not.
        wants: of an entry that is watched, whether it wants its rate now, as ``Demand`` says it; None of the others.
        standing_by: as ``Demand`` says it.
        counted_since_ns: when its counters began at 0, by the host's own clock: tells one count from the next of the
            same name; 0 from an agent that does not say.
        delivered_ago_ms: how long ago the last of ``delivered_bytes`` was confirmed; None if nothing was, or not told.
        is_least: its connections have run uncounted meanwhile, by the host's own congestion control.
        busy_ms: how long its connections had something to send since the telemetry before, together; told, like the
            next two, only while it has less than its rate.
        receiver_limited_ms: of that, how long the receiver's window kept them back.
        buffer_limited_ms: of that, how long their send buffers did.
        least_rtt_us: the least round trip within the last one, of that connection; 0 if none yet, or it is not told.
    """

    name: str
    connections: int
    active: int
    delivered_bytes: int
    sent_segments: int
    retransmitted_segments: int
    rtt_us: int
    fallback: Annotated[str, Field(max_length=64)] = ""
    wants: bool | None = None
    standing_by: bool = False
    counted_since_ns: int = 0
    delivered_ago_ms: int | None = None
    is_least: bool = False
    busy_ms: int = 0
    receiver_limited_ms: int = 0
    buffer_limited_ms: int = 0
    least_rtt_us: Annotated[int, Field(ge=0)] = 0


class OpenEnum(StrEnum):
    """One of several; of another that only newer agents know, the last of them."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        return [*cls][-1] if isinstance(value, str) else None


class StoreBrake(OpenEnum):
    """What makes a store slow."""

    READER = "reader"
    DISK = "disk"
    MEMORY = "memory"
    WINDOW = "window"  # or a reason that only newer agents know: that something waits is told all the same


@dataclass(frozen=True, slots=True, config=REPORT)
class StoreTelemetry:
    """What a host's store has taken since the telemetry before, about a second ago, or half of one.

    Attributes:
        name: the store's.
        drained_bps: what it has drained, bit/s of payload.
        is_waiting: whether something waited all the time: only then is that its rate, and else a lower bound of it.
        unread_bytes: what has arrived and waits to be read.
        room_bytes: what it can take at once now.
        brake: what makes it slow, if it is.
        rate_bps: what it drains for good, bit/s of payload, as its operator says; None if that is measured.
        first_port: the lowest of the host's TCP ports whose data goes there; 0 for all.
        last_port: the highest of them.
        senders: the addresses that what goes there comes from; none for all.
        most_bytes: what it can take at once when nothing waits there; 0 if that is not known.
    """

    name: Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
    drained_bps: Annotated[int, Field(ge=0)]
    is_waiting: bool
    unread_bytes: Annotated[int, Field(ge=0)]
    room_bytes: Annotated[int, Field(ge=0)]
    brake: StoreBrake
    rate_bps: Annotated[int, Field(gt=0)] | None = None
    first_port: Annotated[int, Field(ge=0, le=65535)] = 0
    last_port: Annotated[int, Field(ge=0, le=65535)] = 65535
    senders: Annotated[tuple[Prefix, ...], FIRST_ALONE] = ()
    most_bytes: Annotated[int, Field(ge=0)] = 0


@dataclass(frozen=True, slots=True, config=REPORT)
class Telemetry:
    """What the kernel holds and has done, once a second; and when entries have ended.

    Attributes:
        epoch: the plan in force.
        lease_left_ms: how long it still holds.
        entries: its entries.
        ended: the last counts of those that have left it lately; each is said for a minute, for a message may be lost.
        stores: where the host puts what it receives, if its configuration says so.
        at_us: when the counters were read, by the host's own clock; 0 from an agent that does not say.
    """

    epoch: int
    lease_left_ms: int
    entries: Annotated[tuple[EntryTelemetry, ...], FIRST_ALONE] = ()
    ended: Annotated[tuple[EntryTelemetry, ...], FIRST_ALONE] = ()
    stores: Annotated[tuple[StoreTelemetry, ...], Field(max_length=MOST_STORES)] = ()
    at_us: Annotated[int, Field(ge=0)] = 0
    kind: Literal["telemetry"] = "telemetry"
