"""What clients ask of lists: which, and how much of them."""

from pydantic import Field

from controller.asker import present_asker
from controller.northbound.rest.bodies import Body, Instant, Owner
from controller.plan.announcement_states import AnnouncementState
from controller.plan.lifecycle import ReservationState
from controller.plan.reservations import ReservationFilter
from topology.protocol import FlowClass


class OwnedQuery(Body):
    """Whose."""

    owner: list[Owner] = Field(default=[], max_length=32, description="Of these owners: `group:NAME`, or a principal.")
    mine: bool = Field(default=False, description="Of whoever asks, and of that one's groups.")

    @property
    def owners(self) -> tuple[str, ...]:
        """Of whom; empty for anybody."""
        return (*self.owner, *(sorted(present_asker().owners) if self.mine else ()))


class HistoryQuery(Body):
    """Where to go on, and how much to take."""

    limit: int = Field(default=100, ge=1, le=1000, description="How many at most.")
    cursor: str | None = Field(
        default=None, max_length=64, description="Go on after this one.", examples=["YWZ0ZXIgMTAw"]
    )


class AnnouncementQuery(OwnedQuery):
    """Which announcements, and how many of them."""

    limit: int = Field(default=100, ge=1, le=1000, description="How many at most.")
    cursor: str | None = Field(
        default=None, max_length=64, description="Where to go on: `next` of the page before.", examples=["YWZ0ZXIgMTAw"]
    )
    state: list[AnnouncementState] = Field(
        default=[], max_length=len(AnnouncementState), description="In one of these states."
    )


class CalendarQuery(OwnedQuery):
    """Which reservations."""

    flow_class: list[FlowClass] = Field(
        default=[], alias="class", max_length=len(FlowClass), description="Of these classes."
    )
    a_end: str | None = Field(
        default=None,
        alias="from",
        max_length=255,
        description="Exactly this sending host or site.",
        examples=["la-serena"],
    )
    z_end: str | None = Field(
        default=None,
        alias="to",
        max_length=255,
        description="Exactly this receiving host or site.",
        examples=["champaign"],
    )

    def value(self) -> ReservationFilter:
        """Return which reservations are meant."""
        return ReservationFilter(
            flow_classes=tuple(self.flow_class), a_end=self.a_end, z_end=self.z_end, owners=self.owners
        )


class ReservationQuery(CalendarQuery):
    """Which reservations, and how many of them."""

    limit: int = Field(default=100, ge=1, le=1000, description="How many at most.")
    cursor: str | None = Field(
        default=None, max_length=64, description="Where to go on: `next` of the page before.", examples=["YWZ0ZXIgMTAw"]
    )
    state: list[ReservationState] = Field(
        default=[], max_length=len(ReservationState), description="In one of these states."
    )
    after: Instant = Field(default=None, description="Its time goes on after this instant.")
    before: Instant = Field(default=None, description="Its time begins before this instant.")
    description: str | None = Field(
        default=None, max_length=200, description="Contains these words, in any case.", examples=["night"]
    )

    def value(self) -> ReservationFilter:
        """Return which reservations are meant."""
        return ReservationFilter(
            tuple(self.state),
            tuple(self.flow_class),
            self.a_end,
            self.z_end,
            self.after,
            self.before,
            self.description,
            self.owners,
        )
