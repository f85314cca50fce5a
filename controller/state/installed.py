"""What is in force: what each layer has confirmed, and how that came about."""

from dataclasses import dataclass, replace

from controller.plan.plan import Plan
from controller.plan.transitions import Change, Stage

HISTORY_STEPS = 1_000


@dataclass(frozen=True, slots=True)
class StepDone:
    """One step of a transition, as it happened; times in Unix microseconds."""

    epoch: int
    stage: Stage
    started_us: int
    done_us: int
    error: str = ""
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Installed:
    """What each layer has confirmed.

    Attributes:
        queues: the plan whose queues are in force.
        meters: the plan whose rules and meters are in force.
        hosts_epoch: the plan whose allocations every connected host has been sent.
        steps: how it came about, oldest first.
    """

    queues: Plan | None = None
    meters: Plan | None = None
    hosts_epoch: int = 0
    steps: tuple[StepDone, ...] = ()

    @property
    def error(self) -> str:
        """Why the last step failed; empty if it did not."""
        return self.steps[-1].error if self.steps else ""

    def is_at_rest(self, epoch: int) -> bool:
        """Return whether all layers hold the plan of an epoch; queues that it leaves as they were keep an older one."""
        if self.meters is None or self.queues is None:
            return False
        return epoch == self.meters.epoch == self.hosts_epoch

    def after(self, step: StepDone) -> "Installed":
        """Return it with one more step in its history."""
        return replace(self, steps=(*self.steps, step)[-HISTORY_STEPS:])

    def with_plan(self, stage: Stage, plan: Plan) -> "Installed":
        """Return it after the switches have confirmed a plan at a stage."""
        return replace(self, meters=plan) if stage is Stage.METERS else replace(self, queues=plan)
