"""For how long the circuit may be idle at a change of hands. Pure."""

from typing import Any

from mininet_tests.testing.aims import Aim, at_least, at_most, none_of

GAPS_MS = {"start_gap_ms": 30.0, "end_gap_ms": 45.0}
"""Seen: 15 to 25 ms, and 20 to 35 ms, in bins of 5 ms; the aim is 20."""


def aims(report: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of a report."""
    cpu = report["cpu"]
    found = {
        "CPU idle": at_least(cpu["least_idle_share"], cpu["needed_idle_share"]),
        "layers above the next": none_of(report["violations"]),
    }
    for one in report["variants"]:
        found |= {f"{one['connection']}: {aim}": each for aim, each in _of_a_variant(one).items()}
    return found


def _of_a_variant(one: dict[str, Any]) -> dict[str, Aim]:
    return {
        **{change: at_most(one[change], most_ms) for change, most_ms in GAPS_MS.items()},
        "packets dropped": none_of(one["drops"]),
        "segments sent again": none_of(one["retransmitted_segments"]),
        "image, s, as promised": at_most(one["seconds"], one["promised_seconds"]),
    }
