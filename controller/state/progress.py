"""What each entry of the plan delivers, and what is in the way of more. Pure.

The rate is what the receiver has confirmed between two tellings of its host, about a second apart. What is in the way
is judged by what TCP itself has counted in that time; where nothing explains that there is less than planned, that is
what is said.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from controller.plan.deliveries import grown_bytes
from topology.telemetry import EntryTelemetry

ENOUGH_PERCENT = 90  # of the planned rate: less is explained
IDLE_MS = 500  # of about a second: for most of it the applications had written nothing


class Hindrance(StrEnum):
    """What is in the way of more."""

    NOTHING_TO_SEND = "nothing-to-send"
    RECEIVER_WINDOW = "receiver-window"
    SEND_BUFFER = "send-buffer"
    LOSS = "loss"
    FALLBACK = "fallback"
    NO_AGENT = "no-agent"
    NO_LEASE = "no-lease"
    NOT_APPLIED = "not-applied"
    NOT_KNOWN = "not-known"


@dataclass(frozen=True, slots=True)
class EntryProgress:
    """What an entry delivers.

    Attributes:
        delivered_bytes: payload since the entry came to its host.
        delivered_bps: payload, bit/s, between the last two tellings.
        is_least: some of it was not counted.
        hindrance: what is in the way of more; None for nothing: it has what is planned.
        since_us: since when, Unix time.
    """

    delivered_bytes: int
    delivered_bps: int
    is_least: bool
    hindrance: Hindrance | None
    since_us: int


@dataclass(frozen=True, slots=True)
class Telling:
    """What a host has told of its entries at one moment.

    Attributes:
        entries: its counters, by entry.
        has_lease: whether its lease held.
        elapsed_us: when it came, elapsed time.
        now_us: when it came, Unix time.
        host_us: when its counters were read, by the host's own clock; 0 if it does not say.
    """

    entries: Mapping[str, EntryTelemetry]
    has_lease: bool
    elapsed_us: int
    now_us: int
    host_us: int = 0

    def since_us(self, before: "Telling") -> int:
        """Return the time since the one before: by the host's clock, for they may come late and together."""
        if self.host_us and before.host_us:
            return self.host_us - before.host_us
        return self.elapsed_us - before.elapsed_us


def progress(
    before: Telling | None, now: Telling, known: Mapping[str, EntryProgress], planned_bps: Mapping[str, int]
) -> dict[str, EntryProgress]:
    """Return what each entry of a host delivers.

    Args:
        before: the telling before; None for the first.
        now: the newest.
        known: what was said before, for since when.
        planned_bps: by entry, what its host was granted, bit/s of payload.
    """
    found = {}
    for name, seen in now.entries.items():
        earlier = None if before is None else before.entries.get(name)
        took_us = 0 if before is None else now.since_us(before)
        rate_bps = moved_bytes(earlier, seen) * 8_000_000 // took_us if took_us > 0 and earlier is not None else 0
        hindrance = (
            _hindrance(earlier, seen, rate_bps, planned_bps.get(name, 0)) if now.has_lease else Hindrance.NO_LEASE
        )
        was = known.get(name)
        since_us = was.since_us if was is not None and was.hindrance is hindrance else now.now_us
        found[name] = EntryProgress(seen.delivered_bytes, rate_bps, seen.is_least, hindrance, since_us)
    return found


def moved_bytes(before: EntryTelemetry | None, now: EntryTelemetry) -> int:
    """Return the payload that was confirmed between two counts of an entry; of a new count, all of it."""
    return grown_bytes((0, 0) if before is None else (before.counted_since_ns, before.delivered_bytes), now)


def _hindrance(before: EntryTelemetry | None, now: EntryTelemetry, rate_bps: int, planned_bps: int) -> Hindrance | None:
    """Return what is in the way of an entry whose host is here and has a lease: the first that explains it."""
    has_enough = rate_bps * 100 >= planned_bps * ENOUGH_PERCENT
    is_idle = now.wants is None and now.busy_ms < IDLE_MS
    reasons = (
        (bool(now.fallback), Hindrance.FALLBACK),
        (has_enough, None),
        (now.wants is False or not now.connections, Hindrance.NOTHING_TO_SEND),
        (2 * now.receiver_limited_ms >= now.busy_ms > 0, Hindrance.RECEIVER_WINDOW),
        (2 * now.buffer_limited_ms >= now.busy_ms > 0, Hindrance.SEND_BUFFER),
        (before is not None and _lost_as_much(before, now, rate_bps, planned_bps), Hindrance.LOSS),
        (is_idle, Hindrance.NOTHING_TO_SEND),
    )
    return next((reason for holds, reason in reasons if holds), Hindrance.NOT_KNOWN)


def _lost_as_much(before: EntryTelemetry, now: EntryTelemetry, rate_bps: int, planned_bps: int) -> bool:
    """Return whether what was sent again is at least half of what lacks."""
    sent = now.sent_segments - before.sent_segments
    again = now.retransmitted_segments - before.retransmitted_segments
    return sent > 0 and again > 0 and 2 * again * planned_bps >= sent * max(0, planned_bps - rate_bps)


def fallen_back(entries: Iterable[EntryTelemetry]) -> frozenset[str]:
    """Return the entries whose connections run their host's own congestion control."""
    return frozenset(entry.name for entry in entries if entry.fallback)
