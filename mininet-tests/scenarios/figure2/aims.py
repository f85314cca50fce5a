"""What a run of figure 2 is to keep. Pure."""

from typing import Any

from mininet_tests.testing.aims import Aim, at_least, at_most, none_of, within

HANDOVER_S = 0.2  # for the change of shares at the announcement
ROUND_TRIPS = 3  # one opens the window; one for a loss at the very end, another for its resending lost
START_GAP_MS, END_GAP_MS = 30.0, 45.0  # as in the hand-over's own scenario, in bins of 5 ms; the wish is 20
FLOOR_DEPARTURES_BITS = 6_000_000  # beside the image a floor of 1% departs each 2,400,000 bits: 24 ms at 100 Mbit/s
LATER_SHARE = 1.05  # what the disk drains is measured; a round trip and the hand-over come to it
OTHERS_GET = 0.95


def gap_bound_ms(most_ms: float, rate_bps: int, bin_ms: float) -> float:
    """Return how long the circuit may be idle at a change, as far as bins and the floor's departures tell.

    >>> gap_bound_ms(30.0, 10**9, 10.485), gap_bound_ms(30.0, 10**8, 5.0)
    (30.0, 60.0)
    """
    return max(most_ms, 2 * bin_ms, 1000 * FLOOR_DEPARTURES_BITS / rate_bps)


def aims(report: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of a run's report."""
    urgent, predictable, handover = report["urgent"], report["predictable"], report["handover"]
    most_s = urgent["limit_seconds"] + ROUND_TRIPS * report["rtt_ms"] / 1000 + HANDOVER_S
    fine = report["rate_bps"], handover["bin_ms"]
    across = {"image, announced to confirmed, s": within(urgent["seconds"], urgent["limit_seconds"], most_s)}
    return {
        **(_to_a_disk(report["disk"]) if "disk" in report else across),
        "CPU idle, least in a second": at_least(report["cpu"]["least_idle_share"], report["cpu"]["needed_idle_share"]),
        "utilisation, all flows up": at_least(report["utilisation"], 0.99),
        "database, least in a second": at_least(predictable["min_share"], 0.048),
        "database, most in a second": at_most(predictable["max_share"], 0.052),
        "gap at the start, ms": at_most(handover["start_gap_ms"], gap_bound_ms(START_GAP_MS, *fine)),
        "gap at the end, ms": at_most(handover["end_gap_ms"], gap_bound_ms(END_GAP_MS, *fine)),
        "moments above the plan": none_of(report["plan"]["violations"]),
        "segments sent again": within(report["loss_seen"], *report["loss_interval"]),
        "allocations that fell back": none_of(report["fallbacks"]),
        "packets lost in the switches": none_of(sum(report["edge_drops_packets"].values())),
    }


def _to_a_disk(disk: dict[str, Any]) -> dict[str, Aim]:
    """Return what is aimed at where the image is written to a slow disk."""
    return {
        "image on the disk, of the least time for it": at_most(disk["stored_s"] / disk["least_s"], LATER_SHARE),
        "background, of what the disk leaves": at_least(disk["background_of_the_rest"], OTHERS_GET),
    }
