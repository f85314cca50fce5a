"""What clients send, parsed once into values; pydantic says what is wrong with it, by its field."""

import hashlib
from collections.abc import Callable
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema, model_validator

from controller.asker import OWNER_PATTERN
from controller.plan.admission import Request
from controller.plan.announcements import Wish, part_bits
from controller.plan.availability import MOST_PIECES, Question
from controller.plan.ledger import HOLD_US
from controller.plan.plan import THE_REST, Selector
from controller.plan.reservations import NO_CONSTRAINTS, Constraints, Reservation
from controller.plan.volume import Volume
from topology import units
from topology.printable import without_halves
from topology.protocol import FlowClass, Tail
from topology.wire import Framing

MOST = 2**63 - 1  # what any database holds as an integer
DAY_US = 86_400_000_000
MOST_S = 10**12  # longer than the calendar, and still exact in microseconds


def _text(parse: Callable[[str], int], longest: int) -> PlainValidator:
    """Return a validator of text; None stays None, so that an optional field has one message and not two."""

    def parsed(value: object) -> int | None:
        if value is None:
            return None
        text = without_halves(value)  # a problem quotes it, and pydantic takes none that UTF-8 has not
        if not isinstance(text, str) or len(text) > longest:
            raise ValueError(f"need a text of at most {longest} characters")
        found = parse(text)
        if found > MOST:
            raise ValueError("is more than there can be")
        return found

    return PlainValidator(parsed)


def _schema(example: str, **more: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "examples": [example], **more})


Instant = Annotated[int | None, _text(units.instant_us, 64), _schema("2026-11-21T22:00:00-03:00", format="date-time")]
RateText = Annotated[
    int | None,
    _text(units.rate_bps, 40),
    _schema("10 Gbit/s", pattern=r"^\s*[0-9]+(\.[0-9]+)?\s*[kMGT]?b(it/s|ps|it)\s*$"),
]
RateBps = Annotated[int | None, Field(gt=0, le=MOST, examples=[10_000_000_000])]
DurationS = Annotated[float | None, Field(gt=0, le=MOST_S, allow_inf_nan=False, examples=[36_000])]
Name = Annotated[str, Field(min_length=1, max_length=255, examples=["la-serena"])]
MaxRttMs = Annotated[float | None, Field(gt=0, le=10**9, allow_inf_nan=False, examples=[200])]
Description = Annotated[  # no control characters: it is printed on terminals
    str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$", examples=["night of 21 November"])
]

Owner = Annotated[str, Field(min_length=1, max_length=255, pattern=f"^{OWNER_PATTERN}$", examples=["group:lsst"])]


def us_of_seconds(seconds: float) -> int:
    """Return microseconds, at least one."""
    return max(1, round(seconds * 1_000_000))


def described_body(*one_of: tuple[str, ...]) -> Callable[[dict[str, Any]], None]:
    """Return what finishes a schema: exactly one field of each group, and no null as the default of what is no null."""

    def finish(schema: dict[str, Any]) -> None:
        for field in schema.get("properties", {}).values():
            if field.get("default", ...) is None:
                del field["default"]
        if one_of:
            schema["allOf"] = [{"oneOf": [{"required": [name]} for name in names]} for names in one_of]

    return finish


def one_of(model: BaseModel, *names: str, need: bool = True) -> None:
    """Refuse a model with two of the fields, or none where one is needed.

    Raises:
        ValueError: pydantic makes a problem of it.
    """
    given = [name for name in names if getattr(model, name) is not None]
    if len(given) > 1 or (need and not given):
        raise ValueError(f"need {'exactly' if need else 'at most'} one of {' and '.join(names)}, got {len(given)}")


class Body(BaseModel):
    """What all bodies have in common: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=described_body())


def digest(body: Body, without: set[str] | None = None) -> str:
    """Return a digest of all that is asked, by which a repetition is known."""
    return hashlib.blake2b(body.model_dump_json(exclude=without).encode(), digest_size=16).hexdigest()


class ConstraintsIn(Body):
    """What the path must satisfy."""

    include: tuple[Name, ...] = Field(default=(), max_length=32, description="Nodes or circuits it must cross.")
    exclude: tuple[Name, ...] = Field(default=(), max_length=32, description="Nodes or circuits it must not touch.")
    max_rtt_ms: MaxRttMs = Field(default=None, description="Longest round trip without queueing, milliseconds.")
    backup: bool = Field(default=False, description="Whether a second path is kept that shares no circuit with it.")

    def value(self) -> Constraints:
        """Return it as the plan knows it."""
        rtt_us = None if self.max_rtt_ms is None else round(self.max_rtt_ms * 1_000)
        return Constraints(self.include, self.exclude, rtt_us, self.backup)


class ConnectionsIn(Body):
    """Which connections of two hosts a promise is for: those with these ports."""

    dest_port: int = Field(default=0, ge=0, le=65535, description="The receiver's TCP port; 0 for any.", examples=[873])
    local_port: int = Field(default=0, ge=0, le=65535, description="The sender's TCP port; 0 for any.")

    def value(self) -> Selector:
        """Return it as the plan knows it."""
        return Selector(self.dest_port, self.local_port)


Connections = Annotated[
    ConnectionsIn | None,
    Field(default=None, description="By which ports they are told apart; all that no other promise has if absent."),
]


class Rated(Body):
    """A rate, as a number or with its unit."""

    rate_bps: RateBps = Field(default=None, description="Counted on the wire, bit/s; this or `rate`.")
    rate: RateText = Field(default=None, description="The same with its unit; this or `rate_bps`.")

    @property
    def wanted_bps(self) -> int | None:
        """The rate; None if there is none."""
        return self.rate if self.rate_bps is None else self.rate_bps


class ReservationIn(Rated):
    """Bandwidth that is wanted from one end to the other for a time."""

    model_config = ConfigDict(json_schema_extra=described_body(("rate_bps", "rate"), ("end", "duration_s")))

    a_end: Name = Field(alias="from", description="The host that sends, or a site for all its hosts.")
    z_end: Name = Field(alias="to", description="The host or site that receives.", examples=["champaign"])
    flow_class: FlowClass = Field(
        default=FlowClass.URGENT, alias="class", description="Whose share of the circuit it is."
    )
    start: Instant = Field(default=None, description="RFC 3339 with its offset; now if absent.")
    end: Instant = Field(
        default=None, description="RFC 3339 with its offset, not in it any more; this or `duration_s`."
    )
    duration_s: DurationS = Field(default=None, description="Seconds, down to microseconds; this or `end`.")
    constraints: ConstraintsIn | None = Field(default=None, description="What the path must satisfy.")
    connections: Connections
    description: Description = Field(default="", description="Your own words.")
    hold_s: int = Field(
        default=HOLD_US // 1_000_000,
        ge=1,
        le=3600,
        description="How long it is held at most unless committed, seconds.",
    )
    commit: bool = Field(default=False, description="Commit it at once.")
    owner: Owner | None = Field(
        default=None, description="Whose it is: `group:NAME` of a group of yours; yours if absent."
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        one_of(self, "rate_bps", "rate")
        one_of(self, "end", "duration_s")
        return self

    def request(self, now_us: int) -> Request:
        """Return what is asked for at an instant."""
        start_us = now_us if self.start is None else self.start
        end_us = start_us + us_of_seconds(self.duration_s or 0) if self.end is None else self.end
        return Request(
            self.a_end,
            self.z_end,
            self.flow_class,
            self.wanted_bps or 0,
            start_us,
            end_us,
            NO_CONSTRAINTS if self.constraints is None else self.constraints.value(),
            self.description,
            THE_REST if self.connections is None else self.connections.value(),
            self.owner or "",
        )

    @property
    def fingerprint(self) -> str:
        """A digest of all that is asked, by which a repetition is known; the same as before there were owners."""
        return digest(self, without={"owner"} if self.owner is None else None)


class ReservationChange(Rated):
    """What shall be different; what is absent or null stays as it is."""

    start: Instant = Field(default=None, description="RFC 3339 with its offset; not once it has begun.")
    end: Instant = Field(default=None, description="RFC 3339 with its offset.")
    flow_class: FlowClass | None = Field(default=None, alias="class", description="Whose share of the circuit it is.")
    constraints: ConstraintsIn | None = Field(default=None, description="All of them anew.")
    description: Description | None = Field(default=None, description="Your own words.")
    owner: Owner | None = Field(default=None, description="Whose it is from now on: you, or a group of yours.")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        one_of(self, "rate_bps", "rate", need=False)
        if all(getattr(self, name) is None for name in type(self).model_fields):
            raise ValueError("nothing is to change")
        return self

    def changed(self, known: Reservation) -> Request:
        """Return what a reservation shall be."""
        rate_bps = self.wanted_bps
        return Request(
            known.a_end,
            known.z_end,
            self.flow_class or known.flow_class,
            known.rate_bps if rate_bps is None else rate_bps,
            known.start_us if self.start is None else self.start,
            known.end_us if self.end is None else self.end,
            known.constraints if self.constraints is None else self.constraints.value(),
            known.description if self.description is None else self.description,
            known.selector,
            known.owner if self.owner is None else self.owner,
        )


class RenewalIn(Body):
    """For how long a hold is kept."""

    hold_s: int = Field(default=HOLD_US // 1_000_000, ge=1, le=3600, description="From now, at most, seconds.")


class AnnouncementIn(Body):
    """Bytes that are coming."""

    id: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^\.*[A-Za-z0-9_-][A-Za-z0-9._-]*$")] | None = Field(
        default=None, description="A name for it; made up if absent.", examples=["image"]
    )
    flow_class: FlowClass = Field(default=FlowClass.URGENT, alias="class", description="urgent or background.")
    size_bytes: int = Field(
        alias="bytes", gt=0, le=MOST, description="Payload, all senders together.", examples=[2_688_024_580]
    )
    senders: tuple[Name, ...] = Field(
        alias="from",
        min_length=1,
        max_length=1_000,
        description="Sending hosts; each sends an equal part.",
        examples=[["base20", "base21"]],
    )
    target: Name = Field(alias="to", description="Receiving host.", examples=["arch"])
    deadline_s: float | None = Field(
        default=None,
        gt=0,
        le=10**9,
        allow_inf_nan=False,
        description="By when, seconds from now; at most ten years.",
        examples=[30],
    )
    deadline_for: Literal["across", "stored"] = Field(
        default="across", description="By then all is to be across the network, or also stored by its receiver."
    )
    lanes: int = Field(
        default=1,
        ge=1,
        le=16,
        description="Over how many circuits at once, at most: from as many interfaces of the one sender.",
    )
    connects: Literal["sender", "receiver"] = Field(
        default="sender", description="Who makes the connections that are dealt to the lanes."
    )
    session_s: float = Field(
        default=0,
        ge=0,
        le=3_600,
        allow_inf_nan=False,
        description="How long the program's session takes before its first byte, seconds: the promise counts it.",
        examples=[2.5],
    )
    tail: Tail = Field(
        default=Tail.PLAIN,
        description="coded: parities follow, where the agents of both ends offer it; plain: as its class has it.",
    )
    connections: Connections
    owner: Owner | None = Field(
        default=None, description="Whose it is: `group:NAME` of a group of yours; yours if absent."
    )


class AvailabilityQuery(Rated):
    """What is free, when; and when something fits."""

    a_end: Name = Field(alias="from", description="Host or site that sends.")
    z_end: Name = Field(alias="to", description="Host or site that receives.", examples=["champaign"])
    flow_class: FlowClass = Field(default=FlowClass.URGENT, alias="class", description="Whose share is meant.")
    start: Instant = Field(default=None, description="From then on; now if absent or past.")
    end: Instant = Field(default=None, description="Until then; 24 hours after the start if absent.")
    rate_bps: RateBps = Field(
        default=None, description="When does this rate fit first? bit/s on the wire; with `duration_s`."
    )
    rate: RateText = Field(default=None, description="The same with its unit; with `duration_s`.")
    duration_s: DurationS = Field(default=None, description="For how long it must fit, seconds.")
    size_bytes: int | None = Field(
        default=None,
        alias="bytes",
        gt=0,
        le=MOST,
        description="When can so many bytes of payload be moved?",
        examples=[2_700_000_000],
    )
    rate_min: RateText = Field(
        default=None, description="They cannot move at less; with `bytes`.", examples=["1 Gbit/s"]
    )
    rate_max: RateText = Field(
        default=None, description="They cannot move at more; with `bytes`.", examples=["40 Gbit/s"]
    )
    include: list[Name] = Field(default=[], max_length=32, description="Nodes or circuits that the path must cross.")
    exclude: list[Name] = Field(default=[], max_length=32, description="Nodes or circuits that it must not touch.")
    max_rtt_ms: MaxRttMs = Field(default=None, description="Longest round trip without queueing, milliseconds.")
    limit: int = Field(
        default=MOST_PIECES, ge=1, le=MOST_PIECES, description="How many pieces of time at most, all paths together."
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        one_of(self, "rate_bps", "rate", need=False)
        if (self.wanted_bps is None) != (self.duration_s is None):
            raise ValueError("rate and duration_s go together")
        if self.size_bytes is None and (self.rate_min is not None or self.rate_max is not None):
            raise ValueError("rate_min and rate_max go with bytes")
        if self.rate_min is not None and self.rate_max is not None and self.rate_min > self.rate_max:
            raise ValueError("rate_min must not be more than rate_max")
        return self

    def question(self, now_us: int, framing: Framing) -> Question:
        """Return the question as the plan knows it, asked at an instant."""
        start_us = max(now_us, self.start or now_us)
        rtt_us = None if self.max_rtt_ms is None else round(self.max_rtt_ms * 1_000)
        return Question(
            a_end=self.a_end,
            z_end=self.z_end,
            flow_class=self.flow_class,
            start_us=start_us,
            end_us=start_us + DAY_US if self.end is None else self.end,
            rate_bps=self.wanted_bps,
            duration_us=None if self.duration_s is None else us_of_seconds(self.duration_s),
            volume=None if self.size_bytes is None else self._volume(self.size_bytes, framing),
            constraints=Constraints(tuple(self.include), tuple(self.exclude), rtt_us),
            most_pieces=self.limit,
        )

    def _volume(self, size_bytes: int, framing: Framing) -> Volume:
        wish = Wish("", self.flow_class, size_bytes, None, framing)
        return Volume(part_bits(wish, senders=1), self.rate_min or 0, MOST if self.rate_max is None else self.rate_max)
