"""The thread that acts on time: holds that lapse, reservations that begin and end, circuits that change."""

from dataclasses import replace

from controller.plan.wiring import CLAIM_US
from controller.promise_watch import PromiseWatch
from controller.start_bursts import StartBurstWatch
from controller.state.carried import SettledWatch
from controller.state.desired import circuits_down, desired_plan, hosts_absent, plan_input
from controller.state.guard import GuardedState
from controller.state.moment import Moment
from controller.state.value import must_prepare
from controller.use_cases import UseCases
from controller.work.clock_watch import ClockWatch

IDLE_US = 1_000_000  # how long a failure of the database, or of an agent, may wait to be noticed
SOONEST_US = 1_000
RESTS = 3  # times as long as a step has taken hosts that come or go are waited for: they share the next plan


def prepare(state: GuardedState) -> None:
    """Make the plan for the death of each circuit, so that nothing is left to think about when one dies."""
    with state.changed:
        site, now, at = state.site, state.value, state.now()
        if not must_prepare(site, now):
            return
        basis, epoch = now.desired.basis, now.desired.plan.epoch
        down = circuits_down(site, now.wished, now.reported, at)
        installed, before, absent = (
            now.installed,
            now.desired.plan.workings,
            hosts_absent(site, now.reported, at.elapsed_us),
        )
        inputs = {
            circuit: plan_input(site, now.wished, now.reported, down | {circuit}, at.calendar_us, absent)
            for circuit in sorted(site.redundant - down)
        }
    plans = {
        circuit: replace(desired_plan(site, installed, epoch, one, before), workings=None)
        for circuit, one in inputs.items()
    }
    with state.changed:
        if basis == state.desired.basis:
            state.put(desired=replace(state.desired, prepared=plans, prepared_for=basis))


class Timekeeper:
    """Lets the promises act when something is due, and whenever something has changed."""

    def __init__(self, state: GuardedState, use_cases: UseCases, clocks: ClockWatch) -> None:
        self._state = state
        self._clocks = clocks
        self._use_cases = use_cases
        self._bursts = StartBurstWatch(state)
        self._bursts_due_us = 0
        self._promises = PromiseWatch(state)
        self._settled = SettledWatch()

    def run(self) -> None:
        """Work until the state says stop."""
        state = self._state
        while True:
            began_us = state.elapsed_us()
            self.step()
            with state.changed:
                elapsed_us = state.elapsed_us()
                until_us = max(elapsed_us + SOONEST_US, min(elapsed_us + IDLE_US, state.due_us()))
                state.sleep_until(until_us)
                rested_us = min(until_us, elapsed_us + RESTS * (elapsed_us - began_us))
                state.changed.wait_for(self._cannot_rest, timeout=(rested_us - elapsed_us) / 1e6)
                state.changed.wait_for(self._woken, timeout=(until_us - state.elapsed_us()) / 1e6)
                if state.stopping:
                    return

    def _cannot_rest(self) -> bool:
        """Return whether there is something to do that does not wait for more hosts to come; under the lock."""
        state = self._state
        return state.stopping or state.due_us() < state.value.sleeping_until_us or state.must_replan_at_once()

    def _woken(self) -> bool:
        """Return whether there is something to do before the time; under the lock."""
        state, now = self._state, self._state.value
        is_due = state.due_us() < now.sleeping_until_us
        must_plan = state.must_replan() or must_prepare(state.site, now)
        is_behind = must_plan or self._promises.is_behind
        return now.stopping or is_due or is_behind or self._settled.unsettled(Moment(state.site, now, state.now()))

    def step(self) -> None:
        """Act once. Then look whether a start still fits the buffers."""
        self._clocks.look()
        self._use_cases.tick()
        prepare(self._state)
        self._look_at_bursts()
        self._promises.look()
        self._forget_claims()

    def _look_at_bursts(self) -> None:
        """Look whether a start fits the buffers. That is at all ports: once a second is enough, and after a change."""
        with self._state.changed:
            elapsed_us = self._state.elapsed_us()
            is_at_rest = self._state.installed.is_at_rest(self._state.desired.plan.epoch)
        if is_at_rest and elapsed_us >= self._bursts_due_us:
            self._bursts_due_us = elapsed_us + IDLE_US
            self._bursts.look()

    def _forget_claims(self) -> None:
        """Say of a datapath id that was claimed twice that it is not any more."""
        state = self._state
        with state.changed:
            reported = state.reported
            wiring, over = reported.wiring.without_claims_before(state.elapsed_us() - CLAIM_US)
            if over:
                state.put(reported=replace(reported, wiring=wiring))
        for dpid in over:
            state.events.publish("switch.claim_over", dpid=f"{dpid:016x}")
