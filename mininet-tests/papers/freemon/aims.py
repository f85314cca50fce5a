"""What the paper's numbers are to be beside ours. Pure."""

from dataclasses import replace
from typing import Any

from mininet_tests.papers.freemon.tables import AIMS_RTTS
from mininet_tests.testing.aims import Aim, at_least, at_most, equal, none_of

ROUNDED_S = 0.005  # as the paper prints it
KEEP_BACK, UNKEPT = ("headway", "htb", "pause"), ("window",)
BACKGROUND_SHARE = 0.99  # of what images and database leave


def aims(summary: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of those parts of a summary that have been measured, and that all has been."""
    found = {
        "cells that failed": none_of(sorted(summary["failed"])),
        "cells not measured": none_of([f"{name}: {count}" for name, count in summary["not_measured"].items()]),
        "cells on a full CPU": none_of(summary["saturated"]),
        "transfers on the fallback": _none_fell(summary),
        "transfers of which the fallback was not noted": none_of(summary["fallback_not_noted"]),
        "cells faster than the limit": none_of(summary["runs_below_limit"]),
    }
    for connection, counts in (summary["table1"] or {}).items():
        for suffix in ("", "_by_mean") if counts["cells"] else ():
            name = f"table 1, {connection.replace('_', ' ')}: cells at or below the paper{suffix.replace('_', ' ')}"
            found[name] = equal(counts[f"cells_at_or_below_paper{suffix}"], counts["cells"])
        found |= _over_limit(f"table 1, {connection.replace('_', ' ')}", counts)
    if table := summary["table2"]:
        found["table 2: cells at or below the paper"] = equal(table["cells_at_or_below_paper"], table["cells"])
        found |= _over_limit("table 2", table)
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


def _over_limit(name: str, table: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of a table's worst cells; none of a table that has no cell with a round trip."""
    worst = {what: table[f"worst_{what}_over_limit_rtts"] for what in ("median", "p95")}
    return {
        f"{name}: worst {what} over the limit, round trips": at_most(rtts, most)
        for (what, rtts), most in zip(worst.items(), AIMS_RTTS, strict=True)
        if rtts is not None
    }


def _none_fell(summary: dict[str, Any]) -> Aim:
    """Return the aim that no transfer was on the fallback, but for starts that nothing keeps from the port's buffer.

    Of a transfer of which it was not noted nobody knows that it was not.
    """
    starts = summary["starts"] or {}
    kept = (n for name, n in summary["on_fallback"].items() if starts.get(name, {}).get("way", "") not in UNKEPT)
    aim = none_of(sum(kept))
    return replace(aim, seen=None, ok=False) if aim.ok and summary["fallback_not_noted"] else aim
