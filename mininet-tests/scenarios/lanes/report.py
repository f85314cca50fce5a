"""What a run of ``run.py`` comes to, as the numbers of ``report.json``. Pure."""

import re
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from mininet_tests.probes.at_plan import ALLOWED_MS, Received, back_ms, bps
from mininet_tests.probes.series import ENDED_BYTES, begun_s, flow_s
from topology.wire import Framing, Layer, converted_bps

LANES = {"base20": "north", "base20.eth1": "south"}  # the interfaces of the sender, and by which circuit each sends
BAD_EVENTS = ("late", "not_carried")
SETTLED_US = 500_000  # after a death: what the plan is then
LOOKED_AT_US = 250_000  # how often the plan is looked at, at the least
HOLE_US = 300_000  # with nothing for longer a flow stands still
PATHS_THERE_US = 2_000_000  # a second path comes 0.6 s after the first
ENDS_US = 1_500_000  # one path may be done so much sooner than the other
_LINE = re.compile(r"timestamp=(?P<time>\S+) .*event=announcement\.(?P<event>\S+)")


def formula_s(size_bytes: int, lanes: Sequence[tuple[float, float]]) -> float:
    """Return when the last byte of a transfer is confirmed if all lanes end together, T = (f + sum r_i R_i) / sum r_i.

    Args:
        size_bytes: the payload.
        lanes: of each its rate, bit/s of payload, and its round trip, seconds.

    >>> framing = Framing()
    >>> rates_bps = [converted_bps(bps, Layer.WIRE, Layer.PAYLOAD, framing) for bps in (10**9, 5 * 10**8)]
    >>> round(formula_s(2_688_000_000, [(rates_bps[0], 0.18), (rates_bps[1], 0.2)]), 2)
    15.41
    """
    return (8 * size_bytes + sum(bps * rtt_s for bps, rtt_s in lanes)) / sum(bps for bps, _ in lanes)


def report(seen: dict[str, Any]) -> dict[str, Any]:
    """Return the report of a run."""
    rtts_s = {lane: seen["circuits"][circuit]["rtt_us"] / 1e6 for lane, circuit in LANES.items()}
    wires_bps = {lane: seen["circuits"][circuit]["wire_bps"] for lane, circuit in LANES.items()}
    framing = Framing(seen["mtu_bytes"], is_ipv6=seen["is_ipv6"])
    bare = [(converted_bps(bps, Layer.WIRE, Layer.PAYLOAD, framing), rtts_s[lane]) for lane, bps in wires_bps.items()]
    runs = {name: transfer(one, one["size_bytes"], rtts_s) for name, one in seen["runs"].items()}
    deaths = {name: one["death"] for name, one in runs.items() if "death" in one}
    return {
        "idle_share": min(seen["idle_shares"], default=0.0),
        "size_bytes": seen["size_bytes"],
        "bare_circuits_s": round(formula_s(seen["size_bytes"], bare), 3),
        "took_s": {name: round(one["took_s"], 3) for name, one in runs.items()},
        "by_the_plan_s": {name: round(one["formula_s"], 3) for name, one in runs.items()},
        "rest_bytes": {name: one["rest_bytes"] for name, one in deaths.items()},
        "held_of_plan": {name: one["held_of_plan"] for name, one in runs.items() if one["own_paths"]},
        "burst_ms": {name: one["burst_ms"] for name, one in runs.items() if one["is_reserved"]},
        "by_windows": {name: one["by_windows"] for name, one in runs.items() if one["by_windows"]},
        "rest_took_s": {name: round(one["rest_took_s"], 3) for name, one in deaths.items()},
        "holes_s": {name: one["holes_s"] for name, one in deaths.items()},
        "rest_by_the_plan_s": {name: round(one["rest_at_plan_s"], 3) for name, one in deaths.items()},
        "runs": runs,
    }


def transfer(seen: dict[str, Any], size_bytes: int, rtts_s: dict[str, float]) -> dict[str, Any]:
    """Return the numbers of one transfer."""
    received: Received = seen["received"]
    totals = [(at_us / 1e6, sum(counts.values())) for at_us, counts in received]
    planned = most_planned(seen["looks"], 0, seen.get("died_us", seen["ended_us"]))
    lanes = [(planned[lane], rtt_s) for lane, rtt_s in rtts_s.items()]
    first, last = received[0][1], received[-1][1]
    found = {
        "promised_s": seen["promise"].get("promised_in_s"),
        "whole_s": (seen["ended_us"] - seen["started_us"]) / 1e6,
        "took_s": flow_s(totals) + max(rtts_s.values()),
        "planned_payload_bps": planned,
        "formula_s": formula_s(size_bytes, lanes),
        "bytes_by_lane": {lane: last[lane] - first[lane] for lane in LANES},
        "connections": seen["connections"],
        "lanes_used": len(seen["connections"]),
        "counted": seen["counted"],
        "events": {name: [event for _, event in told(seen["told"])].count(name) for name in BAD_EVENTS},
        "violations": seen["violations"],
    }
    found["of_both_lanes"] = found["formula_s"] / found["took_s"]
    if "died_us" in seen:
        found["death"] = death(seen, size_bytes, rtts_s, begun_s(totals))
    found |= {name: seen[name] for name in ("what", "is_reserved", "own_paths")}
    window = seen["window_bytes"]
    found["by_windows"] = (
        by_windows(found["bytes_by_lane"], size_bytes, found["took_s"], window, rtts_s) if window else {}
    )
    found |= {"burst_ms": burst_ms(received, planned), "held_of_plan": held_of_plan(received, planned)}
    return found


def by_windows(
    came: dict[str, int], size_bytes: int, took_s: float, window_bytes: int, rtts_s: dict[str, float]
) -> dict[str, float]:
    """Return what came by paths that have a window each, beside what windows of that size carry.

    That is a window a round trip by each path, and the last byte confirmed when ``formula_s`` says.

    Args:
        came: payload by lane.
        size_bytes: what was sent.
        took_s: from the first byte to the last one's confirmation.
        window_bytes: what a path has on its way at most.
        rtts_s: by lane.

    Returns:
        ``of_windows``, what they had of these rates; ``least_share``, what the path with less had of all bytes;
        ``came_of_sent``, all that came beside what was sent, of which some may have come twice.
    """
    rates = [(8 * window_bytes / rtt_s, rtt_s) for rtt_s in rtts_s.values()]
    total = sum(came.values())
    return {
        "of_windows": round(formula_s(size_bytes, rates) / took_s, 4),
        "least_share": round(min(came.values()) / total, 4),
        "came_of_sent": round(total / size_bytes, 4),
    }


def held_of_plan(received: Received, planned: dict[str, int]) -> dict[str, float]:
    """Return what each lane had of its plan, but for the first two seconds of the transfer and the last of them."""
    begins_us, ends_us = received[0][0] + PATHS_THERE_US, received[-1][0] - ENDS_US
    return {lane: round(bps(received, lane, begins_us, ends_us) / planned[lane], 4) for lane in LANES if planned[lane]}


def burst_ms(received: Received, planned: dict[str, int]) -> float:
    """Return how much a lane was ahead of its plan at most, over any time, as milliseconds of its rate.

    A meter lets through no more than its burst beside its rate, however long one looks (RFC 2697, section 3).
    """
    most_ms = 0.0
    for lane, rate_bps in planned.items():
        least_ms = float("inf")
        for at_us, counts in received if rate_bps else ():
            ahead_ms = counts[lane] * 8000 / rate_bps - at_us / 1000
            least_ms = min(least_ms, ahead_ms)
            most_ms = max(most_ms, ahead_ms - least_ms)
    return round(most_ms, 1)


def holes_s(totals: list[tuple[int, int]], died_us: int) -> list[tuple[float, float]]:
    """Return when after a death nothing came for longer than ``HOLE_US``, and for how long, seconds.

    What a path is tried with, and what ends a transfer, is nothing (``ENDED_BYTES``).

    >>> holes_s([(0, 0), (100_000, 9_000), (1_300_000, 9_040), (1_400_000, 20_000), (1_500_000, 30_000)], 50_000)
    [(0.05, 1.2)]
    """
    found, (from_us, had) = list[tuple[float, float]](), totals[0]
    for (before_us, _), (at_us, count) in pairwise(totals):
        if count <= had + ENDED_BYTES:
            continue
        if before_us - from_us > HOLE_US and before_us > died_us:
            found.append(((from_us - died_us) / 1e6, (before_us - from_us) / 1e6))
        from_us, had = at_us, count
    return found


def most_planned(looks: list[dict[str, Any]], from_us: int, until_us: int) -> dict[str, int]:
    """Return what each lane was planned for between two instants when that was most, bit/s of payload."""
    plans = [look["planned_bps"] for look in looks if from_us <= look["at_us"] < until_us]
    return {lane: max((plan.get(lane, 0) for plan in plans), default=0) for lane in LANES}


def death(seen: dict[str, Any], size_bytes: int, rtts_s: dict[str, float], begun_at_s: float) -> dict[str, Any]:
    """Return what a circuit's death has cost a transfer."""
    received, died_us, ended_us = seen["received"], seen["died_us"], seen["ended_us"]
    totals = [(at_us / 1e6, sum(counts.values())) for at_us, counts in received]
    last_us = round((begun_at_s + flow_s(totals)) * 1e6)
    look = next(look for look in seen["looks"] if look["at_us"] >= died_us + SETTLED_US)
    planned = {lane: look["planned_bps"].get(lane, 0) for lane in LANES}
    rest = size_bytes - sum(next(counts[lane] for at_us, counts in received if at_us >= died_us) - received[0][1][lane]
                            for lane in LANES)  # fmt: skip
    looks = [one for one in seen["looks"] if look["at_us"] <= one["at_us"] < last_us]
    others_us = (one["at_us"] for one in looks if any(one["planned_bps"].get(k, 0) != planned[k] for k in LANES))
    until_us = next(others_us, last_us) - LOOKED_AT_US  # one lane is done, or the time of the promise is over
    late_us = [at_us for at_us, event in told(seen["told"]) if event == "late" and at_us >= died_us]
    return {
        "allowed_ms": 1000 * max(rtts_s.values()) + ALLOWED_MS,
        "planned_payload_bps": planned,
        "back_at_plan_ms": {lane: back_ms(received, lane, planned[lane], died_us, until_us) for lane in LANES},
        "said_to_be_late_after_ms": (min(late_us) - died_us) / 1000 if late_us else None,
        "rest_bytes": rest,
        "rest_took_s": (last_us - died_us) / 1e6,
        "rest_at_plan_s": 8 * rest / sum(planned.values()),
        "holes_s": holes_s([(at_us, sum(counts.values())) for at_us, counts in received], died_us),
        "means_bps": {lane: round(bps(received, lane, died_us, ended_us)) for lane in LANES},
    }


def told(lines: list[str]) -> list[tuple[int, str]]:
    """Return when each event of an announcement was told, Unix time, and which.

    >>> told(["timestamp=2026-11-21T22:00:00.250000Z level=error event=announcement.late announcement=image"])
    [(1795298400250000, 'late')]
    """
    found = filter(None, map(_LINE.search, lines))
    return [(round(datetime.fromisoformat(one["time"]).timestamp() * 1e6), one["event"]) for one in found]
