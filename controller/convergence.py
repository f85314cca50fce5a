"""The thread that carries the installed plan towards the desired one, step by confirmed step."""

from collections.abc import Iterable
from typing import Protocol

from controller.book import Book, StepDone
from controller.plan.invariant import violations
from controller.plan.plan import Plan
from controller.plan.transitions import Place, Step, installation, transition
from controller.southbound.errors import SouthboundError
from topology.protocol import Allocations

RETRY_S = 1.0  # after a switch or its database has failed


class Switches(Protocol):
    """What is needed of the switches; blocking, raises SouthboundError."""

    def put_meters(self, plan: Plan) -> None:
        """Return once every connected switch has confirmed the plan's rules and meters."""

    def put_queues(self, plan: Plan) -> None:
        """Return once every circuit port has the plan's queues."""


class Hosts(Protocol):
    """What is needed of the agents; returns at once."""

    def send(self, host: str, allocations: Allocations) -> None:
        """Send a host what it may do, if it is connected."""


class Convergence:
    """Carries out transitions, one at a time; a change in the middle waits for the next."""

    def __init__(self, book: Book, switches: Switches, hosts: Hosts) -> None:
        self._book = book
        self._switches = switches
        self._hosts = hosts
        self._said = ""  # the failure that was logged last, while it lasts

    def run(self) -> None:
        """Work until the book says stop. Switches then keep forwarding as installed, and the hosts' leases run out."""
        book = self._book
        while True:
            with book.changed:
                book.changed.wait_for(lambda: book.stopping or self._work_to_do(), timeout=RETRY_S)
                if book.stopping:
                    return
            if not self.step():
                with book.changed:
                    book.changed.wait_for(lambda: book.stopping, timeout=RETRY_S)

    def step(self) -> bool:
        """Carry out what is to do now; return False if a layer failed, which is then to be tried again."""
        book = self._book
        with book.changed:
            if not self._work_to_do():
                return True
            steps, book.switches_suspect = self._steps(), False
        done = all(self._carried_out(step) for step in steps)
        if done:
            self._said = ""
        else:
            with book.changed:
                book.switches_suspect = True
        return done

    def _work_to_do(self) -> bool:
        """Return whether a layer is not as desired; a host may have come between two steps."""
        book = self._book
        return (
            book.switches_suspect
            or book.installed.hosts_epoch != book.desired.epoch
            or any(s.connected and s.sent != book.desired.of_host(name) for name, s in book.hosts.items())
        )

    def _steps(self) -> tuple[Step, ...]:
        """Return the steps still to do; the same plan once more only puts right what a switch has lost."""
        old, new = self._book.installed.meters, self._book.desired
        if old is None or old.epoch == new.epoch:
            return installation(new)
        return transition(old, new)

    def _carried_out(self, step: Step) -> bool:
        """Carry out one step; return False if it failed (logged, and kept in the book)."""
        started_us = self._book.now_us()
        error = ""
        try:
            if step.place is Place.HOSTS:
                self._put_hosts(step.plan)
            elif step.place is Place.METERS:
                self._switches.put_meters(step.plan)
            else:
                self._switches.put_queues(step.plan)
        except SouthboundError as failure:
            error = f"{type(failure).__name__}: {failure}"
        with self._book.changed:
            self._note(step, StepDone(step.plan.epoch, step.place, started_us, self._book.now_us(), error))
        return not error

    def _note(self, step: Step, done: StepDone) -> None:
        """Write a step into the book, and check the invariant."""
        installed = self._book.installed
        installed.steps.append(done)
        if done.error:
            if done.error != self._said:  # it is tried again each second; one line is enough for the night
                self._book.events.publish(
                    "transition.failed", level="error", epoch=done.epoch, place=done.place.value, error=done.error
                )
            self._said = done.error
            return
        if step.place is Place.METERS:
            installed.meters = step.plan
        elif step.place is Place.QUEUES:
            installed.queues = step.plan
        else:
            installed.hosts_epoch = step.plan.epoch
        self._book.events.publish(
            "transition.step", epoch=done.epoch, place=done.place.value, us=done.done_us - done.started_us
        )
        for violation in violations(self._book.layers()):
            self._book.events.publish("plan.violated", level="error", violation=str(violation))

    def _put_hosts(self, plan: Plan) -> None:
        """Send each host whose allocations differ what it may do; return when none may be acting on more.

        A host that does not answer holds the step up until its lease is over, and no longer.
        """
        book = self._book
        with book.changed:
            for name, state in book.hosts.items():
                entries = plan.of_host(name)
                if state.connected and entries != state.sent:
                    self._hosts.send(name, book.sending(name, plan.epoch, entries))
            book.changed.wait_for(
                lambda: book.stopping or self._within(plan, book.hosts), timeout=book.site.lease_ms / 1000
            )

    def _within(self, plan: Plan, hosts: Iterable[str]) -> bool:
        """Return whether no host may be acting on more than the plan gives it."""
        allowed = {e.flow.name: e.frame_bps for e in plan.entries}
        return all(e.frame_bps <= allowed.get(e.flow.name, 0) for name in hosts for e in self._book.acting_on(name))
