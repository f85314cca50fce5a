"""What the convergence does next, as a table: read from the top, the first row that applies decides. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from itertools import chain

from controller.plan.plan import Plan
from controller.plan.transitions import InForce, Stage, Step, next_of_first, next_step, no_more_than
from controller.state.acts import Acts
from controller.state.desired import Desired
from controller.state.installed import Installed, StepDone
from controller.state.reported import Reported
from controller.work.kept import KeptLooks


class Other(Enum):
    """What is done instead of a step."""

    NOTE_HOSTS = "note that the hosts' step is done"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Progress:
    """What the convergence knows of its own work.

    Attributes:
        sure: by stage, the number of the doubt after which it was confirmed.
        first: of the first plan, the step that was done last.
        granted: the hosts' step that some host has not confirmed yet.
    """

    sure: Mapping[Stage, int] = field(default_factory=dict)
    first: Step | None = None
    granted: StepDone | None = None


@dataclass(frozen=True)
class Situation:
    """All that the next work follows from. ``together_us``: hosts that begin together are waited for this long."""

    reported: Reported
    installed: Installed
    desired: Desired
    progress: Progress
    together_us: int
    elapsed_us: int
    kept: KeptLooks = field(default_factory=KeptLooks, compare=False)

    @cached_property
    def acts(self) -> Acts:
        """What hosts may be acting on."""
        return self.kept.acts(self.reported, self.installed.meters, self.elapsed_us)

    @cached_property
    def transition(self) -> Step:
        """The next step towards the desired plan."""
        meters, queues, plan = self.installed.meters, self.installed.queues, self.desired.plan
        if meters is None or queues is None:
            return next_of_first(self.progress.first, plan)
        held, step = self.acts.by_host, Step(Stage.HOSTS, plan)
        if meters.epoch != plan.epoch:
            lesser = self.kept.lesser(meters, plan)
            is_within = self.kept.is_within(held, lesser, "between")
            step = next_step(InForce(meters, queues), lesser, plan, is_within=is_within)
        if step.stage is not Stage.HOSTS:
            return step
        if self.reported.unknown_until_us(self.elapsed_us) is None and self.kept.is_within(held, meters, "in force"):
            return step
        return Step(Stage.HOSTS, no_more_than(chain.from_iterable(held.values()), step.plan))

    @property
    def is_for_switches(self) -> bool:
        """Whether the next step is one of the switches."""
        return self.transition.stage is not Stage.HOSTS

    @property
    def not_before_us(self) -> int:
        """From when on switches may be brought towards the desired plan."""
        return self.desired.since_us + self.together_us

    @property
    def due_in_us(self) -> list[int]:
        """After how long there may be something to do by itself: a lease ends, or who begins together has begun."""
        due_us = [*self.acts.ends_us.values(), self.not_before_us]
        if (known_us := self.reported.unknown_until_us(self.elapsed_us)) is not None:
            due_us.append(known_us)
        return [at_us - self.elapsed_us for at_us in due_us if at_us > self.elapsed_us]

    def in_doubt(self, stage: Stage) -> bool:
        """Return whether switches may have lost what they confirmed at a stage."""
        return self.progress.sure.get(stage, -1) != self.reported.doubts

    def again(self, stage: Stage, plan: Plan | None) -> "Work":
        """Return the step that puts back what is in force at a stage."""
        return Other.WAIT if plan is None else Step(stage, plan)

    def to_grant(self, plan: Plan) -> list[str]:
        """Return the connected hosts that act, or are about to, on something else than a plan.

        One that has stepped down under this very epoch has been granted it.
        """
        hosts = self.reported.hosts
        return sorted(name for name in self.kept.untold(hosts, plan) if hosts[name].sent_epoch != plan.epoch)

    @property
    def is_ungranted(self) -> bool:
        """Whether the next step is the desired plan's last and has not been noted as granted."""
        plan = self.transition.plan
        return plan is self.desired.plan and self.installed.hosts_epoch != plan.epoch


Work = Step | Other


@dataclass(frozen=True, slots=True)
class WorkRule:
    """A row: when it applies, what is done then; in words, as docs/decisions/0015 shows them, and as functions."""

    when: str
    then: str
    applies: Callable[[Situation], bool]
    work: Callable[[Situation], Work]


RULES = (
    WorkRule(
        "no plan is in force yet",
        "take the next of the first plan's steps: meters no higher than they are, queues, meters",
        lambda s: s.installed.meters is None or s.installed.queues is None,
        lambda s: s.transition,
    ),
    WorkRule(
        "all layers hold the desired plan, and a switch has come back or has lost a rule",
        "wait: the audit compares it first, so that what it has lost is known, and repairs it",
        lambda s: bool(s.reported.switches_back) and s.installed.is_at_rest(s.desired.plan.epoch),
        lambda _: Other.WAIT,
    ),
    WorkRule(
        "a switch may have lost rules or meters: it forwards nothing",
        "put back the rules and meters in force",
        lambda s: s.in_doubt(Stage.METERS),
        lambda s: s.again(Stage.METERS, s.installed.meters),
    ),
    WorkRule(
        "a port may have lost queues",
        "put back the queues in force",
        lambda s: s.in_doubt(Stage.QUEUES),
        lambda s: s.again(Stage.QUEUES, s.installed.queues),
    ),
    WorkRule(
        "no host can be acting on more than it was granted last",
        "note that the hosts' step is done",
        lambda s: s.is_for_switches and s.progress.granted is not None,
        lambda _: Other.NOTE_HOSTS,
    ),
    WorkRule(
        "the next step is the switches', and hosts that begin together are waited for",
        "wait",
        lambda s: s.is_for_switches and s.elapsed_us < s.not_before_us,
        lambda _: Other.WAIT,
    ),
    WorkRule(
        "the next step is the switches'",
        "bring meters, or queues, to its plan",
        lambda s: s.is_for_switches,
        lambda s: s.transition,
    ),
    WorkRule(
        "a host acts on something else than the next step's plan, or the desired plan was granted to nobody yet",
        "grant the hosts their part of it, who gains most first",
        lambda s: bool(s.to_grant(s.transition.plan)) or s.is_ungranted,
        lambda s: s.transition,
    ),
    WorkRule("else", "wait", lambda _: True, lambda _: Other.WAIT),
)


def next_work(situation: Situation) -> Work:
    """Return what is to be done now."""
    return next(rule.work(situation) for rule in RULES if rule.applies(situation))
