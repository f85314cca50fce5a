"""What a run of ``run.py`` comes to, as the numbers of ``report.json``. Pure."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

AT_PLAN = 0.95  # of a flow's planned payload, over a slice: it is at its plan
SLICE_US = 50_000
DEPARTURE_BITS = 2 * 1448 * 8  # it may lack one: a slow flow has few of them in a slice
ALLOWED_MS = 100  # beside one round trip, until a flow is at its plan again

Received = Sequence[tuple[int, dict[str, int]]]  # time, and payload received so far by sender


def bps(received: Received, host: str, from_us: int, to_us: int) -> float:
    """Return what has arrived of a sender between two instants, payload, bit/s."""
    times = [at_us for at_us, _ in received]
    first, last = (min(bisect_left(times, at_us), len(times) - 1) for at_us in (from_us, to_us))
    if first == last:
        return 0.0
    moved = received[last][1][host] - received[first][1][host]
    return moved * 8_000_000 / (received[last][0] - received[first][0])


def slices(received: Received, host: str, from_us: int, to_us: int) -> list[tuple[int, float]]:
    """Return (begin, bit/s) of each slice that begins with a sample between two instants."""
    begins = [at_us for at_us, _ in received if from_us <= at_us < to_us]
    return [(at_us, bps(received, host, at_us, at_us + SLICE_US)) for at_us in begins]


def back_ms(received: Received, host: str, planned_bps: int, died_us: int, until_us: int) -> float | None:
    """Return how long after its circuit's death a flow was at its plan again, for good; None if it never was.

    That is the end of the last slice in which it was not, when it was after that for at least a quarter of a second.
    """
    found = slices(received, host, died_us, until_us - SLICE_US)
    least_bps = AT_PLAN * planned_bps - DEPARTURE_BITS * 1_000_000 / SLICE_US
    below = [at_us for at_us, got_bps in found if got_bps < least_bps]
    if not found or (below and below[-1] > found[-1][0] - 250_000):
        return None
    return (below[-1] + SLICE_US - died_us) / 1000 if below else 0.0


def report(seen: dict[str, Any]) -> dict[str, Any]:
    """Return the report of a run."""
    return {
        "idle_share": min(seen["idle_shares"], default=0.0),
        "cases": {
            name: case(seen["received"], one, seen["rtt_ms"], seen["transitions"])
            for name, one in seen["cases"].items()
        },
        "events": seen["events"],
    }


def case(received: Received, seen: dict[str, Any], rtt_ms: float, transitions: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the numbers of one death and return of the circuit."""
    died_us, returned_us = seen["died_us"], seen["returned_us"]
    planned = {one["from"]: one["payload_bps"] for one in seen["down"]["plan"]["desired"]["allocations"]}
    prepared = next(one["if_it_dies"] for one in seen["prepared"] if one["if_it_dies"] and one["name"] == "north")
    ready = {one["from"]: one["payload_bps"] for one in prepared["allocations"]}
    back = {host: back_ms(received, host, rate, died_us, returned_us) for host, rate in planned.items()}
    return {
        "allowed_ms": rtt_ms + ALLOWED_MS,
        "write_status_before": seen["write_status_before"],
        "back_at_plan_ms": back,
        "steps_ms": [
            (one["place"], (one["done_us"] - died_us) / 1000)
            for one in transitions
            if died_us < one["started_us"] < returned_us
        ],
        "planned_payload_bps": planned,
        "prepared_payload_bps": ready,
        "least_share_of_plan": {
            host: min((got / rate for _, got in slices(received, host, died_us, returned_us - SLICE_US)), default=0.0)
            for host, rate in planned.items()
        },
        "retransmitted_segments": {
            "while_down": _again(seen["before"], seen["down"]),
            "on_return": _again(seen["down"], seen["after"]),
        },
        "edge_drops": {
            "while_down": _more(seen["before"]["edge_drops"], seen["down"]["edge_drops"]),
            "on_return": _more(seen["down"]["edge_drops"], seen["after"]["edge_drops"]),
        },
        "on_return_least_bps": {
            host: min(
                (got for _, got in slices(received, host, returned_us, seen["after"]["at_us"] - SLICE_US)), default=0
            )
            for host in planned
        },
        "used_again_after_ms": (seen["used_us"] - returned_us) / 1000,
        "violations": [*seen["before"]["plan"]["violations"], *seen["down"]["plan"]["violations"]],
    }


def _again(before: dict[str, Any], after: dict[str, Any]) -> dict[str, int]:
    """Return how many segments each host has sent again between two instants."""
    counts = [
        {h: sum(c["retransmitted_segments"] for c in cs) for h, cs in at["connections"].items()}
        for at in (before, after)
    ]
    return _more(*counts)


def _more(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {name: count - before[name] for name, count in after.items()}
