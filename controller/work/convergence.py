"""The thread that carries the installed plan towards the desired one, step by confirmed step."""

from dataclasses import replace
from typing import Protocol

from controller.audit.runner import Audits
from controller.book import Book, StepDone
from controller.plan.invariant import violations
from controller.plan.plan import Plan
from controller.plan.transitions import (
    Change,
    InForce,
    Stage,
    Step,
    host_changes,
    next_of_first,
    next_step,
    switch_changes,
)
from controller.southbound.errors import SouthboundError
from topology.protocol import Allocations

RETRY_S = 1.0  # after a switch or its database has failed


class Switches(Protocol):
    """What is needed of the switches; blocking, raises SouthboundError."""

    def put_meters(self, plan: Plan, *, no_higher: bool = False) -> None:
        """Return once every switch has confirmed the plan's rules and meters; or meters that are lower already."""

    def put_queues(self, plan: Plan) -> None:
        """Return once every circuit port has the plan's queues."""


class HostSender(Protocol):
    """What is needed of the agents; returns at once."""

    def send(self, host: str, allocations: Allocations) -> None:
        """Send a host what it may do, if it is connected."""


class Convergence:
    """Carries out one step after the other; which is the next one follows from the book as it is then."""

    def __init__(self, book: Book, switches: Switches, hosts: HostSender, audits: Audits | None = None) -> None:
        self._book = book
        self._audits = audits
        self._switches = switches
        self._hosts = hosts
        self._sure = {Stage.QUEUES: -1, Stage.METERS: -1}  # the suspicion after which this layer was confirmed
        self._first: Step | None = None  # of the first plan, the step that was done last
        self._told: StepDone | None = None  # what hosts were told, and some have not confirmed
        self._drained_us = 0  # when growing may begin
        self._said = ""  # the failure that was logged last, while it lasts

    def run(self) -> None:
        """Work until the book says stop. Switches then keep forwarding as installed, and the hosts' leases run out."""
        book = self._book
        while True:
            with book.changed:
                while not book.stopping and self._next() is None and not self._audit_is_due():
                    book.changed.wait(self._patience_s())
                if book.stopping:
                    return
            if not self.step():
                self._wait_for_a_switch()

    def _wait_for_a_switch(self) -> None:
        """Return when a switch has come or gone, or when it is time to try again anyway."""
        book = self._book
        with book.changed:
            seen = book.suspicions
            book.changed.wait_for(lambda: book.stopping or book.suspicions != seen, timeout=RETRY_S)

    def step(self) -> bool:
        """Carry out what can be done now; return False if a layer failed, to be tried again."""
        if self._audits is not None:
            self._audits.next()
        while True:
            with self._book.changed:
                step = None if self._book.stopping else self._next()
                if step is not None and step.stage is Stage.HOSTS:
                    self._tell(step)
            if step is None:
                return True
            if step.stage is not Stage.HOSTS and not self._carried_out(step):
                return False

    def _patience_s(self) -> float:
        """Return how long nothing can be to do unless somebody says something, seconds; under the lock."""
        now_us, due_us = self._book.now_us(), self._book.lease_ends_us()
        due_us += [self._not_before_us()] if self._not_before_us() > now_us else []
        audit_s = [] if self._audits is None else [self._audits.wait_s()]
        return min([RETRY_S, *audit_s, *((at_us - now_us) / 1e6 for at_us in due_us)])

    def _audit_is_due(self) -> bool:
        """Return whether a switch, or the hosts, are to be audited now; under the lock."""
        return self._audits is not None and self._audits.is_due()

    def _next(self) -> Step | None:
        """Return what is to do now, None if there is nothing, or somebody is waited for; under the lock.

        What switches may have lost is put back before anything is changed.
        """
        book, installed = self._book, self._book.installed
        if installed.meters is None or installed.queues is None:
            return next_of_first(self._first, book.desired)
        if self._sure[Stage.METERS] != book.suspicions:  # first: a switch that has lost its rules forwards nothing
            return Step(Stage.METERS, installed.meters)
        if self._sure[Stage.QUEUES] != book.suspicions:
            return Step(Stage.QUEUES, installed.queues)
        acting = book.acting()
        step = next_step(InForce(installed.meters, installed.queues, acting), book.desired)
        if step.stage is not Stage.HOSTS:
            self._note_hosts()
            return step if book.now_us() >= self._not_before_us() else None
        if self._to_tell(step.plan) or (step.plan is book.desired and installed.hosts_epoch != step.plan.epoch):
            return step
        return None

    def _not_before_us(self) -> int:
        """Return from when on switches may be told of the plan that is wanted; under the lock."""
        return max(self._drained_us, self._book.desired_us + self._book.site.together_us)

    def _carried_out(self, step: Step) -> bool:
        """Carry out a step of the switches; return False if it failed (logged, and kept in the book)."""
        with self._book.changed:
            suspicion, installed = self._book.suspicions, self._book.installed
            old = installed.meters if step.stage is Stage.METERS else installed.queues
        changes = switch_changes(step.stage, old, step.plan) if old else ()
        started_us, error = self._book.now_us(), ""
        try:
            if step.stage is Stage.METERS:
                self._switches.put_meters(step.plan, no_higher=step.no_higher)
            else:
                self._switches.put_queues(step.plan)
        except SouthboundError as failure:
            error = f"{type(failure).__name__}: {failure}"
        done = StepDone(step.plan.epoch, step.stage, started_us, self._book.now_us(), error, changes)
        with self._book.changed:
            self._note_switches(step, suspicion, done)
        return not error

    def _note_switches(self, step: Step, suspicion: int, done: StepDone) -> None:
        """Write down what switches have confirmed, or that they may hold anything now; under the lock."""
        if done.error:
            self._book.suspicions += 1
            self._first = None
            self._book.installed.steps.append(done)
            if done.error != self._said:  # it is tried again each second; one line is enough for the night
                self._book.events.publish(
                    "transition.failed", level="error", epoch=done.epoch, place=done.stage.value, error=done.error
                )
            self._said = done.error
            return
        self._said, self._sure[step.stage], self._first = "", suspicion, step
        if step.no_higher:
            pass  # what they hold is known only when the plan is in them
        elif step.stage is Stage.METERS:
            self._book.installed.meters = step.plan
        else:
            self._book.installed.queues = step.plan
        self._note(done)

    def _note(self, done: StepDone) -> None:
        """Write a step into the book, and check the invariant; under the lock."""
        self._book.installed.steps.append(done)
        self._book.events.publish(
            "transition.step", epoch=done.epoch, place=done.stage.value, us=done.done_us - done.started_us
        )
        for violation in violations(self._book.layers()):
            self._book.events.publish("plan.violated", level="error", violation=str(violation))

    def _to_tell(self, plan: Plan) -> list[str]:
        """Return the connected hosts that act, or are about to, on something else than a plan; under the lock.

        One that has stepped down under this very epoch has been told.
        """
        return [
            name
            for name, state in self._book.hosts.items()
            if state.connected and state.sent_epoch != plan.epoch and state.acts_as_told != plan.of_host(name)
        ]

    def _tell(self, step: Step) -> None:
        """Send each host whose allocations differ what it may do; under the lock.

        Who gains most comes first: the circuit is idle until it knows. To have sent more is to be done; less counts
        only when it is confirmed. A host that does not answer holds what is next up until its lease is over, and no
        longer.
        """
        book, plan, now_us = self._book, step.plan, self._book.now_us()
        by_host = {
            name: host_changes(name, book.hosts[name].acts_as_told, plan.of_host(name)) for name in self._to_tell(plan)
        }
        changes: list[Change] = []
        for name in sorted(by_host, key=lambda n: sum(c.from_bps - c.to_bps for c in by_host[n])):
            changes += by_host[name]
            self._hosts.send(name, book.sending(name, plan.epoch, plan.of_host(name)))
        if self._told is not None and self._told.epoch == plan.epoch:
            self._told = replace(self._told, changes=(*self._told.changes, *changes))
        else:
            self._told = StepDone(plan.epoch, step.stage, now_us, now_us, changes=tuple(changes))
        book.installed.hosts_epoch = plan.epoch
        if plan is book.desired:
            self._note_hosts()

    def _note_hosts(self) -> None:
        """Note that no host may be acting on more than it was told any more; under the lock."""
        if self._told is not None:
            now_us = self._book.now_us()
            if any(change.to_bps < change.from_bps for change in self._told.changes):
                self._drained_us = now_us + self._book.site.drain_us
            self._note(replace(self._told, done_us=now_us))
            self._told = None
