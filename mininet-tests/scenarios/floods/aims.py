"""What a misbehaving host may do to the others: nothing, and what it has itself. Pure."""

import re
from typing import Any

from mininet_tests.lab.saturation import LEAST_IDLE_SHARE
from mininet_tests.testing.aims import Aim, above, at_most, below, none_of, within

UNPLANNED_METER = re.compile(r"(ls1|ch1) meter 1000")
PAIR_METER = re.compile(r"(ls1|ch1) meter 2\d\d\d")
MESSAGES_WITHOUT_A_FLOOD = 20  # echoes, and what the scenario itself asks for
LIARS = ("liar-in-the-same-class", "back-by-the-receiver-to-the-partner")
"""Planned hosts that send too much."""


def aims(report: dict[str, Any], asked: frozenset[str], partner: str) -> dict[str, Aim]:
    """Return the aims of a report: for those cases of which something is asked; ``partner`` is who lies."""
    undisturbed = [seen["urgent_s"] for seen in report["cases"] if not seen["kind"]]
    least_s, most_s = min(undisturbed), max(undisturbed)
    found = {
        "CPU idle": above(min(seen["cpu_idle_share"] for seen in report["cases"]), LEAST_IDLE_SHARE),
        "undisturbed, shortest, s": within(least_s, 0.999 * report["limit_s"], 1.02 * report["limit_s"]),
        "undisturbed, longest, s": below(most_s, min(1.02 * report["limit_s"], 1.002 * least_s)),
    }
    for seen in report["cases"]:
        if seen["kind"] and seen["name"] in asked:
            found |= {f"{seen['name']}: {name}": aim for name, aim in _of_a_flood(seen, report, partner).items()}
    return found


def _of_a_flood(seen: dict[str, Any], report: dict[str, Any], partner: str) -> dict[str, Aim]:
    found = {
        "image, times undisturbed": at_most(seen["ratio"], 1.01),
        "segments sent again": none_of(seen["retransmitted_segments"]),
        "packets dropped in queues": none_of(seen["queue_drops_packets"]),
        "messages to the controller": below(seen["openflow_messages"], MESSAGES_WITHOUT_A_FLOOD),
    }
    drops, planned = seen["meter_drops_packets"], "partner" in seen["name"] or "liar" in seen["name"]
    if not planned:
        direction = "ch1->ls1" if seen["name"].startswith("back") else "ls1->ch1"
        unplanned_bps = report["plan"]["layers"][direction]["meters_frame_bps"]["unplanned"]
        found["flood, arrived, bit/s"] = at_most(seen["flood_arrived_bps"], 1.5 * unplanned_bps)
        found["other meters that drop"] = none_of([name for name in drops if not UNPLANNED_METER.fullmatch(name)])
    if seen["name"] in LIARS:
        found["meters of its own that drop"] = above(len([name for name in drops if PAIR_METER.fullmatch(name)]), 0)
        found["other meters that drop"] = none_of([name for name in drops if not PAIR_METER.fullmatch(name)])
    if seen["name"] == LIARS[0]:
        allocated_bps = planned_bps(report, partner)
        found["flood, arrived, bit/s"] = within(seen["flood_arrived_bps"], 0.95 * allocated_bps, 1.02 * allocated_bps)
    return found


def planned_bps(report: dict[str, Any], host: str) -> float:
    """Return what a host's allocation is, bit/s of frames."""
    (found,) = (a for a in report["plan"]["installed"]["allocations"] if a["path"][0] == host)
    return float(found["payload_bps"] * 1514 / 1448)
