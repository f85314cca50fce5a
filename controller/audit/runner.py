"""Audits: when each switch, and all hosts, are compared with what they should hold; what came of it, counted and told.

They run in the thread that carries plans out, between transitions, one place at a time: an announcement waits for one
switch to answer at most.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Protocol

from controller.audit.drift import DRIFT, Audit, Compared, Deviation, Kind, Outcome, Shape, compared, counts
from controller.audit.switches import Part
from controller.plan.plan import Plan
from controller.state.guard import GuardedState
from controller.state.reported import HostState
from topology.network import Switch
from topology.protocol import Allocations

HOSTS = "hosts"  # the place that all hosts are audited as
INTERVAL_S = 10.0
SETTLED_US = 1_000_000  # telemetry that was on its way when the agent confirmed is older than this
SHORTEST_WAIT_S = 0.05
_TODO_HOST = "it was sent its allocations again and does not hold them; start its agent anew"


class Auditing(Protocol):
    """What is needed of the switches; blocking."""

    def audited(self, switch: Switch, meters: Plan, queues: Plan) -> tuple[Part, ...]:
        """Return what was found and done on a switch."""


class Sending(Protocol):
    """What is needed of the agents; returns at once."""

    def send(self, host: str, allocations: Allocations) -> None:
        """Send a host what it may do, if it is connected."""


Counted = tuple[str, Kind, Shape]  # place, kind and shape


@dataclass(frozen=True, slots=True)
class DriftView:
    """A copy of what audits have seen.

    Attributes:
        interval_s: how often each place is audited.
        latest: by place, its latest audit.
        drifted: by place, the latest audit that put something right or could not.
        found: how often something was found, each lasting deviation once.
        repaired: likewise, of what was put right.
        audits: how many audits there were, by place.
        messages: how many changes were sent to put things right, by place.
    """

    interval_s: float
    latest: Mapping[str, Audit] = field(default_factory=dict)
    drifted: Mapping[str, Audit] = field(default_factory=dict)
    found: Mapping[Counted, int] = field(default_factory=dict)
    repaired: Mapping[Counted, int] = field(default_factory=dict)
    audits: Mapping[str, int] = field(default_factory=dict)
    messages: Mapping[str, int] = field(default_factory=dict)


class Audits:
    """Audits each place at its time."""

    def __init__(
        self,
        state: GuardedState,
        switches: Auditing,
        hosts: Sending,
        interval_s: float = INTERVAL_S,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._state = state
        self._switches = switches
        self._hosts = hosts
        self._interval_s = interval_s
        self._now_s = now_s
        self._by_name = {s.name: s for s in state.site.network.switches}
        self._due_s = dict.fromkeys((*self._by_name, HOSTS), now_s() + interval_s)
        self._latest: dict[str, Audit] = {}
        self._drifted: dict[str, Audit] = {}
        self._found: Counter[Counted] = Counter()
        self._repaired: Counter[Counted] = Counter()
        self._audits: Counter[str] = Counter()
        self._messages: Counter[str] = Counter()

    def view(self) -> DriftView:
        """Return what audits have seen so far."""
        with self._state.changed:
            return DriftView(
                interval_s=self._interval_s,
                latest=dict(self._latest),
                drifted=dict(self._drifted),
                found=dict(self._found),
                repaired=dict(self._repaired),
                audits=dict(self._audits),
                messages=dict(self._messages),
            )

    def is_due(self) -> bool:
        """Return whether a place is to be audited now, and can be; under the lock."""
        due = bool(self._state.reported.switches_back) or min(self._due_s.values()) <= self._now_s()
        return due and self._at_rest() is not None

    def wait_s(self) -> float:
        """Return how long until an audit is due; under the lock."""
        return max(SHORTEST_WAIT_S, min(self._due_s.values()) - self._now_s())

    def next(self) -> None:
        """Audit the place that is due longest, if one is, and no transition is under way or wanted."""
        state = self._state
        with state.changed:
            plans = self._at_rest()
            if plans is None:
                return
            for switch in self._by_name.values():
                if switch.dpid in state.reported.switches_back:
                    self._due_s[switch.name] = self._now_s()
            state.put(reported=replace(state.reported, switches_back=frozenset()))
            place = min(self._due_s, key=lambda name: self._due_s[name])
            if self._due_s[place] > self._now_s():
                return
            self._due_s[place] = self._now_s() + self._interval_s
        self._audited(place, *plans)

    def _at_rest(self) -> tuple[Plan, Plan] | None:
        """Return the plans of meters and queues if all layers hold the plan that is wanted; under the lock.

        Queues that are the same under both plans keep the older epoch.
        """
        installed, epoch = self._state.installed, self._state.desired.plan.epoch
        if installed.meters is None or installed.queues is None:
            return None
        rests = epoch == installed.meters.epoch == installed.hosts_epoch
        return (installed.meters, installed.queues) if rests else None

    def _audited(self, place: str, meters: Plan, queues: Plan) -> None:
        began_us, began_s = self._state.now_us(), time.monotonic()
        if place == HOSTS:
            parts: tuple[Part, ...] = (self._hosts_audited(),)
        else:
            parts = self._switches.audited(self._by_name[place], meters, queues)
        seen = reduce(Compared.__add__, (part.seen for part in parts), Compared())
        errors = tuple(dict.fromkeys(part.error for part in parts if part.error))
        took_us = int((time.monotonic() - began_s) * 1e6)
        self._note(Audit(place, began_us, took_us, seen, sum(part.messages for part in parts), errors))

    def _note(self, audit: Audit) -> None:
        """Keep an audit, count what is new in it, and tell of it."""
        with self._state.changed:
            before = self._latest.get(audit.place, Audit(audit.place, 0))
            known = {_same(d) for d in before.seen.deviations if d.outcome is not Outcome.REPAIRED}
            new = [d for d in audit.seen.deviations if _same(d) not in known]
            repaired = [d for d in audit.seen.deviations if d.outcome is Outcome.REPAIRED]
            self._latest[audit.place] = audit
            if any(d.shape in DRIFT for d in audit.seen.deviations):
                self._drifted[audit.place] = audit
            for tally, deviations in ((self._found, new), (self._repaired, repaired)):
                tally.update({(audit.place, *key): count for key, count in counts(deviations).items()})
            self._audits[audit.place] += 1
            self._messages[audit.place] += audit.messages
        self._tell(audit, before, new, len(repaired))

    def _tell(self, audit: Audit, before: Audit, new: list[Deviation], repaired: int) -> None:
        """Publish what is new: one event for each kind and shape, one for the repair, one for each alarm."""
        publish = self._state.events.publish
        for (kind, shape), count in counts(new).items():
            first = next(d for d in new if (d.kind, d.shape) == (kind, shape))
            level = "warning" if shape in (*DRIFT, Shape.SHADOWED) else "info"
            publish(
                "drift.found",
                level=level,
                place=audit.place,
                kind=kind,
                shape=shape,
                count=count,
                wanted=first.wanted,
                found=first.found,
            )
        if repaired:
            publish("drift.repaired", place=audit.place, count=repaired, messages=audit.messages, took_us=audit.took_us)
        for alarm in audit.alarms:
            if alarm not in before.alarms:
                publish("drift.alarm", level="error", place=audit.place, what=alarm)
        if before.alarms and not audit.alarms:
            publish("drift.alarm_over", place=audit.place)

    # ---- hosts ----

    def _hosts_audited(self) -> Part:
        """Return what hosts say they hold against what they confirmed; who differs is sent it again."""
        state, seen, sent = self._state, Compared(), 0
        with state.changed:
            for name, host in state.reported.hosts.items():
                one = _host_seen(name, host)
                if one.drift:
                    self._hosts.send(name, state.grant(name, host.sent_epoch, host.sent))
                    # What it says after this is what counts.
                    state.put_host(name, replace(state.reported.hosts[name], confirmed_us=state.now_us()))
                    sent += 1
                    one = one.settled(Outcome.REPAIRED)
                seen += one
            before = self._latest.get(HOSTS, Audit(HOSTS, 0))
        known = {_same(d) for d in before.seen.deviations}
        lasting = tuple(
            replace(d, outcome=Outcome.FAILED, todo=_TODO_HOST) if _same(d) in known else d for d in seen.deviations
        )
        return Part(Compared(seen.proper, lasting), sent)


def _host_seen(name: str, state: HostState) -> Compared:
    """Return what a host's telemetry says against what the host has confirmed; nothing if that is not settled yet."""
    told = state.telemetry
    if told is None or not state.connected or not state.sent_epoch or state.confirmed_epoch != state.sent_epoch:
        return Compared()
    if state.telemetry_us < state.confirmed_us + SETTLED_US:
        return Compared()
    wanted = {"": f"host {name}: epoch {state.confirmed_epoch}"}
    wanted |= {e.flow.name: f"host {name}: allocation {e.flow.name}" for e in state.leases.grants[-1].entries}
    found = {"": f"host {name}: epoch {told.epoch}"}
    found |= {e.name: f"host {name}: allocation {e.name}" for e in told.entries}
    return compared(Kind.HOST, wanted, found)


def _same(deviation: Deviation) -> tuple[Kind, Shape, str, str]:
    """Return what makes it the same deviation at the next audit."""
    return deviation.kind, deviation.shape, deviation.wanted, deviation.found
