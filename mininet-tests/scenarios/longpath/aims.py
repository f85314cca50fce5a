"""What the agent is to keep on a long line: the bounds that a number alone can show. Pure.

What is asked of curves, slice by slice, stands in ``test_longpath.py``.
"""

import statistics
from collections.abc import Callable
from typing import Any

from mininet_tests.lab.saturation import LEAST_IDLE_SHARE
from mininet_tests.testing.aims import Aim, above, at_least, at_most, below, equal, none_of, within

TOTAL = 0.01  # of the plan, over a second and more
MOST_WINDOWS = 2  # in flight, while a queue alone makes the path longer
LEAST_QUEUE_MS = 20  # or there was no queue
ENOUGH_RTTS = 2  # that losses may cost the end of a transfer
MOST_RTTS = 4  # that losses may cost a transfer in a thousand
SHARING = (
    "1 sends",
    "4 send",
    "27 send",
    "100 send",
    "96 stop",
    "23 connect and send",
    "23 close",
    "27 start at once",
    "100 start at once",
    "99 stop",
    "4 send beside 96 idle",
)
"""Phases in which all that send are to have the plan together."""
UNEQUAL = ("23 connect and send", "23 close")  # those whose number changes while they are measured


def aims(seen: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of those scenarios that were run, by name."""
    found: dict[str, Aim] = {}
    for name, saw in seen.items():
        parts = {"CPU idle": at_least(saw["idle_share"], LEAST_IDLE_SHARE)} if "idle_share" in saw else {}
        if name in PARTS:
            parts |= PARTS[name](saw)
        found |= {f"{name}: {aim}": one for aim, one in parts.items()}
    return found


def _sharing(saw: dict[str, Any]) -> dict[str, Aim]:
    found = {}
    for phase in (phase for phase in saw["phases"] if phase["name"] in SHARING):
        name, parts = phase["name"], phase["parts_bps"]
        found[f"{name}, share of the plan"] = within(phase["settled_bps"] / saw["planned_bps"], 1 - TOTAL, 1 + TOTAL)
        if name not in UNEQUAL:
            jain = sum(parts) ** 2 / (len(parts) * sum(part**2 for part in parts))
            found[f"{name}, Jain's index"] = above(jain, 0.995)
            found[f"{name}, worst part of the mean"] = above(min(parts) / statistics.fmean(parts), 0.95)
    return found


def _change(saw: dict[str, Any]) -> dict[str, Aim]:
    found = {
        f"change {number}, paced at the new rate after, s": at_most(max(change["paced_after_s"]), saw["rtt_s"])
        for number, change in enumerate(saw["changes"])
    }
    idle = saw["idle"]
    return found | {
        "waiting connection, off the new rate": below(_off(idle["first_paced_bps"], idle["rate_bps"]), TOTAL)
    }


def _fq(saw: dict[str, Any]) -> dict[str, Aim]:
    return {
        f"{name}, off the plan": below(_off(bps, saw["planned_bps"]), TOTAL) for name, bps in saw["rates_bps"].items()
    }


def _rtt(saw: dict[str, Any]) -> dict[str, Aim]:
    """Return how near what an agent tells of a line without a queue is to that: circuits' delays are measured by it."""
    return {
        f"{one['connections']} connections, phase {number}, least round trip told, of the line's": within(
            phase["told_ms"] / phase["rtt_ms"], 1, 1.02
        )
        for one in saw["seen"]
        for number, phase in enumerate(one["phases"])
    }


def _queue(saw: dict[str, Any]) -> dict[str, Aim]:
    found = {}
    for name, one in saw["queues"].items():
        paced = [sender["paced_bps"] / saw["planned_bps"] for sender in one["senders"]]
        most = max(sender["in_flight_segments"] for sender in one["senders"]) / saw["window_segments"]
        waited_ms = max(sender["rtt_ms"] for sender in one["senders"]) - saw["rtt_ms"]
        found[f"{name}, waited, ms"] = above(waited_ms, LEAST_QUEUE_MS)
        found[f"{name}, dropped"] = none_of(one["dropped"])
        found[f"{name}, paced at least, of the plan"] = at_least(min(paced), 1 - TOTAL)
        found[f"{name}, paced at most, of the plan"] = at_most(max(paced), 1.0001)
        found[f"{name}, windows in flight"] = below(most, MOST_WINDOWS)
    return found


def _tail(saw: dict[str, Any]) -> dict[str, Aim]:
    found, every = {}, []
    for one in saw["seen"]:
        more = one["more_rtts"]
        every += more
        share = sum(rtts <= ENOUGH_RTTS for rtts in more) / len(more)
        found[f"{one['rtt_ms']} ms, share within {ENOUGH_RTTS} round trips more"] = at_least(share, 0.9)
    within_all = sum(rtts <= ENOUGH_RTTS for rtts in every) / len(every)
    return found | {f"share within {ENOUGH_RTTS} round trips more": at_least(within_all, 0.92)}


def _one_percent(saw: dict[str, Any]) -> dict[str, Aim]:
    return {
        "transfers": at_least(saw["transfers"], 1_000),
        "share sent again": within(saw["retransmitted_segments"] / saw["sent_segments"], 0.008, 0.02),
        "transfers that fell off the plan": none_of(len(saw["fell"])),
        "round trips more, the latest": at_most(max(max(one["seen"]) for one in saw["more_rtts"]), MOST_RTTS),
        "fallbacks logged": none_of(saw["fallbacks"]),
    }


def _faults(saw: dict[str, Any]) -> dict[str, Aim]:
    found = {}
    for name, times in saw["faults"].items():
        found[f"{name}, fixed window gone after, s"] = at_most(times["own_after_s"], saw["lease_s"] + saw["rtt_s"])
        found[f"{name}, back after, s"] = below(times["back_after_s"], 15)
        found[f"{name}, then off the plan"] = below(_off(times["then_bps"], saw["planned_bps"]), TOTAL)
    return found


def _loss(saw: dict[str, Any]) -> dict[str, Aim]:
    back_s = 2 * saw["over_s"] + saw["hold_s"] + 1.5
    return {
        "held before, and in it": equal([saw["held_before"], saw["held_in_loss"]], [True, False]),
        "given back after, s": at_most(saw["own_after_s"], 2 * saw["over_s"] + 1),
        "told after, s": at_most(saw["told_after_s"], saw["own_after_s"] + 1.5),
        "taken again not before, s": at_least(saw["back_after_fall_s"], saw["hold_s"]),
        "taken again when it is over, s": at_most(saw["back_after_clear_s"], back_s),
    }


def _off(seen: float, expected: float) -> float:
    return abs(seen / expected - 1)


PARTS: dict[str, Callable[[dict[str, Any]], dict[str, Aim]]] = {
    "sharing": _sharing,
    "change": _change,
    "fq": _fq,
    "queue": _queue,
    "rtt": _rtt,
    "tail": _tail,
    "one-percent": _one_percent,
    "faults": _faults,
    "loss": _loss,
}
