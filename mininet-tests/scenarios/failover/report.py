"""What a run of ``run.py`` comes to, as the numbers of ``report.json``. Pure."""

from typing import Any

from mininet_tests.probes.at_plan import ALLOWED_MS, SLICE_US, Received, back_ms, slices


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
