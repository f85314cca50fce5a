"""Shares: the circuit divided among classes and flows, exactly."""

from collections.abc import Mapping, Sequence

from controller.plan.policy import PPM, Policy
from topology.protocol import FlowClass


def split(total: int, weights: Sequence[int]) -> list[int]:
    """Return ``total`` divided in proportion to ``weights``, as integers whose sum is exactly ``total``.

    Largest remainder (Hamilton's method); equal remainders go to the earlier one. All weights zero: all get 0.

    >>> split(100, [1, 1, 1])
    [34, 33, 33]

    Raises:
        ValueError: the total or a weight is negative.
    """
    if total < 0 or min(weights, default=0) < 0:
        raise ValueError(f"cannot split {total} by {list(weights)}")
    whole = sum(weights)
    if not whole:
        return [0] * len(weights)
    parts = [total * w // whole for w in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: -(total * weights[i] % whole))
    for i in by_remainder[: total - sum(parts)]:
        parts[i] += 1
    return parts


def class_shares(capacity_bps: int, policy: Policy, wanted_bps: Mapping[FlowClass, int]) -> dict[FlowClass, int]:
    """Return each class's share of a circuit, in bit/s of the wire.

    Guarantees first, always; then what they leave goes to the wanted classes by priority, each up to its cap and
    to what it wants. The sum never exceeds the capacity, and nothing is left over while a class below its cap
    wants more.

    Args:
        capacity_bps: the circuit, bit/s on the wire.
        policy: the classes.
        wanted_bps: what each class could use now, bit/s; absent or 0 means idle.
    """
    shares = {c: capacity_bps * p.guarantee_ppm // PPM for c, p in policy.classes.items()}
    left_bps = capacity_bps - sum(shares.values())
    for flow_class in sorted(policy.classes, key=lambda c: policy.classes[c].priority):
        most_bps = min(capacity_bps * policy.classes[flow_class].cap_ppm // PPM, wanted_bps.get(flow_class, 0))
        more_bps = min(left_bps, max(0, most_bps - shares[flow_class]))
        shares[flow_class] += more_bps
        left_bps -= more_bps
    return shares
