"""Aims: what a run is to keep, beside what was seen of it; every ``report.json`` says them in the same words. Pure.

A bound that a test asserts is stated once, where the report is made; the test asserts that nothing falls short.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Aim:
    """One aim.

    Attributes:
        aim: what is to be, as people read it.
        seen: what was, as JSON can hold it.
        ok: whether it holds.
    """

    aim: str
    seen: Any
    ok: bool


def at_most(seen: float | None, bound: float) -> Aim:
    """Return the aim that a value is not above a bound; one that is missing misses it.

    >>> at_most(21, 30)
    Aim(aim='at most 30', seen=21, ok=True)
    >>> at_most(None, 30).ok
    False
    """
    return Aim(f"at most {bound:.12g}", seen, seen is not None and seen <= bound)


def below(seen: float | None, bound: float) -> Aim:
    """Return the aim that a value is below a bound."""
    return Aim(f"below {bound:.12g}", seen, seen is not None and seen < bound)


def at_least(seen: float | None, bound: float) -> Aim:
    """Return the aim that a value is not below a bound."""
    return Aim(f"at least {bound:.12g}", seen, seen is not None and seen >= bound)


def above(seen: float | None, bound: float) -> Aim:
    """Return the aim that a value is above a bound."""
    return Aim(f"above {bound:.12g}", seen, seen is not None and seen > bound)


def within(seen: float | None, low: float, high: float) -> Aim:
    """Return the aim that a value is between two bounds, either included.

    >>> within(0.048, 0.048, 0.052).ok, within(0.0521, 0.048, 0.052).ok
    (True, False)
    """
    return Aim(f"{low:.12g} to {high:.12g}", seen, seen is not None and low <= seen <= high)


def equal(seen: Any, expected: Any) -> Aim:
    """Return the aim that something is exactly what is expected.

    >>> equal([], ["a"])
    Aim(aim="exactly ['a']", seen=[], ok=False)
    """
    return Aim(f"exactly {expected!r}", seen, bool(seen == expected))


def none_of(seen: Any) -> Aim:
    """Return the aim that there is nothing of a kind: a list of what was found, or its count."""
    return Aim("none", seen, not seen)


def stated(aims: Mapping[str, Aim]) -> dict[str, Any]:
    """Return the two keys of a report: ``aims``, and ``falls_short`` with the names of those that miss.

    >>> stated({"gap": at_most(31, 30)})
    {'aims': {'gap': {'aim': 'at most 30', 'seen': 31, 'ok': False}}, 'falls_short': ['gap']}
    """
    written = {name: asdict(one) | {"seen": _plain(one.seen)} for name, one in aims.items()}
    return {"aims": written, "falls_short": [name for name, one in aims.items() if not one.ok]}


def _plain(seen: Any) -> Any:
    """Return what JSON has a word for: it has none for what is no number."""
    return None if isinstance(seen, float) and not math.isfinite(seen) else seen
