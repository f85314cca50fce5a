"""What an experiment is: how it is called, what runs it, and where. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Group(Enum):
    """What kind of experiment it is."""

    SCENARIO = "scenarios"
    PAPER = "papers"
    BENCH = "bench"


class Place(Enum):
    """Where it runs."""

    LAB = "lab"
    """In the lab, in namespaces of its own."""
    ISOLATED = "here, isolated"
    """On this machine, in namespaces of its own."""
    HERE = "here"
    """On this machine; it needs no namespaces."""
    ITSELF = "lab, by itself"
    """It starts what it needs, the lab among it."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment.

    Attributes:
        name: how it is called.
        group: what kind it is.
        line: what it shows, in one line.
        module: what runs it, below ``mininet_tests``; it takes ``--out FOLDER``.
        place: where that runs.
        minutes: how long it takes on two idle cores, about; what is left is told by it.
        dilation: of the lab, where the launcher boots it.
        arguments: given to it before those of the user.
        figure: the module that draws what is in the folder, if it does not draw itself.
        publishes: whether it has a ``--publish`` of its own, that it is to be given too.
        shown_by: the module that writes the page again which shows the published figures among others'.
    """

    name: str
    group: Group
    line: str
    module: str
    place: Place
    minutes: float
    dilation: int = 1
    arguments: tuple[str, ...] = ()
    figure: str | None = None
    publishes: bool = False
    shown_by: str | None = None
