"""Drift: what a switch, its database, its kernel or a host holds, against what it should hold. Pure.

Each object has a shape. What is missing, misconfigured or in excess is drift, and is repaired; what shadows ours is
somebody else's and stays, but somebody must know of it.
"""

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class DriftKind(StrEnum):
    """What sort of object it is."""

    FLOW = "flow"
    METER = "meter"
    GROUP = "group"
    QUEUE = "queue"  # as the switch's database has it
    HTB = "htb"  # the same queue as the kernel has it
    HOST = "host"  # what an agent holds
    PORT = "port"  # its number, its name, and whether it carries traffic


class Shape(StrEnum):
    """How what is found differs from what should be."""

    PROPER = "proper"
    MISSING = "missing"
    MISCONFIGURED = "misconfigured"
    EXCESS = "excess"
    SHADOWED = "shadowed"  # something that is not ours takes its packets, or its place
    FOREIGN = "foreign"  # somebody else's rule, in whose way no packet between hosts of ours comes
    IGNORED = "ignored"  # in excess, and on the ignore list
    HIDDEN = "hidden"  # cannot be seen from the controller


class Outcome(StrEnum):
    """What was done about it."""

    NOT_YET = "not yet"
    REPAIRED = "repaired"
    LEFT = "left alone"
    FAILED = "failed"


DRIFT = (Shape.MISSING, Shape.MISCONFIGURED, Shape.EXCESS)  # what is ours to repair


@dataclass(frozen=True, slots=True)
class Deviation:
    """An object that is not as it should be.

    Attributes:
        kind: what sort of object it is.
        shape: how it differs.
        wanted: what it should be, for people; empty if it should not be there.
        found: what it is; empty if it is not there.
        outcome: what was done about it.
        todo: what a person has to do, if there is something.
        port_name: the interface of the port that it keeps from carrying; empty if it is at no port.
    """

    kind: DriftKind
    shape: Shape
    wanted: str = ""
    found: str = ""
    outcome: Outcome = Outcome.NOT_YET
    todo: str = ""
    port_name: str = ""

    @property
    def identity(self) -> tuple[DriftKind, Shape, str, str]:
        """What makes it the same deviation at the next audit."""
        return self.kind, self.shape, self.wanted, self.found

    @property
    def alarm(self) -> str:
        """What it is, and what to do."""
        return f"{self.kind} {self.shape}: {self.found or self.wanted}: {self.todo}"


@dataclass(frozen=True, slots=True)
class Compared:
    """What a comparison has come to: how many objects are proper, by kind, and those that are not."""

    proper: Mapping[DriftKind, int] = field(default_factory=dict)
    deviations: tuple[Deviation, ...] = ()

    def __add__(self, other: "Compared") -> "Compared":
        """Return both together."""
        return Compared(Counter(self.proper) + Counter(other.proper), self.deviations + other.deviations)

    @property
    def drift(self) -> tuple[Deviation, ...]:
        """What is to be repaired."""
        return tuple(d for d in self.deviations if d.shape in DRIFT and d.outcome is Outcome.NOT_YET)

    def settled(self, outcome: Outcome) -> "Compared":
        """Return the same with its drift settled in one way."""
        done = (
            replace(d, outcome=outcome) if d.shape in DRIFT and d.outcome is Outcome.NOT_YET else d
            for d in self.deviations
        )
        return Compared(self.proper, tuple(done))


def compared(
    kind: DriftKind,
    wanted: Mapping[K, V],
    found: Mapping[K, V],
    same: Callable[[V, V], bool] = operator.eq,
) -> Compared:
    """Return how objects differ from what they should be, in the order of ``wanted`` and then of ``found``.

    >>> wanted = {1: "10 kbit/s", 2: "20 kbit/s", 3: "5 kbit/s"}
    >>> seen = compared(DriftKind.METER, wanted, {1: "10 kbit/s", 2: "9 kbit/s"})
    >>> seen.proper[DriftKind.METER], [(d.shape.value, d.wanted, d.found) for d in seen.deviations]
    (1, [('misconfigured', '20 kbit/s', '9 kbit/s'), ('missing', '5 kbit/s', '')])

    Args:
        kind: what sort of objects they are.
        wanted: what should be there, by what makes it the same object.
        found: what is there, likewise.
        same: whether what is found is as good as what is wanted.
    """
    deviations = []
    proper = 0
    for key, value in wanted.items():
        if key not in found:
            deviations.append(Deviation(kind, Shape.MISSING, wanted=str(value)))
        elif same(value, found[key]):
            proper += 1
        else:
            deviations.append(Deviation(kind, Shape.MISCONFIGURED, wanted=str(value), found=str(found[key])))
    deviations += [Deviation(kind, Shape.EXCESS, found=str(v)) for key, v in found.items() if key not in wanted]
    return Compared({kind: proper}, tuple(deviations))


@dataclass(frozen=True, slots=True)
class Audit:
    """One audit of one switch, or of all hosts.

    Attributes:
        place: the switch's name, or ``hosts``.
        at_us: when it began, Unix time.
        took_us: how long it took, repairs included.
        seen: what was found and done.
        messages: how many changes were sent for repairs.
        errors: what kept it from looking at everything.
    """

    place: str
    at_us: int
    took_us: int = 0
    seen: Compared = field(default_factory=Compared)
    messages: int = 0
    errors: tuple[str, ...] = ()

    @property
    def alarms(self) -> tuple[str, ...]:
        """What a person has to look after: each with what to do; each once, in order."""
        return tuple(dict.fromkeys((*(d.alarm for d in self.seen.deviations if d.todo), *self.errors)))


def counts(deviations: Iterable[Deviation]) -> dict[tuple[DriftKind, Shape], int]:
    """Return how many objects of each kind have each shape."""
    return dict(Counter((d.kind, d.shape) for d in deviations))
