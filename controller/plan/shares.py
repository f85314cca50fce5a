"""Shares: the circuit divided among classes and flows, exactly."""

from collections.abc import Collection, Mapping, Sequence

from controller.plan.policy import Policy
from topology.protocol import FlowClass
from topology.wire import PPM


def class_shares(
    capacity_bps: int,
    policy: Policy,
    wanted_bps: Mapping[FlowClass, int],
    reserved_bps: Mapping[FlowClass, int] | None = None,
    spare: Collection[FlowClass] = (),
) -> dict[FlowClass, int]:
    """Return each class's share of one direction of a circuit, in bit/s of the wire.

    Guarantees first, always; then what is reserved for a class, by priority (it all fits, unless the provider has cut
    the circuit); then what is left goes to the wanted classes by priority. Never beyond a class's cap, nor what it
    wants. The sum never exceeds the capacity, and nothing is left over while a class below its cap wants more.

    Args:
        capacity_bps: the circuit, bit/s on the wire.
        policy: the classes.
        wanted_bps: what each class could use now, bit/s; absent or 0 means idle.
        reserved_bps: what promises keep for a class above its guarantee, bit/s; lent to others while it is idle.
        spare: classes that may have what all others have left, in even parts.
    """
    shares = {c: capacity_bps * p.guarantee_ppm // PPM for c, p in policy.classes.items()}
    left_bps = capacity_bps - sum(shares.values())
    by_priority = sorted(policy.classes, key=lambda c: policy.classes[c].priority)
    for limits_bps in ({c: shares[c] + bps for c, bps in (reserved_bps or {}).items()}, wanted_bps):
        for flow_class in by_priority:
            cap_bps = capacity_bps * policy.classes[flow_class].cap_ppm // PPM
            most_bps = min(cap_bps, wanted_bps.get(flow_class, 0), limits_bps.get(flow_class, 0))
            more_bps = min(left_bps, max(0, most_bps - shares[flow_class]))
            shares[flow_class] += more_bps
            left_bps -= more_bps
    to_spare = [c for c in by_priority if c in spare]
    below_cap_bps = [max(0, capacity_bps * policy.classes[c].cap_ppm // PPM - shares[c]) for c in to_spare]
    for flow_class, more_bps in zip(to_spare, max_min(left_bps, [0] * len(to_spare), below_cap_bps), strict=True):
        shares[flow_class] += more_bps
    return shares


def max_min(total: int, floors: Sequence[int], caps: Sequence[int]) -> list[int]:
    """Return ``total`` divided max-min fairly between floors and caps, as integers.

    Every part is the same level, except that it is never below its floor nor above its cap; an odd unit goes to the
    earlier parts. Nothing is left while a part is below its cap. Floors that do not fit are met as evenly as can be.

    >>> max_min(100, [0, 0, 0], [100, 100, 100]), max_min(10, [6, 0, 0], [9, 1, 9])
    ([34, 33, 33], [6, 1, 3])

    Raises:
        ValueError: the total or a floor is negative, or a cap lies below its floor.
    """
    if total < 0 or min(floors, default=0) < 0 or any(c < f for f, c in zip(floors, caps, strict=True)):
        raise ValueError(f"cannot divide {total} between {list(floors)} and {list(caps)}")
    if sum(floors) > total:
        floors, caps = [0] * len(floors), floors

    level = _level(total, floors, caps)
    parts = [min(max(level, floor), cap) for floor, cap in zip(floors, caps, strict=True)]
    left = total - sum(parts)
    for i, (floor, cap) in enumerate(zip(floors, caps, strict=True)):
        if left and floor <= level < cap:
            parts[i] += 1
            left -= 1
    return parts


def _level(total: int, floors: Sequence[int], caps: Sequence[int]) -> int:
    """Return the highest level, up to the total, at which the parts' sum is within it.

    The sum grows with the level by as many as have their floor below it and their cap above.
    """
    growing, level, used = 0, 0, sum(floors)
    for at, more in sorted([*((floor, 1) for floor in floors), *((cap, -1) for cap in caps)]):
        if used + growing * (at - level) > total:
            return level + (total - used) // growing
        used += growing * (at - level)
        growing, level = growing + more, at
    return total
