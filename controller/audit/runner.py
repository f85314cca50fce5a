"""The thread ``audit``: compares each switch, and all hosts, with what they should hold, and repairs what has drifted.

It takes turns with the convergence, by one lock round all writes to switches and their databases, ``writing``. The
convergence holds it from before a step's first message until the step is in the state; an audit from before it reads
which plans are in force until its repair is confirmed. So

1. when an audit begins, no step is half done: what is in force is what the switches were brought to last;
2. while it compares and repairs, no step is sent: what it puts back is what is in force;
3. a step that is decided meanwhile is sent after it, and is what the switches are left with.

A repair therefore never undoes a step of a transition. An audit begins only while all layers hold the desired plan; a
transition waits for one place to answer at most, and once for a database that does not: that is a fault then, which is
tried again without ``writing``. A switch that has come back is compared first, so that what it has lost is known, and
the convergence then puts back what it still lacks, before anything else is changed.

Order of locks: ``writing`` first, then the state's.
"""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce
from typing import Protocol

from controller.audit.drift import Audit, Compared, DriftKind, Outcome
from controller.audit.hosts import host_compared
from controller.audit.record import AuditRecord, DriftView
from controller.audit.switches import Part
from controller.plan.faults import Closed
from controller.plan.plan import Plan
from controller.state.faults import note_failed
from controller.state.guard import GuardedState
from controller.state.reported import PlaceAlarm
from topology.network import Switch
from topology.protocol import Allocations

HOSTS = "hosts"  # the place that all hosts are audited as
INTERVAL_S = 10.0
SHORTEST_WAIT_S = 0.05
LOOK_AGAIN_S = 1.0
_TODO_HOST = "it was sent its allocations again and does not hold them; start its agent anew"


class SwitchAuditor(Protocol):
    """What is needed of the switches; blocking."""

    def audited(self, switch: Switch, meters: Plan, queues: Plan, shut: Closed) -> tuple[Part, ...]:
        """Return what was found and repaired on a switch that should hold these plans; what is closed is left."""


class GrantSender(Protocol):
    """What is needed of the agents; returns at once."""

    def send(self, host: str, allocations: Allocations) -> None:
        """Send a host what it may do, if it is connected."""


class AuditRunner:
    """Audits each place at its time."""

    def __init__(
        self,
        state: GuardedState,
        switches: SwitchAuditor,
        hosts: GrantSender,
        writing: threading.Lock,
        interval_s: float = INTERVAL_S,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._state = state
        self._switches = switches
        self._hosts = hosts
        self._writing = writing
        self._interval_s = interval_s
        self._now_s = now_s
        self._by_name = {s.name: s for s in state.site.network.switches}
        self._due_s = dict.fromkeys((*self._by_name, HOSTS), now_s() + interval_s)
        self._record = AuditRecord(state.events)

    def view(self) -> DriftView:
        """Return what audits have found so far; any thread may ask."""
        return self._record.view(self._interval_s)

    def run(self) -> None:
        """Audit until the state says stop; a controller that has stood by until now begins as one that starts."""
        state = self._state
        self._due_s = dict.fromkeys(self._due_s, self._now_s() + self._interval_s)
        while True:
            with state.changed:
                while not state.stopping and not self.is_due():
                    state.changed.wait(self._wait_s())
                if state.stopping:
                    return
            self.next()

    def is_due(self) -> bool:
        """Return whether a place is to be audited now, and can be; under the lock."""
        state = self._state
        due = bool(state.reported.switches_back) or min(self._due_s.values()) <= self._now_s()
        return due and self._is_at_rest()

    def _is_at_rest(self) -> bool:
        """Return whether all layers hold the desired plan; under the lock."""
        return self._state.installed.is_at_rest(self._state.desired.plan.epoch)

    def _wait_s(self) -> float:
        """Return how long nothing can be to do unless somebody says something, seconds; under the lock."""
        if not self._is_at_rest():
            return LOOK_AGAIN_S  # the convergence says when there is rest again
        return max(SHORTEST_WAIT_S, min(self._due_s.values()) - self._now_s())

    def next(self) -> None:
        """Audit the place that is due longest, if one is, and no transition is under way or wanted."""
        with self._writing:
            with self._state.changed:
                place = self._due_place() if self._is_at_rest() else None
                installed = self._state.installed
            if place is not None and installed.meters is not None and installed.queues is not None:
                self._audit(place, installed.meters, installed.queues, installed.closed)

    def _due_place(self) -> str | None:
        """Return a switch that is back, or the place due longest, and note when it is due again; under the lock.

        A switch that is back goes an interval before its time, so one that comes back again and again lets others pass.
        """
        state, now_s = self._state, self._now_s()
        back = {s.name: s.dpid for s in self._by_name.values() if s.dpid in state.reported.switches_back}
        place = min(self._due_s, key=lambda name: self._due_s[name] - self._interval_s * (name in back))
        if state.reported.switches_back:
            left = frozenset(dpid for name, dpid in back.items() if name != place)
            state.put(reported=replace(state.reported, switches_back=left))
            state.changed.notify_all()  # who waits for switches to be compared first waits for ``writing`` now
        if place not in back and self._due_s[place] > now_s:
            return None
        self._due_s[place] = now_s + self._interval_s
        return place

    def _audit(self, place: str, meters: Plan, queues: Plan, shut: Closed) -> None:
        """Compare and repair a place, and keep what came of it."""
        began_us, began_s = self._state.now_us(), time.monotonic()
        if place == HOSTS:
            parts: tuple[Part, ...] = (self._hosts_audited(),)
        else:
            parts = self._switches.audited(self._by_name[place], meters, queues, shut)
        with self._state.changed:
            if self._state.stopping:  # what it could not reach may obey another controller by now
                return
            note_failed(self._state, [part.fault for part in parts if part.fault is not None])
        seen = reduce(Compared.__add__, (part.seen for part in parts), Compared())
        seen += self._still_there(place, parts, seen)
        errors = tuple(dict.fromkeys(part.error for part in parts if part.error))
        took_us = int((time.monotonic() - began_s) * 1e6)
        audit = Audit(place, began_us, took_us, seen, sum(part.messages for part in parts), errors)
        # Where nobody looked, what kept us from it before does so still; that place has a fault, which everybody sees.
        known = self._record.latest(place).errors if place in shut.switches else ()
        self._record.note(replace(audit, errors=tuple(dict.fromkeys((*errors, *known)))))
        self._raise(audit)

    def _still_there(self, place: str, parts: Iterable[Part], seen: Compared) -> Compared:
        """Return what waited for a person before and could not be looked at now: it does so still."""
        unseen, again = frozenset().union(*(part.unseen for part in parts)), {d.identity for d in seen.deviations}
        waited = (d for d in self._record.latest(place).seen.deviations if d.todo and d.identity not in again)
        return Compared(deviations=tuple(d for d in waited if (d.kind, d.port_name) in unseen))

    def _raise(self, audit: Audit) -> None:
        """Let everybody see what waits for a person: what is at a port is not carried there.

        The ports themselves are watched all the time, not only by audits, and whoever needs them is told by that.
        """
        left = (d for d in audit.seen.deviations if d.todo and d.kind is not DriftKind.PORT)
        alarms = tuple(PlaceAlarm(d.alarm, d.port_name) for d in left)
        found = (*alarms, *(PlaceAlarm(error, is_silent=True) for error in audit.errors))
        with self._state.changed:
            reported = self._state.reported
            if reported.alarms.get(audit.place, ()) != found:
                self._state.put(reported=replace(reported, alarms={**reported.alarms, audit.place: found}))
                self._state.changed.notify_all()

    def _hosts_audited(self) -> Part:
        """Return what hosts say they hold against what they confirmed; who differs is sent it again."""
        with self._state.changed:
            hosts = self._state.reported.hosts  # a value: it is looked at without the lock
        seen, sent = Compared(), 0
        for name, host in hosts.items():
            one = host_compared(name, host)
            if one.drift:
                if not self._sent_again(name, host.sent_epoch):
                    continue
                sent += 1
                one = one.settled(Outcome.REPAIRED)
            seen += one
        known = {d.identity for d in self._record.latest(HOSTS).seen.deviations}
        lasting = tuple(
            replace(d, outcome=Outcome.FAILED, todo=_TODO_HOST) if d.identity in known else d for d in seen.deviations
        )
        return Part(Compared(seen.proper, lasting), sent)

    def _sent_again(self, name: str, epoch: int) -> bool:
        """Send a host once more what it was sent last; return False if it has gone, or that is of another epoch by now.

        The lease of one that has gone runs out: to write down that it was sent something would renew it for good.
        """
        state = self._state
        with state.changed:
            known = state.reported.hosts[name]
            if not known.connected or known.sent_epoch != epoch:
                return False
            self._hosts.send(name, state.grant(name, epoch, known.sent))
            # What it says after this is what counts.
            state.put_host(name, state.reported.hosts[name]._replace(confirmed_us=state.elapsed_us()))
            return True
