"""How long circuits take of whose delay the network's file says no more than a bound. Pure.

A host sees how long its data and the answers to it are under way together. Over one circuit there and back, that is
twice the circuit's delay, beside what is known of the other links. The least of it within minutes has no queue in it.
What was measured holds until it is measured otherwise: a lower one at once, a higher one when nothing lower was seen
for :data:`PERIOD_US`, for then a provider has led the line another way.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from controller.plan.clock import Instant
from topology.wire import PPM

PERIOD_US = 600_000_000
SETTLED_US = 10_000_000  # a transfer begins with queues of its own
SAME_US, SAME_PPM = 500, 20_000  # so much otherwise is the same: the plan need not follow


class DelaySource(StrEnum):
    """By what the plan knows a circuit's delay."""

    FILE = "file"
    BOUND = "bound"
    MEASURED = "measured"


@dataclass(frozen=True, slots=True)
class MeasuredDelay:
    """What was measured of a circuit.

    Attributes:
        circuit: which.
        delay_us: one way.
        at_us: when it was measured last, Unix time.
        hosts: by whom: the one that saw least at each end that has reported.
    """

    circuit: str
    delay_us: int
    at_us: int
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CircuitTime:
    """What one host has seen of a circuit.

    Attributes:
        circuit: which.
        end: the switch by which the host's data enters it.
        host: who has seen it.
        delay_us: half of the round trip over it alone; absurd if what is known of other links was wrong.
    """

    circuit: str
    end: str
    host: str
    delay_us: int


class DelayVerdict(StrEnum):
    """What became of what was seen."""

    TAKEN = "taken"
    CONFIRMED = "confirmed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class DelayNews:
    """What became of what was seen of a circuit.

    Attributes:
        verdict: whether the plan goes by it from now on, went already, or never does.
        seen: it.
        before_us: the delay that the plan went by; of what is refused, the bound.
    """

    verdict: DelayVerdict
    seen: MeasuredDelay
    before_us: int


@dataclass(frozen=True, slots=True)
class DelayLook:
    """What was seen of a circuit since a time: the least at each end.

    Attributes:
        since_us: elapsed time.
        least: by end.
        is_refused: whether it was said that it makes no sense.
    """

    since_us: int
    least: Mapping[str, CircuitTime] = field(default_factory=dict)
    is_refused: bool = False

    def with_seen(self, seen: CircuitTime) -> "DelayLook":
        """Return it with one more."""
        known = self.least.get(seen.end)
        if known is not None and known.delay_us <= seen.delay_us:
            return self
        return replace(self, least={**self.least, seen.end: seen})

    def measured(self, at_us: int) -> MeasuredDelay:
        """Return what it comes to."""
        seen = sorted(self.least.values(), key=lambda one: (one.delay_us, one.host))
        return MeasuredDelay(seen[0].circuit, seen[0].delay_us, at_us, tuple(dict.fromkeys(one.host for one in seen)))


@dataclass(frozen=True, slots=True)
class DelayBound:
    """What the network's file says of a circuit.

    Attributes:
        most_us: its delay at most, one way.
        ends: at how many of its ends hosts of ours can see it: one, if the other is not ours.
    """

    most_us: int
    ends: int


@dataclass(frozen=True, slots=True)
class MeasuredDelays:
    """What was measured, and what was seen since.

    Attributes:
        measured: by circuit.
        looks: by circuit, what was seen lately.
        is_saved: whether the database has been given all that was measured.
        refused: what the database has and was refused, so that this is said once.
    """

    measured: Mapping[str, MeasuredDelay] = field(default_factory=dict)
    looks: Mapping[str, DelayLook] = field(default_factory=dict)
    is_saved: bool = True
    refused: frozenset[MeasuredDelay] = frozenset()

    @property
    def measured_us(self) -> dict[str, int]:
        """By circuit, what the plan goes by."""
        return {name: one.delay_us for name, one in self.measured.items()}

    def restored(
        self, saved: Iterable[MeasuredDelay], bounds: Mapping[str, DelayBound]
    ) -> tuple["MeasuredDelays", list[DelayNews]]:
        """Return them with what an earlier controller has measured, and which of it is refused for the first time.

        What the file says by now, or does not know any more, is forgotten; what is above its bound is refused.
        """
        before = dict(self.measured)
        found, refused = dict(before), list[DelayNews]()
        for one in saved:
            bound, mine = bounds.get(one.circuit), before.get(one.circuit)
            if bound is None or (mine is not None and mine.at_us >= one.at_us):
                continue
            if 0 < one.delay_us <= bound.most_us:
                found[one.circuit] = one
            elif one not in self.refused:
                refused.append(DelayNews(DelayVerdict.REFUSED, one, bound.most_us))
        said = self.refused | {news.seen for news in refused}
        return replace(self, measured=found, is_saved=set(found.values()) <= {*saved}, refused=said), refused

    def seen(self, one: CircuitTime, bound: DelayBound, now: Instant) -> tuple["MeasuredDelays", DelayNews | None]:
        """Return them after a host has seen a circuit's time, and what became of it, if anything."""
        look = self.looks.get(one.circuit, DelayLook(now.elapsed_us)).with_seen(one)
        passed_us = now.elapsed_us - look.since_us
        is_over = passed_us >= PERIOD_US
        if not is_over and (passed_us < SETTLED_US or len(look.least) < bound.ends):
            return self._looking(look, one.circuit), None
        measured, known = look.measured(now.calendar_us), self.measured.get(one.circuit)
        before_us = bound.most_us if known is None else known.delay_us
        after = self._without_look(one.circuit) if is_over else self._looking(look, one.circuit)
        if not 0 < measured.delay_us <= bound.most_us:
            return after._refused(measured, look, bound, is_over=is_over)
        if known is None or (_is_other(before_us, measured.delay_us) and (is_over or measured.delay_us < before_us)):
            return after._with(measured), DelayNews(DelayVerdict.TAKEN, measured, before_us)
        if is_over:
            same = replace(measured, delay_us=before_us)
            return after._with(same), DelayNews(DelayVerdict.CONFIRMED, same, before_us)
        return after, None

    def _refused(
        self, measured: MeasuredDelay, look: DelayLook, bound: DelayBound, *, is_over: bool
    ) -> tuple["MeasuredDelays", DelayNews | None]:
        """Return them after something absurd; of a line that has become longer than its bound nothing is known."""
        after = self if is_over else self._looking(replace(look, is_refused=True), measured.circuit)
        if is_over and measured.delay_us > bound.most_us and measured.circuit in self.measured:
            left = {name: one for name, one in self.measured.items() if name != measured.circuit}
            after = replace(after, measured=left, is_saved=False)
        return after, None if look.is_refused else DelayNews(DelayVerdict.REFUSED, measured, bound.most_us)

    def _with(self, measured: MeasuredDelay) -> "MeasuredDelays":
        return replace(self, measured={**self.measured, measured.circuit: measured}, is_saved=False)

    def _looking(self, look: DelayLook, circuit: str) -> "MeasuredDelays":
        return self if self.looks.get(circuit) is look else replace(self, looks={**self.looks, circuit: look})

    def _without_look(self, circuit: str) -> "MeasuredDelays":
        return replace(self, looks={name: look for name, look in self.looks.items() if name != circuit})


def _is_other(before_us: int, after_us: int) -> bool:
    """Return whether a delay is so much otherwise that the plan follows."""
    return abs(after_us - before_us) > max(SAME_US, before_us * SAME_PPM // PPM)
