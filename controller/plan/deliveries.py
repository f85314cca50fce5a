"""What was delivered of each announcement, put together from what hosts count; and the announcements that have ended.

A host counts the payload of an entry from when that comes until it goes. It counts anew when the entry comes again, or
when its agent was started again; what an agent had not told before it died is not known, so the sum is then the least
that it can be. The last count of an entry comes after its announcement has ended, and still belongs to that.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from controller.plan.keys import FlowId
from topology.telemetry import EntryTelemetry

KEEP_US = 30 * 86_400_000_000  # so long is known what became of an announcement
LAST_COUNT_US = 120_000_000  # so long the last count of what has ended is waited for


@dataclass(frozen=True, slots=True)
class Delivered:
    """What one sender of an announcement has delivered.

    Attributes:
        flow: whose it is.
        counted_since_ns: which count of its host goes on, by the host's own clock; 0 before the first.
        before_bytes: what the counts before this one have come to.
        start_bytes: where this count stood when the bytes were announced.
        counter_bytes: where it stands.
        last_us: when the last of them was confirmed, Unix time; 0 if nothing was.
        is_least: some of it may not have been counted.
        is_last: this was the last count of its entry.
    """

    flow: FlowId
    counted_since_ns: int = 0
    before_bytes: int = 0
    start_bytes: int = 0
    counter_bytes: int = 0
    last_us: int = 0
    is_least: bool = False
    is_last: bool = False

    @property
    def payload_bytes(self) -> int:
        """All that was delivered."""
        return self.before_bytes + self.counter_bytes - self.start_bytes

    def counted(self, seen: EntryTelemetry, now_us: int, *, host_us: int = 0, is_last: bool = False) -> "Delivered":
        """Return it after its host has told where its count stands, at ``host_us`` by its own clock, 0 if not known."""
        was_booted = 0 < host_us * 1000 < self.counted_since_ns  # for that clock begins at 0
        if 0 < seen.counted_since_ns < self.counted_since_ns and not was_booted:
            return self  # said late, of a count that is over
        goes_on = seen.counted_since_ns == self.counted_since_ns and seen.delivered_bytes >= self.counter_bytes
        before, start = self.before_bytes, self.start_bytes
        if not goes_on:
            before, start = self.payload_bytes, 0
        began = bool(self.counted_since_ns or self.counter_bytes) and not self.only_started
        lost = not goes_on and began and not self.is_last
        ago_us = (seen.delivered_ago_ms or 0) * 1000
        grown = before + seen.delivered_bytes - start > self.payload_bytes
        return Delivered(
            self.flow,
            seen.counted_since_ns,
            before,
            start,
            seen.delivered_bytes,
            now_us - ago_us if grown else self.last_us,
            self.is_least or seen.is_least or lost,
            is_last,
        )

    def counted_with_others(self, seen: EntryTelemetry, part_bytes: int, now_us: int) -> "Delivered":
        """Return it after its host has told where the count stands that it shares, of which this is its part."""
        payload_bytes = self.payload_bytes + part_bytes
        last_us = now_us - (seen.delivered_ago_ms or 0) * 1000 if part_bytes else self.last_us
        if self.flow != seen.name:
            return replace(self, before_bytes=self.before_bytes + part_bytes, last_us=last_us, is_least=True)
        return Delivered(
            self.flow,
            seen.counted_since_ns,
            payload_bytes,
            seen.delivered_bytes,
            seen.delivered_bytes,
            last_us,
            is_least=True,
        )

    @property
    def only_started(self) -> bool:
        """Whether nothing has come since the bytes were announced, in a count that began before that."""
        return 0 < self.start_bytes == self.counter_bytes

    def is_of_another_count(self, other: "Delivered") -> bool:
        """Return whether the count that goes on is not that of another moment: what was before it must be kept."""
        return (self.counted_since_ns, self.before_bytes, self.start_bytes, self.is_least) != (
            other.counted_since_ns,
            other.before_bytes,
            other.start_bytes,
            other.is_least,
        )

    def starts_again(self) -> "Delivered":
        """Return the first of a new announcement of the same name, whose count may go on from this one's."""
        if not self.counter_bytes:
            return Delivered(self.flow)
        return Delivered(
            self.flow, self.counted_since_ns, start_bytes=self.counter_bytes, counter_bytes=self.counter_bytes
        )


def grown_bytes(before: tuple[int, int], seen: EntryTelemetry) -> int:
    """Return the payload that was confirmed since a count stood somewhere; of a new count, all of it.

    Args:
        before: since when that count goes, by its host's own clock, and where it stood.
        seen: where the entry's count stands.
    """
    since_ns, at_bytes = before
    return max(0, seen.delivered_bytes - at_bytes) if since_ns == seen.counted_since_ns else seen.delivered_bytes


def total_bytes(delivered: Iterable[Delivered]) -> int:
    """Return what all senders have delivered together."""
    return sum(one.payload_bytes for one in delivered)


def with_count(
    delivered: tuple[Delivered, ...], flow: FlowId, seen: EntryTelemetry, now_us: int, *, host_us: int, is_last: bool
) -> tuple[Delivered, ...]:
    """Return what all senders have delivered after one of their hosts has told where its count stands."""
    return tuple(
        one.counted(seen, now_us, host_us=host_us, is_last=is_last) if one.flow == flow else one for one in delivered
    )


def first_counts(flows: Iterable[FlowId], before: Mapping[FlowId, Delivered]) -> tuple[Delivered, ...]:
    """Return the counts of a new announcement; those of one that had its name just before go on from there."""
    return tuple(before[flow].starts_again() if flow in before else Delivered(flow) for flow in flows)


def without_last_counts(delivered: tuple[Delivered, ...]) -> tuple[Delivered, ...]:
    """Return the counts of an announcement whose last ones will not come: what was not told before is not known."""
    return tuple(one if one.is_last else replace(one, is_last=True, is_least=True) for one in delivered)


def with_further_counts(saved: tuple[Delivered, ...], here: tuple[Delivered, ...]) -> tuple[Delivered, ...]:
    """Return what was delivered by what is saved, and by what was counted here if that is more and may yet grow."""
    by_flow = {one.flow: one for one in here}
    both = ((one, by_flow.get(one.flow, one)) for one in saved)
    return tuple(b if not a.is_last and b.payload_bytes > a.payload_bytes else a for a, b in both)
