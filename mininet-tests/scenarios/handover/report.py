"""From what ``run.py`` saw to two variants side by side: how long the circuit was idle at each change. Pure."""

from typing import Any

from mininet_tests.lab.saturation import LEAST_IDLE_SHARE, verdict
from mininet_tests.probes.series import GAP_BELOW, LEAST_BIN_US, Series, longest_gap_ms, rates_bps
from topology.wire import Framing, Layer, converted_bps

BIN_US = LEAST_BIN_US  # every packet is single: 200 of them at 500 Mbit/s
BEFORE_US, AFTER_US = 100_000, 800_000  # around the first and the last moment of a change
RTT_US = 180_000


def series(run: dict[str, Any]) -> Series:
    """Return the payload received of each sender."""
    at_us = [t for t, _ in run["received"]]
    return Series(at_us, {name: [counts[name] for _, counts in run["received"]] for name in run["senders"]})


def report(run: dict[str, Any]) -> dict[str, Any]:
    """Return the two variants, and whether the run is worth anything."""
    limit_bps = converted_bps(run["rate_bps"], Layer.WIRE, Layer.PAYLOAD, Framing())
    received, idle = series(run), verdict(run["cpu_idle_shares"])
    return {
        "rate_bps": run["rate_bps"],
        "payload_limit_bps": limit_bps,
        "rtt_ms": RTT_US / 1000,
        "gap_below": GAP_BELOW,
        "bin_ms": BIN_US / 1000,
        "variants": [_variant(image, received, limit_bps, run["part_bytes"]) for image in run["images"]],
        "violations": len(run["violations"]),
        "cpu": {"least_idle_share": idle.least_idle_share, "needed_idle_share": LEAST_IDLE_SHARE},
        "valid": not idle.saturated,
    }


def changes(marks: dict[str, int]) -> dict[str, tuple[int, int]]:
    """Return from when until when each of the two changes is looked at, microseconds.

    What is sent arrives half a round trip later; what the last byte's host has sent before it, a whole one before it is
    confirmed.
    """
    return {
        "start": (marks["announced_us"] - BEFORE_US, marks["begun_us"] + 2 * RTT_US + AFTER_US),
        "end": (marks["confirmed_us"] - RTT_US - BEFORE_US, marks["released_us"] + AFTER_US),
    }


def _variant(image: dict[str, Any], received: Series, limit_bps: int, part_bytes: int) -> dict[str, Any]:
    """Return one image's figures."""
    marks, total = image["marks"], received.total()
    found = {name: rates_bps(received.at_us, total, span, BIN_US) for name, span in changes(marks).items()}
    return {
        "connection": "warm" if image["warm"] else "fresh",
        **{f"{name}_gap_ms": longest_gap_ms(rates, GAP_BELOW * limit_bps, BIN_US) for name, rates in found.items()},
        **{f"{name}_lost_ms": round(_lost_ms(rates, limit_bps), 1) for name, rates in found.items()},
        "seconds": (marks["confirmed_us"] - marks["announced_us"]) / 1e6,
        "promised_seconds": (marks["promised_us"] - marks["announced_us"]) / 1e6,
        "bytes": 2 * part_bytes,
        "drops": sum(image["drops"].values()),
        "retransmitted_segments": image["retransmitted_segments"],
    }


def _lost_ms(rates: list[float], limit_bps: int) -> float:
    """Return for how long the circuit would have to be idle to carry as little less."""
    return sum(max(0.0, 1 - rate / limit_bps) for rate in rates) * BIN_US / 1000
