"""How exactly each layer lets through what it was set to. Pure."""

from collections.abc import Iterable
from typing import Any

from mininet_tests.lab.saturation import LEAST_IDLE_SHARE
from mininet_tests.testing.aims import Aim, above, at_least, below, none_of

WITHIN = 0.001  # of what is expected; a tag that is counted where it is not, or the reverse, is 0.0026 at MTU 1500
WITHIN_A_SUPER_PACKET = 0.005  # a meter drops them whole, and a few hundred pass while it is measured
FLOODED = 20  # packets that a meter has dropped, or the flood was none


def aims(report: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of a report."""
    rows = report["rows"]
    found = {"CPU idle": at_least(report["idle_share"], LEAST_IDLE_SHARE)}
    for row in rows:
        found[f"{row_name(row)}: error"] = below(abs(row["error"]), within(row))
        found |= {f"{row_name(row)}: {name}": aim for name, aim in _above_set(row).items()}
    dropped = {layer: [r["dropped"] for r in rows if r["layer"] == layer] for layer in ("pacing", "meter")}
    found["packets that the plan drops of its own hosts"] = none_of(sum(dropped["pacing"]))
    found["packets that a flooded meter drops, least"] = above(min(dropped["meter"], default=None), FLOODED)
    return found


def within(row: dict[str, Any]) -> float:
    """Return what a figure may be off."""
    return WITHIN_A_SUPER_PACKET if meters_super_packets(row) else WITHIN


def meters_super_packets(row: dict[str, Any]) -> bool:
    """Return whether a meter sees many segments as one packet, and charges one header for all of them."""
    return bool(row["layer"] == "meter" and not row["single_packets"])


def _above_set(row: dict[str, Any]) -> dict[str, Aim]:
    """Return what is let through against the rate that was set: the same wherever each segment's headers count."""
    if not meters_super_packets(row):
        return {"above what was set": below(abs(row["above_set"]), WITHIN)}
    headers = 66 / (row["mtu_bytes"] - 52)
    return {
        "above what was set, at most a segment's headers": below(row["above_set"], headers + within(row)),
        "above what was set, never below it": above(row["above_set"], -within(row)),
    }


def row_name(row: dict[str, Any]) -> str:
    """Return what a row is of."""
    words: Iterable[str] = (
        row["layer"],
        f"MTU {row['mtu_bytes']}",
        ("tag in the frame" if row["tags_in_frames"] else "tagged") if row["vlan"] else "untagged",
        "single packets" if row["single_packets"] else "super-packets",
    )
    return ", ".join(words)
