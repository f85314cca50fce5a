"""Made from the API's description by contrib/api_client.py: the plan, circuits, hosts, how things stand."""

from typing import Literal, TypedDict

from headway.promises import ConnectionsOut, FlowClass, Hindrance, Tail

# What a step has changed of one thing, counted in Ethernet frames.
ChangeOut = TypedDict(
    "ChangeOut",
    {
        "where": str,
        "what": str,
        "from_frame_bps": int,
        "to_frame_bps": int,
    },
)

# What a class has of one direction of a circuit.
ClassOut = TypedDict(
    "ClassOut",
    {
        "wire_bps": int,
        "queue_frame_bps": int,
        "meter_frame_bps": int,
    },
)

# One allocation as a host's kernel sees it.
CountersOut = TypedDict(
    "CountersOut",
    {
        "name": str,
        "connections": int,
        "active": int,
        "delivered_bytes": int,
        "sent_segments": int,
        "retransmitted_segments": int,
        "rtt_us": int,
    },
)

DelaySource = Literal["file", "bound", "measured"]

# How long a circuit takes, and how that is known.
CircuitDelayOut = TypedDict(
    "CircuitDelayOut",
    {
        "one_way_us": int,
        "source": DelaySource,
        "measured_at": str | None,
        "measured_by": list[str],
    },
)

DriftKind = Literal["flow", "meter", "group", "queue", "htb", "host", "port"]

# Whether the wanted plan is in force in the switches, and all that is promised is carried.
HealthOut = TypedDict(
    "HealthOut",
    {
        "ok": bool,
        "reasons": list[str],
        "epoch": int,
        "error": str,
        "hosts_missing": list[str],
        "hosts_unconfirmed": list[str],
        "calendar_off_us": int,
        "unsaved_us": int,
    },
)

# A host's agent, its lease and its counters.
HostStateOut = TypedDict(
    "HostStateOut",
    {
        "name": str,
        "connected": bool,
        "kernel": str,
        "codes_tails": bool,
        "sent_epoch": int,
        "confirmed_epoch": int,
        "lease_left_ms": int | None,
        "allocations": list[CountersOut],
    },
)

# What each layer lets through on one direction of a circuit at this moment.
LayersOut = TypedDict(
    "LayersOut",
    {
        "hosts_frame_bps": dict[str, int],
        "meters_frame_bps": dict[str, int],
        "queues_frame_bps": dict[str, int],
        "circuit_frame_bps": int,
    },
)

LineState = Literal["up", "down", "returning"]

# One direction of a circuit in the plan.
LinkPlanOut = TypedDict(
    "LinkPlanOut",
    {
        "circuit": str | None,
        "wire_bps": int,
        "frame_bps": int,
        "classes": dict[str, ClassOut],
    },
)

# Something that needs somebody.
NeedOut = TypedDict(
    "NeedOut",
    {
        "kind": str,
        "place": str,
        "what": str,
        "since": str,
        "means": str,
        "command": str,
        "touches": list[str],
    },
)

# What needs somebody, causes before what they cause.
NeedsOut = TypedDict(
    "NeedsOut",
    {
        "headline": str,
        "at": str,
        "needs": list[NeedOut],
    },
)

Outcome = Literal["not yet", "repaired", "left alone", "failed"]

# What is delivered of an allocation, and what is in the way of more.
ProgressOut = TypedDict(
    "ProgressOut",
    {
        "delivered_bytes": int,
        "delivered_bps": int,
        "least": bool,
        "hindrance": Hindrance | None,
        "since": str,
    },
)

# What one host may send to another.
AllocationOut = TypedDict(
    "AllocationOut",
    {
        "class": FlowClass,
        "from": str,
        "to": str,
        "name": str,
        "path": list[str],
        "payload_bps": int,
        "window_segments": int,
        "connections": ConnectionsOut,
        "dscp": int | None,
        "tail": Tail,
        "carries": list[str],
        "progress": ProgressOut | None,
    },
)

# The bandwidth plan.
PlanOut = TypedDict(
    "PlanOut",
    {
        "epoch": int,
        "links": dict[str, LinkPlanOut],
        "allocations": list[AllocationOut],
    },
)

# A circuit, and what becomes of the plan if it dies.
CircuitOut = TypedDict(
    "CircuitOut",
    {
        "name": str,
        "a_end": str,
        "z_end": str,
        "wire_bps": int,
        "state": LineState,
        "in_use": bool,
        "delay": CircuitDelayOut,
        "if_it_dies": PlanOut | None,
    },
)

Shape = Literal["proper", "missing", "misconfigured", "excess", "shadowed", "foreign", "ignored", "hidden"]

# An object that was not as it should be.
DeviationOut = TypedDict(
    "DeviationOut",
    {
        "kind": DriftKind,
        "shape": Shape,
        "wanted": str,
        "found": str,
        "outcome": Outcome,
        "todo": str,
    },
)

# One audit.
AuditOut = TypedDict(
    "AuditOut",
    {
        "at": str,
        "took_us": int,
        "proper": dict[str, int],
        "deviations": list[DeviationOut],
        "more": int,
        "messages": int,
        "errors": list[str],
        "alarms": list[str],
    },
)

# A switch, or all hosts.
PlaceOut = TypedDict(
    "PlaceOut",
    {
        "place": str,
        "audits": int,
        "messages": int,
        "latest": AuditOut | None,
        "drifted": AuditOut | None,
    },
)

# A step from one plan to the next.
StepOut = TypedDict(
    "StepOut",
    {
        "epoch": int,
        "place": str,
        "started": str,
        "started_us": int,
        "done_us": int,
        "error": str,
        "changes": list[ChangeOut],
    },
)

# A switch, and whether it is connected.
SwitchOut = TypedDict(
    "SwitchOut",
    {
        "name": str,
        "site": str,
        "dpid": str,
        "connected": bool,
    },
)

# How often something was found since the controller started; what lasts counts once.
TallyOut = TypedDict(
    "TallyOut",
    {
        "place": str,
        "kind": DriftKind,
        "shape": Shape,
        "found": int,
        "repaired": int,
    },
)

# What audits have seen.
DriftOut = TypedDict(
    "DriftOut",
    {
        "interval_s": float,
        "places": list[PlaceOut],
        "tallies": list[TallyOut],
    },
)

# The plan: wanted, installed, and what each layer lets through now.
ViewOut = TypedDict(
    "ViewOut",
    {
        "desired": PlanOut,
        "installed": PlanOut | None,
        "layers": dict[str, LayersOut],
        "violations": list[str],
        "error": str,
    },
)
