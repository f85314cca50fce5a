"""What hosts take, as their senders and they themselves tell it; and which flows are held to that. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from controller.plan.held import Intaking, can_be_held
from controller.plan.intake import Intake, IntakeSight
from controller.plan.plan import Entry, Flow
from controller.state.progress import EntryProgress
from controller.state.reported import Reported
from topology.protocol import EntryTelemetry, Telemetry
from topology.units import shown_rate

ENOUGH_PERCENT = 97  # of the planned rate: nothing keeps it back; one that is held has 94
BUSY_MS = 500  # of about a second: less, and it had too little to send for anything to be learnt
WAITED_SHARE = 50  # its window was closed for a fiftieth of the time: all the time there was no room for more


class IntakeNews(NamedTuple):
    """The receiver of a flow, or a store, that is held to another rate than before."""

    name: str
    before: Intake
    now: Intake


def seen_by_sender(seen: EntryTelemetry, delivered_bps: int, planned_bps: int) -> IntakeSight | None:
    """Return what a sender has seen of its receiver since the telemetry before; None if that says nothing.

    Args:
        seen: what was counted of an entry.
        delivered_bps: what its receiver has confirmed, bit/s of payload.
        planned_bps: what it was granted, bit/s of payload.
    """
    if seen.fallback or not seen.connections:
        return None
    if delivered_bps * 100 >= planned_bps * ENOUGH_PERCENT:
        return IntakeSight(delivered_bps, is_waiting=False)
    if seen.busy_ms < BUSY_MS:
        return None
    return IntakeSight(delivered_bps, is_waiting=seen.receiver_limited_ms * WAITED_SHARE >= seen.busy_ms)


def intakes_after(
    known: Mapping[str, Intake],
    told: Telemetry,
    moves: Mapping[str, EntryProgress],
    granted: Iterable[Entry],
    elapsed_us: int,
) -> dict[str, Intake]:
    """Return, by entry, what a host's receivers take after it has told of its entries, and of what it was granted."""
    by_name: dict[str, Entry] = {entry.flow.name: entry for entry in granted}
    found = {}
    for seen in told.entries:
        entry = by_name.get(seen.name)
        if entry is None:
            continue
        before = known.get(seen.name, Intake(entry.flow.target, since_us=elapsed_us))
        granted_bps = entry.payload_bps
        sight = seen_by_sender(seen, moves[seen.name].delivered_bps, granted_bps) if seen.name in moves else None
        found[seen.name] = before if sight is None else before.seen(sight, granted_bps, elapsed_us)
    return found


def news(before: Mapping[str, Intake], now: Mapping[str, Intake]) -> Iterator[IntakeNews]:
    """Yield what is held to another rate than before; what is not told of any more is held no longer."""
    for name in sorted(before.keys() | now.keys()):
        was, known = before.get(name, Intake()), now.get(name, Intake())
        if was.drain_bps != known.drain_bps:
            yield IntakeNews(name, was, known)


def receivers(flows: Iterable[Flow], reported: Reported) -> Iterator[Intaking]:
    """Yield the receivers that some flows are held by."""
    for flow in flows:
        intake = intake_of(flow, reported)
        if intake is not None and can_be_held(flow):
            yield Intaking(intake, (flow.name,))


def intake_of(flow: Flow, reported: Reported) -> Intake | None:
    """Return what the receiver of a flow takes; None if that is all, or nobody knows: its sender has to be there."""
    host = reported.hosts[flow.host]
    intake = host.intakes.get(flow.name) if host.connected else None
    return None if intake is None or intake.drain_bps is None else intake


def why_held(flow: Flow, reported: Reported) -> str:
    """Return in words what holds a flow to less than it could be sent; empty if nothing does."""
    intake = intake_of(flow, reported)
    if intake is None or intake.drain_bps is None or not can_be_held(flow):
        return ""
    return f"{flow.target} takes no more than {shown_rate(intake.drain_bps)} ({intake.brake})"
