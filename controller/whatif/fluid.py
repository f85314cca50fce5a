"""Rates as a fluid: max-min fair over links, each flow with a bound of its own. Pure, integers, exact.

The plan shares circuits. What else is on the way, a host's own interface above all, shares itself as TCP does.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from controller.plan.shares import max_min

F = TypeVar("F", bound=Hashable)
L = TypeVar("L", bound=Hashable)


def filled(bounds: Mapping[F, int], ways: Mapping[F, Sequence[L]], capacity: Mapping[L, int]) -> dict[F, int]:
    """Return the max-min fair rates: none can grow without one that is no larger becoming smaller.

    Progressive filling: the link that has least for each of its flows decides about them, unless a flow's bound comes
    first; then the same with the rest. What cannot be divided evenly is an odd unit each for the first.

    >>> filled({"a": 100, "b": 100, "c": 10}, {"a": "xy", "b": "x", "c": "y"}, {"x": 50, "y": 100})
    {'c': 10, 'a': 25, 'b': 25}

    Args:
        bounds: what each flow can use.
        ways: the links of each.
        capacity: what each link has; one that is not there has no end.
    """
    left = dict(capacity)
    members: dict[L, dict[F, None]] = {}
    for flow in bounds:
        for link in dict.fromkeys(ways[flow]):
            if link in left:
                members.setdefault(link, {})[flow] = None
    open_flows = dict.fromkeys(bounds)
    found: dict[F, int] = {}

    def fix(flow: F, rate: int) -> None:
        found[flow] = rate
        del open_flows[flow]
        for link in dict.fromkeys(ways[flow]):
            if link in left:
                left[link] -= rate
                del members[link][flow]

    while open_flows:
        shares = {link: left[link] // len(flows) for link, flows in members.items() if flows}
        tightest = min(shares, key=lambda link: shares[link], default=None)
        bounded = min(open_flows, key=lambda flow: bounds[flow])
        if tightest is None or bounds[bounded] <= shares[tightest]:
            fix(bounded, bounds[bounded])
            continue
        flows = tuple(members[tightest])
        for flow, rate in zip(
            flows, max_min(left[tightest], [0] * len(flows), [bounds[f] for f in flows]), strict=True
        ):
            room = min((left[link] for link in ways[flow] if link in left), default=rate)
            fix(flow, min(rate, room))
    return found


def overloaded(rates: Mapping[F, int], ways: Mapping[F, Iterable[L]], capacity: Mapping[L, int]) -> bool:
    """Return whether some link is given more than it has."""
    loads: dict[L, int] = {}
    for flow, rate in rates.items():
        for link in ways[flow]:
            loads[link] = loads.get(link, 0) + rate
    return any(load > capacity[link] for link, load in loads.items() if link in capacity)
