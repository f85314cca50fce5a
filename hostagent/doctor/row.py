"""A row of the table of what a host needs. Pure."""

from dataclasses import dataclass
from enum import StrEnum


class FitnessVerdict(StrEnum):
    """What a row says: all is well; it will be slower or less sure; it does not reach the rate or does not run."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Row:
    """One prerequisite.

    Attributes:
        what: its name.
        now: its value here.
        needed: the value it must have.
        verdict: whether it has.
        why: what it does, in one line.
        fix: the command or the step that sets it right; empty if nothing is to do.
    """

    what: str
    now: str
    needed: str
    verdict: FitnessVerdict
    why: str = ""
    fix: str = ""


def verdict(good: bool, otherwise: FitnessVerdict = FitnessVerdict.FAIL) -> FitnessVerdict:
    """Return that all is well, or else the other verdict."""
    return FitnessVerdict.OK if good else otherwise
