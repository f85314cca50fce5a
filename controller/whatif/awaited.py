"""What a virtual site waits for, and how long it takes until what is decided is done."""

from dataclasses import dataclass
from enum import Enum

from controller.plan.transitions import Stage, Step
from controller.state.installed import StepDone


@dataclass(frozen=True, slots=True)
class Delays:
    """How long it takes until what is decided is done, microseconds.

    Source: docs/handover.md. Meters and hosts take a millisecond each, queues three and a half; of the 15 ms of a
    hand-over the rest is words between hosts. A port that has lost its carrier is heard of as soon.

    Attributes:
        word_us: from what a host, or a switch, sees until the controller acts on it.
        hosts_us: from a grant until its host has confirmed it.
        meters_us: until all switches have confirmed rules and meters.
        queues_us: until they have their queues.
    """

    word_us: int = 3_500
    hosts_us: int = 1_000
    meters_us: int = 1_000
    queues_us: int = 3_500

    def steps_of_one(self, epoch: int, done_us: int) -> tuple[StepDone, ...]:
        """Return the steps of a transition that was done at a time: hosts give way, switches, hosts take."""
        takes_us = (self.hosts_us, self.meters_us, self.queues_us, self.hosts_us)
        at_us, steps = done_us - sum(takes_us), []
        for stage, lasts_us in zip((Stage.HOSTS, Stage.METERS, Stage.QUEUES, Stage.HOSTS), takes_us, strict=True):
            steps.append(StepDone(epoch, stage, at_us, at_us + lasts_us))
            at_us += lasts_us
        return tuple(steps)


class Wait(Enum):
    """What the site waits for; each comes back to the site at its time."""

    HOSTS = "hosts confirm"
    SWITCHES = "switches confirm"


@dataclass(frozen=True, slots=True)
class Awaited:
    """Something that will happen at a time, and what it is of."""

    at_us: int
    due: Wait
    step: Step
