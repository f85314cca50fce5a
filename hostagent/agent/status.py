"""How the agent stands, from what it sees once a second; for operators, Prometheus and the service manager. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

from topology.protocol import Allocation
from topology.telemetry import EntryTelemetry, Telemetry

LOSS_SIGHTS = 11  # so many, a second apart: loss is over the last ten seconds, the rate over the last one
STALE_MS = 5_000

_STRICT = ConfigDict(extra="forbid")


class AgentState(StrEnum):
    """What an operator wants to know first."""

    HOLDING = "holding"
    NO_PLAN = "no plan"
    LEASE_OVER = "lease over"
    FALLBACK = "fallback"
    STUCK = "stuck"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the agent is; does not change while it runs.

    Attributes:
        host: its name in the controller's topology.
        version: of Headway.
        kernel: release.
        namespace: id of its network namespace.
        algorithm: the congestion control that ``ss -ti`` shows on held connections.
        started_s: since when it runs, Unix seconds.
    """

    host: str
    version: str
    kernel: str
    namespace: str
    algorithm: str
    started_s: int


@dataclass(frozen=True, slots=True)
class Sight:
    """What the agent saw at one moment.

    Attributes:
        at_ns: when, CLOCK_MONOTONIC.
        telemetry: the kernel's counters.
        allocations: the plan in force.
        lease_ms: how long it was to hold, 0 if there was none yet.
        controller: who is attached, empty if nobody is.
        attached_s: since when, Unix seconds.
        repairs: how often something in the kernel was not as it should have been, and was put right.
        buffers: TCP settings of the namespace as they are now.
        buffers_may_take_bytes: the memory that the plan's windows may take at most.
    """

    at_ns: int
    telemetry: Telemetry
    allocations: tuple[Allocation, ...] = ()
    lease_ms: int = 0
    controller: str = ""
    attached_s: int = 0
    repairs: int = 0
    buffers: dict[str, str] = field(default_factory=dict)
    buffers_may_take_bytes: int = 0


@dataclass(frozen=True, slots=True, config=_STRICT)
class EntryStatus:
    """One allocation: what was planned, and what its connections do.

    Attributes:
        planned_bps: payload, all connections together.
        delivered_bps: payload that the receiver has confirmed in the last second.
        loss_ppm: segments sent again of those sent in the last ten seconds.
        fallback: why the connections run the host's own congestion control; empty if they do not.
    """

    name: str
    flow_class: str
    dest: str
    dest_port: int
    local_port: int
    planned_bps: int
    window_segments: int
    connections: int
    active: int
    delivered_bps: int
    delivered_bytes: int
    sent_segments: int
    retransmitted_segments: int
    loss_ppm: int
    rtt_us: int
    fallback: str


@dataclass(frozen=True, slots=True, config=_STRICT)
class AgentStatus:
    """How the agent stands; the fields of ``Identity`` and ``Sight``.

    Attributes:
        age_ms: how long ago the counters were read.
    """

    identity: Identity
    state: AgentState
    controller: str
    attached_s: int
    epoch: int
    lease_ms: int
    lease_left_ms: int
    buffers: dict[str, str]
    buffers_may_take_bytes: int
    age_ms: int
    entries: tuple[EntryStatus, ...]
    repairs: int = 0

    @property
    def line(self) -> str:
        """The status in one line."""
        to = f"attached to {self.controller}" if self.controller else "no controller"
        return f"{self.state}: epoch {self.epoch}, {len(self.entries)} allocations; {to}"


_STATUS: TypeAdapter[AgentStatus] = TypeAdapter(AgentStatus)


def status_bytes(status: AgentStatus) -> bytes:
    """Return the status as JSON."""
    return _STATUS.dump_json(status)


def parsed_status(data: bytes) -> AgentStatus:
    """Return the status from JSON.

    Raises:
        ValueError: not a status.
    """
    return _STATUS.validate_json(data)


def status_from(identity: Identity, sights: Sequence[Sight], now_ns: int) -> AgentStatus:
    """Return how things stand, from the newest sights, the oldest first.

    Args:
        identity: who the agent is.
        sights: at least one.
        now_ns: CLOCK_MONOTONIC.
    """
    newest, before, oldest = sights[-1], sights[-2] if len(sights) > 1 else sights[-1], sights[0]
    age_ms = (now_ns - newest.at_ns) // 1_000_000
    now, last, first = ({one.name: one for one in sight.telemetry.entries} for sight in (newest, before, oldest))
    took_ns = newest.at_ns - before.at_ns
    entries = tuple(
        _entry(one, _of(one.name, now), _of(one.name, last), _of(one.name, first), took_ns)
        for one in newest.allocations
    )
    is_plan = newest.telemetry.epoch > 0  # 0 is said, and renewed as any other, by a controller that has none for us
    lease_left_ms = max(0, newest.telemetry.lease_left_ms - age_ms) if is_plan else 0
    return AgentStatus(
        identity=identity,
        state=_state(newest, entries, lease_left_ms, age_ms),
        controller=newest.controller,
        attached_s=newest.attached_s,
        epoch=newest.telemetry.epoch,
        lease_ms=newest.lease_ms,
        lease_left_ms=lease_left_ms,
        buffers=newest.buffers,
        buffers_may_take_bytes=newest.buffers_may_take_bytes,
        age_ms=age_ms,
        entries=entries,
        repairs=newest.repairs,
    )


def _state(newest: Sight, entries: tuple[EntryStatus, ...], lease_left_ms: int, age_ms: int) -> AgentState:
    """Return the state; the worst that holds."""
    if age_ms > STALE_MS:
        return AgentState.STUCK
    if not newest.lease_ms or not newest.telemetry.epoch:
        return AgentState.NO_PLAN
    if not lease_left_ms:
        return AgentState.LEASE_OVER
    return AgentState.FALLBACK if any(entry.fallback for entry in entries) else AgentState.HOLDING


def _entry(
    allocation: Allocation, now: EntryTelemetry, last: EntryTelemetry, first: EntryTelemetry, took_ns: int
) -> EntryStatus:
    """Return an allocation with its counters: as they are now, ``took_ns`` ago, and when it was first looked at."""
    moved_bytes = max(0, now.delivered_bytes - last.delivered_bytes)
    sent = now.sent_segments - first.sent_segments
    again = now.retransmitted_segments - first.retransmitted_segments
    return EntryStatus(
        name=allocation.name,
        flow_class=allocation.flow_class.value,
        dest=" ".join(map(str, (allocation.dest, *allocation.also)))
        + "".join(f" from {a}" for a in allocation.sources),
        dest_port=allocation.dest_port,
        local_port=allocation.local_port,
        planned_bps=allocation.rate_bps,
        window_segments=allocation.window_segments,
        connections=now.connections,
        active=now.active,
        delivered_bps=moved_bytes * 8_000_000_000 // took_ns if took_ns else 0,
        delivered_bytes=now.delivered_bytes,
        sent_segments=now.sent_segments,
        retransmitted_segments=now.retransmitted_segments,
        loss_ppm=max(0, again) * 1_000_000 // sent if sent > 0 else 0,
        rtt_us=now.rtt_us,
        fallback=now.fallback,
    )


def _of(name: str, counters: Mapping[str, EntryTelemetry]) -> EntryTelemetry:
    """Return an allocation's counters; zeros if it was not there."""
    return counters.get(name) or EntryTelemetry(name, 0, 0, 0, 0, 0, 0)
