"""What the paper's numbers are to be beside ours. Pure."""

from typing import Any

from mininet_tests.papers.freemon.tables import AIMS_RTTS
from mininet_tests.testing.aims import Aim, at_least, at_most, equal, none_of

ROUNDED_S = 0.005  # as the paper prints it
KEEP_BACK, UNKEPT = ("headway", "htb", "pause"), ("window",)
BACKGROUND_SHARE = 0.99  # of what images and database leave


def aims(summary: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of those parts of a summary that have been measured."""
    found = {
        "cells that failed": none_of(sorted(summary["failed"])),
        "cells on a full CPU": none_of(summary["saturated"]),
        "transfers on the fallback": none_of(_fallen(summary)),
        "cells faster than the limit": none_of(summary["runs_below_limit"]),
    }
    for connection, counts in (summary["table1"] or {}).items():
        for suffix in ("", "_by_mean"):
            name = f"table 1, {connection.replace('_', ' ')}: cells at or below the paper{suffix.replace('_', ' ')}"
            found[name] = equal(counts[f"cells_at_or_below_paper{suffix}"], counts["cells"])
    if table := summary["table2"]:
        found["table 2: cells at or below the paper"] = equal(table["cells_at_or_below_paper"], table["cells"])
        for name, most in zip(("median", "p95"), AIMS_RTTS, strict=True):
            worst = table[f"worst_{name}_over_limit_rtts"]
            if worst is not None:
                found[f"table 2: worst {name} over the limit, round trips"] = at_most(worst, most)
    for connection, one in (summary["figure3"] or {}).items():
        found[f"figure 3, {connection}: confirmed by, s"] = at_most(one["s"], one["paper_s"] + ROUNDED_S)
    for name, one in (summary["starts"] or {}).items():
        if one["way"] in KEEP_BACK:
            found[f"{name}: dropped at the port"] = none_of(one["queue_dropped"])
    for rate, both in (summary["figure2"] or {}).items():
        found[f"figure 2, {rate}: moments above the plan"] = none_of(both["violations"])
    if night := summary["night"]:
        found["night: images later than their deadline"] = none_of(night["late"])
        found["night: background's share of what is left"] = at_least(
            night["background_share_of_leftover"], BACKGROUND_SHARE
        )
    return found


def _fallen(summary: dict[str, Any]) -> int:
    """Return how many transfers were on the fallback, but for starts that nothing keeps from the port's buffer."""
    starts = summary["starts"] or {}
    return sum(n for name, n in summary["on_fallback"].items() if starts.get(name, {}).get("way", "") not in UNKEPT)
