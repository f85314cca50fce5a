"""What is in force: what each layer has confirmed, and how that came about."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from controller.plan.faults import Closed, Faults, PlaceFault, closed
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
        faults: by place, what cannot be changed now; it holds what it held.
    """

    queues: Plan | None = None
    meters: Plan | None = None
    hosts_epoch: int = 0
    steps: tuple[StepDone, ...] = ()
    faults: Faults = field(default_factory=dict)

    @property
    def error(self) -> str:
        """What cannot be changed now, and why; empty if nothing."""
        faults = "; ".join(str(fault) for fault in self.faults.values())
        return faults or (self.steps[-1].error if self.steps and self.in_force is None else "")

    @property
    def in_force(self) -> tuple[Plan, Plan] | None:
        """The plan whose rules and meters are in force, and the one whose queues are; None before the first."""
        return None if self.meters is None or self.queues is None else (self.meters, self.queues)

    @property
    def closed(self) -> Closed:
        """Where nothing is to be changed now."""
        return closed(self.faults.values())

    def is_at_rest(self, epoch: int) -> bool:
        """Return whether all layers hold the plan of an epoch; queues that it leaves as they were keep an older one."""
        if self.meters is None or self.queues is None:
            return False
        return epoch == self.meters.epoch == self.hosts_epoch

    def closed_by(self, place: str) -> bool:
        """Return whether a place cannot be changed now."""
        return place in self.faults and not self.faults[place].is_back

    def with_faults(self, faults: Iterable[PlaceFault]) -> "Installed":
        """Return it with more faults, or with others in the places of those it has."""
        return replace(self, faults={**self.faults, **{fault.place: fault for fault in faults}})

    def without_faults(self, places: Iterable[str]) -> "Installed":
        """Return it after some places do what they are told again."""
        over = set(places)
        return replace(self, faults={place: fault for place, fault in self.faults.items() if place not in over})

    def after(self, step: StepDone) -> "Installed":
        """Return it with one more step in its history."""
        return replace(self, steps=(*self.steps, step)[-HISTORY_STEPS:])

    def with_plan(self, stage: Stage, plan: Plan) -> "Installed":
        """Return it after the switches have confirmed a plan at a stage."""
        return replace(self, meters=plan) if stage is Stage.METERS else replace(self, queues=plan)
