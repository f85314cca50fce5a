"""What the connections of each entry have done, as the controller is told: also of entries that have just ended.

The kernel counts from when an entry came until it went; what a connection moves while it runs the host's own congestion
control is not counted, so then the count is the least that it can have been.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from hostagent.agent.hindrances import KeptBack
from hostagent.kernel.layout import EntryCounters
from topology.telemetry import EntryTelemetry

TOLD_FOR_NS = (
    60_000_000_000  # the last count of an entry that has ended is said again for so long: a message may be lost
)
NOT_KEPT_BACK = KeptBack()


@dataclass(slots=True)
class Counting:
    """When each entry's count began, which are the least, and the last counts of those that have ended."""

    since_ns: dict[str, int] = field(default_factory=dict)
    least: set[str] = field(default_factory=set)
    _ended: dict[str, tuple[int, EntryTelemetry]] = field(default_factory=dict)

    def begins(self, names: Iterable[str], now_ns: int) -> None:
        """Note entries whose counters begin at 0 now, CLOCK_MONOTONIC."""
        for name in names:
            self.since_ns[name] = now_ns
            self.least.discard(name)
            self._ended.pop(name, None)

    def not_counted(self, names: Iterable[str]) -> None:
        """Note entries whose connections have run, or may have, without being counted."""
        self.least |= set(names) & self.since_ns.keys()

    def ends(self, name: str, seen: EntryCounters, now_ns: int) -> None:
        """Keep the last count of an entry that is not in the kernel any more."""
        last = self.told(name, seen, now_ns, None, NOT_KEPT_BACK)
        self._ended[name] = now_ns, replace(last, connections=0, active=0)
        self.since_ns.pop(name, None)
        self.least.discard(name)

    def ended(self, now_ns: int) -> tuple[EntryTelemetry, ...]:
        """Return the last counts of those that have ended lately."""
        self._ended = {name: kept for name, kept in self._ended.items() if now_ns - kept[0] < TOLD_FOR_NS}
        return tuple(
            replace(last, delivered_ago_ms=_later(last.delivered_ago_ms, now_ns - at_ns))
            for at_ns, last in self._ended.values()
        )

    def told(
        self, name: str, seen: EntryCounters, now_ns: int, demand: tuple[bool, bool] | None, hindrance: KeptBack
    ) -> EntryTelemetry:
        """Return what is said of an entry; ``demand`` is what it wants and whether it stands by, if it is watched."""
        ago_ms = max(0, now_ns - seen.delivered_ns) // 1_000_000 if seen.delivered_ns else None
        return EntryTelemetry(
            name=name,
            connections=seen.connections,
            active=seen.active,
            delivered_bytes=seen.delivered_bytes,
            sent_segments=seen.sent_segments,
            retransmitted_segments=seen.retransmitted_segments,
            rtt_us=seen.rtt_us,
            fallback="loss" if seen.fallback_since_ns else "",
            wants=None if demand is None else demand[0],
            standing_by=demand is not None and demand[1],
            counted_since_ns=self.since_ns.get(name, 0),
            delivered_ago_ms=ago_ms,
            is_least=name in self.least,
            busy_ms=hindrance.busy_us // 1000,
            receiver_limited_ms=hindrance.receiver_us // 1000,
            buffer_limited_ms=hindrance.buffer_us // 1000,
            least_rtt_us=seen.least_rtt_us,
        )


def _later(ago_ms: int | None, passed_ns: int) -> int | None:
    return None if ago_ms is None else ago_ms + passed_ns // 1_000_000
