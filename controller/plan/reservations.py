"""A reservation: bandwidth promised ahead of time, as a value; and which of them somebody asks for."""

from dataclasses import dataclass
from typing import NamedTuple

from controller.plan.keys import FlowId, flow_id
from controller.plan.lifecycle import IN_PLAN, LifecycleEvent, ReservationState
from controller.plan.plan import THE_REST, Selector
from topology.protocol import FlowClass

MAX_TIME_US = 253_402_300_800_000_000  # the end of year 9999, where RFC 3339 ends
LEAST_BPS = 64_000  # a slower promise is of no use to anybody
MOST_AHEAD_US = 3_653 * 86_400 * 1_000_000  # ten years: nothing that is asked for goes on for longer from now


@dataclass(frozen=True, slots=True)
class Constraints:
    """What the path of a reservation must satisfy.

    Attributes:
        include: nodes or circuits it must cross.
        exclude: nodes or circuits it must not touch.
        max_rtt_us: the longest round trip allowed, without queueing; None for any.
        backup: whether a second path is wanted that shares no circuit with the first.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_rtt_us: int | None = None
    backup: bool = False

    @property
    def of_another_path(self) -> "Constraints":
        """What another path in the place of the first must satisfy; what that includes is not asked of it."""
        return Constraints(exclude=self.exclude, max_rtt_us=self.max_rtt_us)


NO_CONSTRAINTS = Constraints()


@dataclass(frozen=True, slots=True)
class Reservation:
    """``rate_bps`` kept from ``a_end`` to ``z_end`` for ``start_us <= t < end_us``.

    Attributes:
        reservation_id: names it in the API.
        sequence: order of creation, the key that lists are paged by.
        version: grows by one with every change; the API's entity tag.
        state: where it stands.
        flow_class: the class whose share it is.
        a_end: a host, or a site for all its hosts.
        z_end: likewise, the receiving end.
        rate_bps: counted on the wire, as circuits are sold, bit/s.
        start_us: Unix time, microseconds.
        end_us: Unix time, microseconds; not in it any more.
        path: the nodes it crosses, ends included.
        backup: the nodes of the second path; empty if none was asked for.
        constraints: what the paths were chosen by.
        hold_until_us: when the hold lapses; None once committed.
        created_us: Unix time, microseconds.
        changed_us: Unix time, microseconds.
        description: its owner's words.
        reason: why it is where it is, when that was not its owner's wish.
        key: the idempotency key it was created with; empty if there was none.
        fingerprint: digest of the request that created it, to tell a repetition from another use of the key.
        selector: between two hosts, which of their connections it is for.
        owner: the principal or ``group:NAME`` that may change it; empty for nobody.
        creator: the principal that has asked for it; empty if it was not noted.
    """

    reservation_id: str
    sequence: int
    version: int
    state: ReservationState
    flow_class: FlowClass
    a_end: str
    z_end: str
    rate_bps: int
    start_us: int
    end_us: int
    path: tuple[str, ...]
    backup: tuple[str, ...]
    constraints: Constraints
    hold_until_us: int | None
    created_us: int
    changed_us: int
    description: str = ""
    reason: str = ""
    key: str = ""
    fingerprint: str = ""
    selector: Selector = THE_REST
    owner: str = ""
    creator: str = ""

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """Its path, and its backup if it has one."""
        return (self.path, self.backup) if self.backup else (self.path,)

    @property
    def flow_name(self) -> FlowId:
        """The name of its flow, of one between two hosts."""
        return flow_id(self.reservation_id, self.a_end)


class DueEvent(NamedTuple):
    """What the clock does to a reservation, and why if that is not its owner's wish."""

    event: LifecycleEvent
    reason: str = ""


def due_event(known: Reservation, now_us: int) -> DueEvent | None:
    """Return what has become due of a reservation by now, Unix time; None if nothing has."""
    is_over = known.end_us <= now_us
    if known.state is ReservationState.HELD and min(known.hold_until_us or 0, known.end_us) <= now_us:
        return DueEvent(LifecycleEvent.EXPIRE, "the hold was not committed in time")
    if known.state is ReservationState.COMMITTED and is_over:
        return DueEvent(LifecycleEvent.EXPIRE, "its whole time passed while no controller ran")
    if known.state in IN_PLAN and is_over:
        return DueEvent(LifecycleEvent.EXPIRE, "its time is over")
    if known.state is ReservationState.COMMITTED and known.start_us <= now_us:
        return DueEvent(LifecycleEvent.START)
    return None


@dataclass(frozen=True, slots=True)
class ReservationFilter:
    """Which reservations are meant; what is empty or None means any.

    Attributes:
        states: in one of these.
        flow_classes: of one of these.
        a_end: from it.
        z_end: to it.
        ends_after_us: its time goes on after this, Unix time.
        starts_before_us: its time begins before this, Unix time.
        words: what its description has in it, in any case.
        owners: of one of these.
    """

    states: tuple[ReservationState, ...] = ()
    flow_classes: tuple[FlowClass, ...] = ()
    a_end: str | None = None
    z_end: str | None = None
    ends_after_us: int | None = None
    starts_before_us: int | None = None
    words: str | None = None
    owners: tuple[str, ...] = ()

    def matches(self, known: Reservation) -> bool:
        """Return whether a reservation is meant."""
        return (
            (not self.states or known.state in self.states)
            and (not self.flow_classes or known.flow_class in self.flow_classes)
            and (self.a_end is None or known.a_end == self.a_end)
            and (self.z_end is None or known.z_end == self.z_end)
            and (self.ends_after_us is None or known.end_us > self.ends_after_us)
            and (self.starts_before_us is None or known.start_us < self.starts_before_us)
            and (self.words is None or self.words.casefold() in known.description.casefold())
            and (not self.owners or known.owner in self.owners)
        )
