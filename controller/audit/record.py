"""What audits have found: the latest of each place, counted, and told as events."""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.audit.drift import DRIFT, Audit, Deviation, DriftKind, Outcome, Shape, counts
from controller.events import Events

Counted = tuple[str, DriftKind, Shape]  # place, kind and shape


@dataclass(frozen=True, slots=True)
class DriftView:
    """A copy of what audits have found.

    Attributes:
        interval_s: how often each place is audited.
        latest: by place, its latest audit.
        drifted: by place, the latest audit that found drift, repaired or not.
        found: how often something was found, each lasting deviation once.
        repaired: likewise, of what was repaired.
        audits: how many audits there were, by place.
        messages: how many changes were sent for repairs, by place.
    """

    interval_s: float
    latest: Mapping[str, Audit] = field(default_factory=dict)
    drifted: Mapping[str, Audit] = field(default_factory=dict)
    found: Mapping[Counted, int] = field(default_factory=dict)
    repaired: Mapping[Counted, int] = field(default_factory=dict)
    audits: Mapping[str, int] = field(default_factory=dict)
    messages: Mapping[str, int] = field(default_factory=dict)


class AuditRecord:
    """Keeps what audits have found; any thread may look."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._lock = threading.Lock()  # guards the others
        self._latest: dict[str, Audit] = {}
        self._drifted: dict[str, Audit] = {}
        self._found: Counter[Counted] = Counter()
        self._repaired: Counter[Counted] = Counter()
        self._audits: Counter[str] = Counter()
        self._messages: Counter[str] = Counter()

    def view(self, interval_s: float) -> DriftView:
        """Return what audits have found so far."""
        with self._lock:
            return DriftView(
                interval_s=interval_s,
                latest=dict(self._latest),
                drifted=dict(self._drifted),
                found=dict(self._found),
                repaired=dict(self._repaired),
                audits=dict(self._audits),
                messages=dict(self._messages),
            )

    def latest(self, place: str) -> Audit:
        """Return the latest audit of a place; one that found nothing, if there was none."""
        with self._lock:
            return self._latest.get(place, Audit(place, 0))

    def note(self, audit: Audit) -> None:
        """Keep an audit, count what is new in it, and tell of that."""
        before = self.latest(audit.place)
        known = {d.identity for d in before.seen.deviations if d.outcome is not Outcome.REPAIRED}
        new = [d for d in audit.seen.deviations if d.identity not in known]
        repaired = [d for d in audit.seen.deviations if d.outcome is Outcome.REPAIRED]
        with self._lock:
            self._latest[audit.place] = audit
            if any(d.shape in DRIFT for d in audit.seen.deviations):
                self._drifted[audit.place] = audit
            for tally, deviations in ((self._found, new), (self._repaired, repaired)):
                tally.update({(audit.place, *key): count for key, count in counts(deviations).items()})
            self._audits[audit.place] += 1
            self._messages[audit.place] += audit.messages
        self._tell_found(audit.place, new)
        if repaired:
            self._events.publish(
                "drift.repaired",
                place=audit.place,
                count=len(repaired),
                messages=audit.messages,
                took_us=audit.took_us,
            )
        self._tell_alarms(audit, before)

    def _tell_found(self, place: str, new: list[Deviation]) -> None:
        """Publish one event for each kind and shape."""
        for (kind, shape), count in counts(new).items():
            first = next(d for d in new if (d.kind, d.shape) == (kind, shape))
            self._events.publish(
                "drift.found",
                level="warning" if shape in (*DRIFT, Shape.SHADOWED) else "info",
                place=place,
                kind=kind,
                shape=shape,
                count=count,
                wanted=first.wanted,
                found=first.found,
            )

    def _tell_alarms(self, audit: Audit, before: Audit) -> None:
        """Publish the alarms that are new, one line for those of a kind and shape, and the end of the last."""
        known = set(before.alarms)
        new: dict[object, list[str]] = {}
        for d in audit.seen.deviations:
            if d.todo and d.alarm not in known:
                new.setdefault((d.kind, d.shape, d.port_name), []).append(d.alarm)
        new |= {error: [error] for error in audit.errors if error not in known}
        for what, *others in new.values():
            more = {"more": len(set(others) - {what})} if others else {}
            self._events.publish("drift.alarm", level="error", place=audit.place, what=what, **more)
        if before.alarms and not audit.alarms:
            self._events.publish("drift.alarm_over", place=audit.place)
