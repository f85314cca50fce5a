"""From what ``run.py`` saw to the two variants side by side: when all was read, and what others got meanwhile. Pure."""

from itertools import pairwise
from typing import Any

from mininet_tests.lab.saturation import LEAST_IDLE_SHARE, verdict
from mininet_tests.probes.series import Series
from mininet_tests.site.lsst import BACKGROUND, IMAGE_HOSTS

IMAGE_FLOW = f"image/{IMAGE_HOSTS[0]}"
SENDS_ABOVE = 0.1  # of its first rate: below, it stands by
HELD_BELOW = 0.6  # of its first rate: the plan has followed the receiver
CLOSED_SHARE = 0.5  # of the time between two looks: the receiver's buffer is full
FIRST_RTTS_US = 1_000_000  # the first round trips, in which the window is small, do not count
SETTLED_US = 1_000_000  # what was under way has arrived


def report(seen: dict[str, Any]) -> dict[str, Any]:
    """Return the figures."""
    idle = [verdict(one["cpu_idle_shares"]) for one in seen["variants"].values()]
    return {
        "rate_bps": seen["rate_bps"],
        "size_bytes": seen["size_bytes"],
        "reads_bps": seen["reads_bps"],
        "variants": {name: _variant(one, seen["reads_bps"]) for name, one in seen["variants"].items()},
        "cpu": {"least_idle_share": min(one.least_idle_share for one in idle), "needed_idle_share": LEAST_IDLE_SHARE},
        "valid": not any(one.saturated for one in idle),
    }


def arrived(one: dict[str, Any]) -> Series:
    """Return the payload received of each sender."""
    return Series(
        [at_us for at_us, _ in one["received"]],
        {host: [counts[host] for _, counts in one["received"]] for host in (IMAGE_HOSTS[0], BACKGROUND)},
    )


def image_rates(one: dict[str, Any]) -> list[tuple[int, int]]:
    """Return what the image was planned for, bit/s of payload, and since when, from when it had demand."""
    looks = [(look["at_us"], look["planned_bps"].get(IMAGE_FLOW, 0)) for look in one["looks"]]
    most_bps = max(bps for _, bps in looks)
    first = next(number for number, (_, bps) in enumerate(looks) if bps == most_bps)
    rates = [(at_us, bps) for at_us, bps in looks[first:] if bps > SENDS_ABOVE * most_bps]
    return [rates[0], *(after for before, after in pairwise(rates) if before[1] != after[1])]


def _variant(one: dict[str, Any], reads_bps: int) -> dict[str, Any]:
    marks, rates = one["marks"], image_rates(one)
    began_us, full_us = marks["announced_us"], _full_us(one)
    held_us = next((at_us for at_us, bps in rates if bps < HELD_BELOW * rates[0][1]), None)
    held = held_us is not None and held_us + SETTLED_US < marks["confirmed_us"]
    return {
        "promised_s": one["promised_in_s"],
        "confirmed_s": (marks["confirmed_us"] - began_us) / 1e6,
        "read_s": (marks["read_us"] - began_us) / 1e6,
        "background_bytes": _bytes(one, BACKGROUND, began_us, marks["read_us"]),
        "full_after_s": None if full_us is None else (full_us - began_us) / 1e6,
        "held_after_full_s": None if held_us is None or full_us is None else (held_us - full_us) / 1e6,
        "held_bps": [bps for at_us, bps in rates if held_us is not None and held_us <= at_us < marks["confirmed_us"]],
        "background_of_the_rest_while_held": _rate_bps(one, held_us + SETTLED_US, marks["confirmed_us"])
        / (sum(one["looks"][0]["planned_bps"].values()) - reads_bps)
        if held and held_us is not None
        else None,
        "sent_again": one["sent_again"],
        "violations": len(one["violations"]),
    }


def _full_us(one: dict[str, Any]) -> int | None:
    """Return when the receiver's buffer was full first: from then on its window was closed for most of the time."""
    begins_us = one["looks"][0]["at_us"] + FIRST_RTTS_US
    for before, after in pairwise(one["looks"]):
        closed_us = after["window_limited_us"] - before["window_limited_us"]
        if before["at_us"] >= begins_us and closed_us > CLOSED_SHARE * (after["at_us"] - before["at_us"]):
            return int(before["at_us"])
    return None


def _bytes(one: dict[str, Any], host: str, from_us: int, until_us: int) -> int:
    counts = [seen[host] for at_us, seen in one["received"] if from_us <= at_us <= until_us]
    return counts[-1] - counts[0] if counts else 0


def _rate_bps(one: dict[str, Any], from_us: int, until_us: int) -> float:
    return _bytes(one, BACKGROUND, from_us, until_us) * 8e6 / (until_us - from_us)
