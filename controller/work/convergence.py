"""The thread that carries the installed plan towards the desired one, step by confirmed step."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Protocol

from controller.plan.faults import Closed, PlaceFault, closed, partly
from controller.plan.plan import Plan
from controller.plan.transitions import Change, Stage, Step, host_changes, switch_changes
from controller.state.faults import note_failed, note_mended
from controller.state.guard import GuardedState
from controller.state.installed import Installed, StepDone
from controller.state.layers import UNKNOWN, link_layers
from controller.work.kept import KeptLooks
from controller.work.next_work import Other, Progress, Situation, next_work
from topology.protocol import Allocations

RETRY_S = 1.0  # after a switch or its database has failed
RESTS = 1  # times as long as a look that has found nothing has taken; of CPU time, so that other load does not count


class Switches(Protocol):
    """What is needed of the switches; blocking. Both leave what is closed as it is, and return what failed."""

    def put_meters(self, plan: Plan, shut: Closed, *, no_higher: bool = False) -> tuple[PlaceFault, ...]:
        """Return once every switch has confirmed the plan's rules and meters; or meters that are lower already."""

    def put_queues(self, plan: Plan, shut: Closed, *, in_doubt: bool = False) -> tuple[PlaceFault, ...]:
        """Return once every circuit port has the plan's queues; also if it had, and may have lost them."""


class HostSender(Protocol):
    """What is needed of the agents; returns at once."""

    def send(self, host: str, allocations: Allocations) -> None:
        """Send a host what it may do, if it is connected."""


@dataclass(frozen=True, slots=True)
class Before:
    """What was known when a step began: the number of the doubt, and what was in force."""

    doubts: int
    installed: Installed


class Convergence:
    """Carries out one step after the other; which is the next one follows from the state as it is then."""

    def __init__(
        self,
        state: GuardedState,
        switches: Switches,
        hosts: HostSender,
        writing: threading.Lock,
        may_decide: Callable[[], bool] = lambda: True,
    ) -> None:
        """Begin with no plan in force.

        Args:
            state: where plans are wished, and noted when they are in force.
            switches: where they are carried to.
            hosts: likewise.
            writing: held for each step, from its choice until it is noted; the audit holds it for each of its own.
            may_decide: looked at before each step; of a pair, whether we lead. While not, what is in force stays so.
        """
        self._may_decide = may_decide
        self._state = state
        self._writing = writing
        self._switches = switches
        self._hosts = hosts
        self._progress = Progress()
        self._kept = KeptLooks()
        self._layers = UNKNOWN
        self._patience_s = RETRY_S  # for which nothing can be to do, unless somebody says something

    def run(self) -> None:
        """Work until the state says stop. Switches then keep forwarding as installed, and the hosts' leases run out."""
        state = self._state
        while True:
            with state.changed:
                while not state.stopping and not self._has_work():
                    state.changed.wait(self._patience_s)
                if state.stopping:
                    return
            if not self.step():
                self._wait_for_a_switch()

    def _has_work(self) -> bool:
        """Return whether there is something to do; under the lock.

        After a look that has found nothing it rests as long as that took: of hosts that confirm one after
        the other not each is looked at. What has changed meanwhile is looked at then.
        """
        state = self._state
        while not state.stopping:
            began_s = time.thread_time()
            if self._next() is not None:
                return True
            seen = state.value
            rest_s = min(self._patience_s, RESTS * (time.thread_time() - began_s))
            state.halted.wait(rest_s)
            self._patience_s -= rest_s
            if state.value is seen and self._patience_s > 0:
                return False
        return False

    def _wait_for_a_switch(self) -> None:
        """Return when a switch has come or gone, or when it is time to try again anyway."""
        state = self._state
        with state.changed:
            seen = state.reported.doubts
            state.changed.wait_for(lambda: state.stopping or state.reported.doubts != seen, timeout=RETRY_S)

    def step(self) -> bool:
        """Carry out what can be done now; return False if the first plan waits for a switch, to be tried again."""
        while True:
            with self._writing:  # from the choice until it is noted: an audit between them would find a step half done
                with self._state.changed:
                    step = None if self._state.stopping else self._next()
                    if step is not None and not self._may_decide():
                        return False
                    if step is not None and step.stage is Stage.HOSTS:
                        self._grant(step)
                if step is None:
                    return True
                if step.stage is not Stage.HOSTS and not self._carried_out(step):
                    return False

    def _situation(self) -> Situation:
        """Return all that the next work follows from; under the lock."""
        now, site = self._state.value, self._state.site
        progress, elapsed_us = self._progress, self._state.elapsed_us()
        return Situation(now.reported, now.installed, now.desired, progress, site.together_us, elapsed_us, self._kept)

    def _next(self) -> Step | None:
        """Return the step to take now, None if there is nothing to do, or somebody is waited for; under the lock.

        For how long there is nothing follows from the same moment: what falls due while one looks is not overlooked.
        """
        while (work := next_work(situation := self._situation())) is Other.NOTE_HOSTS:
            self._note_hosts()
        self._patience_s = min([RETRY_S, *(due_us / 1e6 for due_us in situation.due_in_us)])
        return work if isinstance(work, Step) else None

    def _carried_out(self, step: Step) -> bool:
        """Carry out a step of the switches, where they can be changed; return False if it is all to be tried again."""
        state = self._state
        with state.changed:
            before = Before(state.reported.doubts, state.installed)
        installed = before.installed
        old = installed.meters if step.stage is Stage.METERS else installed.queues
        changes = switch_changes(step.stage, old, step.plan) if old else ()
        started_us = state.now_us()
        if step.stage is Stage.METERS:
            failed = self._switches.put_meters(step.plan, installed.closed, no_higher=step.no_higher)
        else:
            in_doubt = self._progress.sure.get(step.stage) != before.doubts
            failed = self._switches.put_queues(step.plan, installed.closed, in_doubt=in_doubt)
        error = "; ".join(str(fault) for fault in failed)
        done = StepDone(step.plan.epoch, step.stage, started_us, state.now_us(), error, changes)
        with state.changed:
            if installed.in_force is None and any(fault.is_gone for fault in failed) and self._is_starting():
                self._note_wait(done)
                return False
            self._note_switches(step, before, done, failed)
        return True

    def _is_starting(self) -> bool:
        """Return whether hosts may still go on as another controller granted; under the lock.

        So long the first plan waits for switches: without one it has nothing for the hosts behind it.
        """
        state = self._state
        return state.elapsed_us() < state.value.started_us + state.site.lease_ms * 1000

    def _note_wait(self, done: StepDone) -> None:
        """Write down that the first plan waits for switches; under the lock.

        Of one that does not call in time more is said: it is a fault then.
        """
        state = self._state
        if state.stopping:
            return
        reported = replace(state.reported, doubts=state.reported.doubts + 1)
        said = state.installed.steps[-1].error if state.installed.steps else ""
        state.put(reported=reported, installed=state.installed.after(done))
        self._progress = replace(self._progress, first=None)
        if done.error != said:  # it is tried again each second; one line is enough
            state.events.publish("transition.waits", epoch=done.epoch, place=done.stage.value, why=done.error)

    def _note_switches(self, step: Step, before: Before, done: StepDone, failed: tuple[PlaceFault, ...]) -> None:
        """Write down what switches have confirmed, and which could not; under the lock."""
        state, now = self._state, self._state.installed
        failed += tuple(f for f in now.faults.values() if not f.is_back and not before.installed.closed_by(f.place))
        self._progress = replace(self._progress, sure={**self._progress.sure, step.stage: before.doubts}, first=step)
        if not step.no_higher:  # after such a step, what they hold is known only when the plan is in them
            old = now.meters if step.stage is Stage.METERS else now.queues
            sure = partly(state.site.network, old, step.plan, closed(failed))
            state.put(installed=now.with_plan(step.stage, sure))
        self._note(done)
        note_failed(state, failed)
        if all(self._progress.sure.get(stage) == state.reported.doubts for stage in (Stage.METERS, Stage.QUEUES)):
            note_mended(state)

    def _note(self, done: StepDone) -> None:
        """Write a step into the history, and check the invariant; under the lock."""
        state = self._state
        state.put(installed=state.installed.after(done))
        state.events.publish(
            "transition.step", epoch=done.epoch, place=done.stage.value, us=done.done_us - done.started_us
        )
        acts = self._kept.acts(state.reported, state.installed.meters, state.elapsed_us())
        self._layers = link_layers(state.site, state.value, state.elapsed_us(), acts, self._layers)
        for violation in chain.from_iterable(self._layers.violations.values()):
            state.events.publish("plan.violated", level="error", violation=str(violation))

    def _grant(self, step: Step) -> None:
        """Send each host whose allocations differ what it may do; under the lock.

        Who gains most comes first: the circuit is idle until it knows. To have sent more is to be done; less counts
        only when it is confirmed. A host that does not answer holds what is next up until its lease is over, and no
        longer.
        """
        state, plan, now_us = self._state, step.plan, self._state.now_us()
        hosts = state.reported.hosts
        names = self._situation().to_grant(plan)
        by_host = {name: host_changes(name, hosts[name].acts_as_granted, plan.of_host(name)) for name in names}
        names.sort(key=lambda n: sum(c.from_bps - c.to_bps for c in by_host[n]))
        changes: list[Change] = [change for name in names for change in by_host[name]]
        for name, allocations in state.grants(plan.epoch, {name: plan.of_host(name) for name in names}).items():
            self._hosts.send(name, allocations)
        before = self._progress.granted
        if before is not None and before.epoch == plan.epoch:
            granted = replace(before, changes=(*before.changes, *changes))
        else:
            granted = StepDone(plan.epoch, step.stage, now_us, now_us, changes=tuple(changes))
        self._progress = replace(self._progress, granted=granted)
        if plan is state.desired.plan or state.installed.hosts_epoch:  # of the first plan, no step on the way counts
            state.put(installed=replace(state.installed, hosts_epoch=plan.epoch))
        if plan is state.desired.plan:
            self._note_hosts()
            state.changed.notify_all()  # the audit has waited for rest

    def _note_hosts(self) -> None:
        """Note that no host may be acting on more than it was granted any more; under the lock."""
        granted, now_us = self._progress.granted, self._state.now_us()
        if granted is None:
            return
        self._progress = replace(self._progress, granted=None)
        self._note(replace(granted, done_us=now_us))
