"""What an emulated play comes to: of each transfer what was planned, and what was delivered. Pure."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from mininet_tests.lab.saturation import LEAST_IDLE_SHARE
from mininet_tests.scenarios.emulate.play import Play
from mininet_tests.testing.aims import Aim, at_least, at_most, none_of, stated, within

SETTLES_S = 0.3  # beside two round trips, after a change of the plan
LEAST_SPAN_S = 0.5  # of a steady stretch
LEAST_STEADY_S = 1.0  # of all of them, that a share is told
DELIVERED = (0.995, 1.005)  # of what was planned
POLLED_MS = 10


@dataclass(slots=True)
class TransferSeen:
    """What was seen of a transfer; a time is Unix time, microseconds, 0 while it has not come.

    Attributes:
        name: its.
        port: the receiver's.
        rtt_s: of its path.
        promise: the reservation's or announcement's name.
        began_us: when its first byte was written.
        promised_us: by when its last byte was promised to be confirmed.
        stops_us: when it is to end, if it has no size.
        ended_us: when it was stopped, or its last byte confirmed.
        received: (time, bytes that have arrived in order).
    """

    name: str
    port: int
    rtt_s: float
    promise: str = ""
    began_us: int = 0
    promised_us: int = 0
    stops_us: int = 0
    ended_us: int = 0
    received: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PlanSeen:
    """The plan in force at a time: by transfer the payload rate that it has for itself, and what is wrong with it."""

    at_us: int
    payload_bps: Mapping[str, int | None]
    violations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Steady:
    """A stretch in which a transfer's planned rate did not change, and what was delivered in it, payload."""

    from_us: int
    to_us: int
    planned_bps: int
    delivered_bps: float


def steady(seen: TransferSeen, plans: Sequence[PlanSeen]) -> Iterator[Steady]:
    """Yield the stretches of a transfer: from when a change has reached the receiver until the next one is made."""
    settles_us = round((2 * seen.rtt_s + SETTLES_S) * 1e6)
    begin_us, end_us = seen.began_us, seen.ended_us - round(seen.rtt_s * 1e6)
    under_way = (plan for plan in plans if begin_us <= plan.at_us <= end_us)
    for planned_bps, group in groupby(under_way, key=lambda plan: plan.payload_bps[seen.name]):
        at_us = [plan.at_us for plan in group]
        from_us, to_us = at_us[0] + settles_us, at_us[-1]
        if planned_bps and to_us - from_us >= LEAST_SPAN_S * 1e6:
            yield Steady(from_us, to_us, planned_bps, delivered_bps(seen, from_us, to_us))


def delivered_bps(seen: TransferSeen, from_us: int, to_us: int) -> float:
    """Return what has arrived of a transfer between two times, bit/s of payload."""
    times = [at_us for at_us, _ in seen.received]
    first, last = (min(bisect_left(times, at_us), len(times) - 1) for at_us in (from_us, to_us))
    if first >= last:
        return 0.0
    (begin_us, before), (end_us, after) = seen.received[first], seen.received[last]
    return (after - before) * 8e6 / (end_us - begin_us)


def report(
    play: Play, seen: Mapping[str, TransferSeen], plans: Sequence[PlanSeen], idle_share: float
) -> dict[str, Any]:
    """Return the report, with its aims."""
    began_us = min(one.began_us for one in seen.values())
    found: dict[str, Aim] = {
        "layers above the next": none_of(sorted({text for plan in plans for text in plan.violations})),
        "CPU idle": at_least(idle_share, LEAST_IDLE_SHARE),
    }
    transfers = {}
    for transfer in play.transfers:
        one = seen[transfer.name]
        stretches = list(steady(one, plans))
        transfers[transfer.name] = said = _transfer(one, stretches, began_us)
        said |= {"from": transfer.sender, "to": transfer.receiver}
        if said["delivered_share"] is not None:
            found[f"{transfer.name}: delivered of what was planned"] = within(said["delivered_share"], *DELIVERED)
        if one.promised_us:
            found[f"{transfer.name}: later than promised, ms"] = at_most(said["late_ms"], POLLED_MS)
    return {
        "transfers": transfers,
        "plans": [[(plan.at_us - began_us) / 1e6, dict(plan.payload_bps)] for plan in plans],
        "received": {
            name: [[(at_us - began_us) / 1e6, count] for at_us, count in one.received] for name, one in seen.items()
        },
        "cpu_least_idle_share": idle_share,
        **stated(found),
    }


def _transfer(seen: TransferSeen, stretches: list[Steady], began_us: int) -> dict[str, Any]:
    steady_us = sum(one.to_us - one.from_us for one in stretches)
    planned_bits, delivered_bits = (
        sum(getattr(one, name) * (one.to_us - one.from_us) / 1e6 for one in stretches)
        for name in ("planned_bps", "delivered_bps")
    )
    told = steady_us >= LEAST_STEADY_S * 1e6
    promised = bool(seen.promised_us)
    return {
        "began_s": (seen.began_us - began_us) / 1e6,
        "ended_s": (seen.ended_us - began_us) / 1e6,
        "received_bytes": seen.received[-1][1] if seen.received else 0,
        "steady_s": steady_us / 1e6,
        "planned_payload_bps": planned_bits / steady_us * 1e6 if told else None,
        "delivered_payload_bps": delivered_bits / steady_us * 1e6 if told else None,
        "delivered_share": delivered_bits / planned_bits if told else None,
        "promised_s": (seen.promised_us - seen.began_us) / 1e6 if promised else None,
        "took_s": (seen.ended_us - seen.began_us) / 1e6,
        "late_ms": (seen.ended_us - seen.promised_us) / 1e3 if promised else None,
    }
