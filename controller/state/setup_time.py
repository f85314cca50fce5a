"""How long it takes on this site until all switches and hosts know of a change, by its latest transitions. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice

from controller.state.installed import StepDone

LATEST = 12  # transitions; an announcement has four: it comes, begins, ends and goes
TOGETHER_US = 1_000_000  # a step of a transition begins sooner after the one before
OF = 8  # of so many the longest counts for nothing: a host that dies holds one up for a lease


def setup_us(steps: Sequence[StepDone]) -> int:
    """Return how long switches and hosts take to know of an announcement: what the longest transitions of late took.

    A switch that is far from its controller is waited for some five times, at both ends of a circuit.

    Args:
        steps: oldest first. Those that have failed say nothing.

    >>> from controller.plan.transitions import Stage
    >>> steps = [StepDone(3, Stage.METERS, 0, 180_000), StepDone(4, Stage.QUEUES, 180_000, 360_000)]
    >>> setup_us([*steps, StepDone(4, Stage.METERS, 360_000, 900_000)])
    900000
    """
    took_us = sorted(map(_took_us, _latest_first(steps)), reverse=True)
    return took_us[len(took_us) // OF] if took_us else 0


def latest(steps: Sequence[StepDone]) -> tuple[StepDone, ...]:
    """Return the steps that :func:`setup_us` looks at, without what each has changed."""
    found = [step for of_one in _latest_first(steps) for step in of_one]
    return tuple(replace(step, changes=()) for step in reversed(found))


def _latest_first(steps: Sequence[StepDone]) -> Iterator[list[StepDone]]:
    transitions = groupby(reversed(steps), key=lambda step: step.epoch + step.epoch % 2)
    return (list(of_one) for _, of_one in islice(transitions, LATEST))


def _took_us(latest_first: Sequence[StepDone]) -> int:
    """Return how long the steps of a transition took; what is put back later is none of them."""
    took_us, done_us = 0, latest_first[-1].started_us
    for step in reversed(latest_first):
        if step.error:
            return 0
        if step.started_us > done_us + TOGETHER_US:
            break
        took_us, done_us = took_us + step.done_us - step.started_us, step.done_us
    return took_us
