"""From what a run saw to the numbers of ``report.json``. Pure."""

from math import exp
from statistics import mean
from typing import Any

from controller.plan.invariant import Layers, violations
from controller.plan.policy import DEFAULT_POLICY
from mininet_tests.lab.saturation import LEAST_IDLE_SHARE, verdict
from mininet_tests.probes.series import GAP_BELOW, LEAST_BIN_US, Series, at, longest_gap_ms, rates_bps
from mininet_tests.site.lsst import BACKGROUND, DATABASE, IMAGE_HOSTS
from topology.network import Hop
from topology.protocol import FlowClass
from topology.wire import Framing, Layer, converted_bps, transfer_us

BIN_PACKETS = 20  # fewer a bin, and chance alone would take it below GAP_BELOW
SUPER_PACKET_BITS = 65_536 * 8
AROUND_US = 3_000_000  # how far from a change a gap is looked for
HEADERS_BYTES = 52
DATABASE_PPM = DEFAULT_POLICY.classes[FlowClass.PREDICTABLE].cap_ppm
GUARANTEED_PPM = DEFAULT_POLICY.classes[FlowClass.BACKGROUND].guarantee_ppm
LOSS_CONFIDENCE = 0.99
# Freemon 2013: 24.5 s for the image (sections IV.C and V.B), 99.6% of the theoretical maximum (IV.C), gaps of seconds
# (figure 2), 230 of 2.046 million packets sent again (IV.C).
PAPER = {"urgent.seconds": 24.5, "utilisation": 0.996, "loss_seen": 230 / 2.046e6}


def series(run: dict[str, Any]) -> Series:
    """Return the payload series of a run's raw counters."""
    samples = run["received"]
    hosts = samples[0][1]
    return Series(
        [at_us for at_us, _ in samples],
        {h: [counts[h][0] - HEADERS_BYTES * counts[h][1] for _, counts in samples] for h in hosts},
    )


def bin_us(rate_bps: int, *, single_packets: bool) -> int:
    """Return how fine the handover gaps can be measured, microseconds.

    >>> bin_us(10**9, single_packets=True), bin_us(10**9, single_packets=False)
    (5000, 10485)
    """
    return (
        LEAST_BIN_US if single_packets else max(LEAST_BIN_US, BIN_PACKETS * SUPER_PACKET_BITS * 1_000_000 // rate_bps)
    )


def poisson_interval(expected: float, confidence: float) -> tuple[int, int]:
    """Return the central interval that holds a Poisson count with at least this probability.

    >>> poisson_interval(4.0, 0.99)
    (0, 10)
    """
    tail = (1 - confidence) / 2
    term = total = exp(-expected)
    k, low = 0, None
    while True:
        if low is None and total > tail:
            low = k
        if total >= 1 - tail:
            return low or 0, k
        k += 1
        term *= expected / k
        total += term


def report(run: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    """Return the report of a run.

    Args:
        run: what the scenario wrote.
        facts: ``mode``, ``rtt_ms``, ``loss_set`` (a fraction) and whatever else is to stand in the report.
    """
    scenario, marks, single = run["scenario"], run["marks"], run["scenario"]["single_packets"]
    payload_bps = converted_bps(scenario["rate_bps"], Layer.WIRE, Layer.PAYLOAD, Framing())
    received = series(run)
    cpu = verdict(run["cpu_idle_shares"])
    return {
        **facts,
        "rate_bps": scenario["rate_bps"],
        "payload_limit_bps": payload_bps,
        "loss_model": "packet" if single else "super-packet",
        **_loss(run, facts["loss_set"]),
        "urgent": _urgent(run, facts["rtt_ms"]),
        "utilisation": _utilisation(received, marks, payload_bps),
        "predictable": _predictable(received, marks, payload_bps),
        "handover": _handover(received, marks, payload_bps, bin_us(scenario["rate_bps"], single_packets=single)),
        "plan": _plan(run),
        "fallbacks": run["fallbacks"],
        "edge_drops_packets": run["drops_packets"]["edge"],
        "cpu": {"least_idle_share": cpu.least_idle_share, "needed_idle_share": LEAST_IDLE_SHARE},
        "valid": not cpu.saturated,
        **_stored(run, received, payload_bps),
    }


def _urgent(run: dict[str, Any], rtt_ms: float) -> dict[str, Any]:
    """Return the image's size and time, and the least time that its share of the plan allows."""
    scenario, marks = run["scenario"], run["marks"]
    share_bps = image_bps(run)
    size_bytes = 2 * scenario["part_bytes"]
    return {
        "bytes": size_bytes,
        "seconds": (marks["confirmed_us"] - marks["announced_us"]) / 1e6,
        "limit_seconds": transfer_us(size_bytes, share_bps, round(rtt_ms * 1000)) / 1e6,
        "share_payload_bps": share_bps,
    }


def _stored(run: dict[str, Any], received: Series, payload_bps: int) -> dict[str, Any]:
    """Return when the image was on the disk, and what the background had of what the disk leaves; nothing without one.

    Beside an image that nothing slows, background has no more than its guarantee.
    """
    disk, marks = run.get("disk"), run["marks"]
    if disk is None:
        return {}
    begin, end = _flowing(received, marks)
    had_bps, *image_had_bps = (
        (at(received.at_us, values, end) - at(received.at_us, values, begin)) * 8e6 / (end - begin)
        for values in (received.hosts[host] for host in (BACKGROUND, *IMAGE_HOSTS))
    )
    database_bps = payload_bps * DATABASE_PPM / 1e6
    guaranteed_bps = payload_bps * GUARANTEED_PPM / 1e6
    return {
        "disk": {
            **disk,
            "stored_s": (marks["stored_us"] - marks["announced_us"]) / 1e6,
            "promised_stored_s": (marks["promised_stored_us"] - marks["announced_us"]) / 1e6,
            "least_s": 16 * run["scenario"]["part_bytes"] / disk["drain_bps"],
            "background_bps": had_bps,
            "background_guaranteed_bps": guaranteed_bps,
            "background_of_the_rest": had_bps / (payload_bps - database_bps - sum(image_had_bps)),
        }
    }


def image_bps(run: dict[str, Any]) -> int:
    """Return what the image was planned for at the most, all senders together, bit/s of payload."""
    most_bps: int = max(
        sum(a["payload_bps"] for a in plan["desired"]["allocations"] if a["class"] == "urgent")
        for _, plan in run["plan"]
    )
    return most_bps


def _flowing(received: Series, marks: dict[str, int]) -> tuple[int, int]:
    """Return from when until when both parts of the image came in at once, microseconds."""
    begins, ends = [], []
    for host in IMAGE_HOSTS:
        values = received.hosts[host]
        base = at(received.at_us, values, marks["announced_us"])
        full = values[-1] - base
        begins.append(next(t for t, v in zip(received.at_us, values, strict=True) if v - base > 0.02 * full))
        ends.append(next(t for t, v in zip(received.at_us, values, strict=True) if v - base > 0.99 * full))
    return max(begins), min(ends)


def _utilisation(received: Series, marks: dict[str, int], payload_bps: int) -> float:
    """Return received payload over the payload limit, in the time with all flows up."""
    begin, end = _flowing(received, marks)
    total = received.total()
    moved = at(received.at_us, total, end) - at(received.at_us, total, begin)
    return moved * 8e6 / (end - begin) / payload_bps


def _predictable(received: Series, marks: dict[str, int], payload_bps: int) -> dict[str, float]:
    """Return the least and the largest share of the circuit that the database had in any second."""
    span = marks["steady_us"], marks["end_us"]
    shares = [r / payload_bps for r in rates_bps(received.at_us, received.hosts[DATABASE], span, 1_000_000)]
    return {"min_share": min(shares), "max_share": max(shares), "mean_share": mean(shares)}


def _handover(received: Series, marks: dict[str, int], payload_bps: int, width_us: int) -> dict[str, float]:
    """Return the longest gap around each change, and how fine it was measured."""
    total = received.total()
    changes = {
        "start_gap_ms": (marks["announced_us"] - 500_000, marks["announced_us"] + AROUND_US),
        "end_gap_ms": (marks["confirmed_us"] - AROUND_US, min(marks["released_us"] + AROUND_US, marks["end_us"])),
    }
    gaps = {
        name: longest_gap_ms(rates_bps(received.at_us, total, span, width_us), GAP_BELOW * payload_bps, width_us)
        for name, span in changes.items()
    }
    return {**gaps, "bin_ms": width_us / 1000}


def _plan(run: dict[str, Any]) -> dict[str, Any]:
    """Return how often a layer let through more than the next one could hold.

    Ten times a second as the controller has it confirmed; three times as switches and kernel themselves show it.
    """
    seen = [plan for _, plan in run["plan"] if plan]
    violated = [plan["violations"] for plan in seen if plan["violations"]]
    read = [
        _read_violations(run, at_us, link, layers)
        for at_us, by_link in run["read_back"]
        for link, layers in by_link.items()
    ]
    return {
        "samples": len(seen) + len(read),
        "violations": len(violated) + sum(1 for found in read if found),
        "violated": [*violated, *(found for found in read if found)][:5],
    }


def _read_violations(run: dict[str, Any], at_us: int, link: str, layers: dict[str, dict[FlowClass, int]]) -> list[str]:
    """Return what is wrong with the meters and queues of a link, read back, under the hosts as they were seen last."""
    known = [(seen_us, plan) for seen_us, plan in run["plan"] if plan]
    plan = next((plan for seen_us, plan in reversed(known) if seen_us <= at_us), known[0][1])
    meters, queues, then = layers["meters_bps"], layers["queues_bps"], plan["layers"][link]
    held = Layers(then["hosts_frame_bps"], meters, queues, then["circuit_frame_bps"])
    missing = [f"{link}: {c} has no meter or no queue" for c in FlowClass if c not in meters or c not in queues]
    return [*missing, *(str(violation) for violation in violations({Hop(*link.split("->")): held}))]


def _loss(run: dict[str, Any], loss_set: float) -> dict[str, Any]:
    """Return what was retransmitted, and between which bounds it should lie.

    The line loses packets; one of them is a segment or, in the super-packet model, up to 44. The segments lost are
    then a compound Poisson number: taken here as a Poisson number of equal packets with the same mean and variance,
    ``n = (sum of s)**2 / (sum of s**2)`` packets for sizes s.
    """
    segments = {h: sum(c["sent_segments"] for c in ends) for h, ends in run["last_connections"].items()}
    packets = {h: count[1] for h, count in run["received"][-1][1].items()}
    sent = sum(segments.values())
    retransmitted = sum(c["retransmitted_segments"] for ends in run["last_connections"].values() for c in ends)
    equal_packets = sent**2 / sum(segments[h] ** 2 / packets[h] for h in segments if packets[h])
    low, high = poisson_interval(equal_packets * loss_set, LOSS_CONFIDENCE)
    return {
        "loss_seen": retransmitted / sent,
        "loss_interval": [low / equal_packets, high / equal_packets],
        "loss_interval_confidence": LOSS_CONFIDENCE,
        "line_dropped_packets": run["drops_packets"]["line"],
        "sent_segments": sent,
        "retransmitted_segments": retransmitted,
        "segments_per_packet": sent / sum(packets.values()),
    }
