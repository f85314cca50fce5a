"""Tables 1 and 2, as numbers and on the page. Pure."""

from collections.abc import Sequence
from decimal import Decimal
from itertools import zip_longest
from typing import Any

from hostagent.kernel.plan import Tuning
from mininet_tests.papers.freemon.cells import CONNECTIONS
from mininet_tests.papers.freemon.limits import (
    LATENCIES_MS,
    LOSSES_PERCENT,
    SEGMENTS,
    SUPER_PACKETS,
    Printed,
    rounded,
    table1,
    table2,
)
from mininet_tests.papers.freemon.markdown import table
from mininet_tests.papers.freemon.result import Result, grid

HOLD_S = Tuning().loss_hold_us / 1e6
AIMS_RTTS = (1.0, 2.0)  # median and 95% of the transfers above the limit, in round trips


def table2_numbers(found: dict[str, Result]) -> dict[str, Any] | None:
    """Return how many cells of Table 2 are at or below the paper, and how far above the limit the worst are."""
    whole, printed, single = grid(found, CONNECTIONS[0], SUPER_PACKETS), table2(), _single(found, CONNECTIONS[0])
    if not whole and not single["cells_per_packet"]:
        return None
    return {
        "cells": len(whole),
        "cells_of": len(LATENCIES_MS) * len(LOSSES_PERCENT),
        "cells_at_or_below_paper": sum(rounded(one.median_s) <= printed[key] for key, one in whole.items()),
        **single,
    }


def table1_numbers(found: dict[str, Result]) -> dict[str, Any] | None:
    """Return, by who connects, how many cells of Table 1 are at or below the paper, and how far above the limit."""
    printed = table1()
    counts = {}
    for connection in CONNECTIONS[1:]:
        cells = grid(found, connection, SUPER_PACKETS)
        counts[connection.replace(" ", "_")] = {
            "cells": len(cells),
            "cells_at_or_below_paper": sum(rounded(one.median_s) <= printed[key].median for key, one in cells.items()),
            "cells_at_or_below_paper_by_mean": sum(
                rounded(one.mean_s) <= printed[key].mean for key, one in cells.items()
            ),
            **_single(found, connection),
        }
    return counts if any(one["cells"] or one["cells_per_packet"] for one in counts.values()) else None


def _single(found: dict[str, Result], connection: str) -> dict[str, Any]:
    """Return how far above the limit, and the ideal, the worst cells are in which packets are lost one by one."""
    cells = grid(found, connection, SEGMENTS).values()
    long = [one for one in cells if one.cell["rtt_ms"]]  # without latency there is no round trip to count by
    return {
        "cells_per_packet": len(cells),
        "cells_with_round_trip": len(long),
        "worst_median_over_limit_rtts": max((one.over_limit_rtts(one.median_s) for one in long), default=None),
        "worst_p95_over_limit_rtts": max((one.over_limit_rtts(one.p95_s) for one in long), default=None),
        "cells_within_aims": sum(within_aims(one) for one in long),
        "cells_within_aims_at_best": sum(within_aims(one, ideal=True) for one in long),
        "worst_median_over_ideal_rtts": max((_over_ideal_rtts(one, one.median_s, 0.5) for one in long), default=None),
        "worst_p95_over_ideal_rtts": max((_over_ideal_rtts(one, one.p95_s, 0.95) for one in long), default=None),
    }


def within_aims(one: Result, *, ideal: bool = False) -> bool:
    """Return whether a cell, or a perfect sender in its place, is as near to the limit as is asked for."""
    times_s = (one.ideal_s(0.5), one.ideal_s(0.95)) if ideal else (one.median_s, one.p95_s)
    return all(one.over_limit_rtts(s) <= most for s, most in zip(times_s, AIMS_RTTS, strict=True))


def _over_ideal_rtts(one: Result, time_s: float, share: float) -> float:
    return one.over_limit_rtts(time_s) - one.over_limit_rtts(one.ideal_s(share))


def tables(found: dict[str, Result], numbers: dict[str, Any]) -> list[str]:
    """Return the page's section on both tables, in parts."""
    printed1, printed2 = table1(), table2()
    parts = ["## Tables 1 and 2: 268.8 MB at 1 Gbit/s\n"]
    if numbers["table2"]:
        parts.append(_verdict(numbers["table2"]))
    if any(one["cells"] for one in (numbers["table1"] or {}).values()):
        parts.append(_means(numbers["table1"]))
    parts.append(_worst(found, numbers))
    parts.append(_not_noted([one for one in found.values() if one.cell["experiment"] == "table"]))
    for connection in CONNECTIONS:
        reused = connection == CONNECTIONS[0]
        printed = (
            {key: (s,) for key, s in printed2.items()}
            if reused
            else {key: (one.median, one.mean) for key, one in printed1.items()}
        )
        title = "Reused connections (Table 2)" if reused else f"New connections: the {connection} (Table 1)"
        theirs = "the paper's median (it prints no mean)" if reused else "the paper's"
        parts.append(
            f"### {title}, super-packets\n\n"
            f"Median and mean in seconds, and {theirs} in brackets; **bold** is above it.\n"
        )
        parts.append(_grid(grid(found, connection, SUPER_PACKETS), lambda key, one, p=printed: _beside(one, p[key])))
        parts.append(
            f"### {title}, packets\n\nMedian in seconds, and in brackets how far it and 95% of the transfers are\n"
            "above the limit, in round trips; **bold** is above 1, or above 2. After the stroke: of the ideal.\n"
        )
        parts.append(_grid(grid(found, connection, SEGMENTS), lambda _, one: _over(one)))
    parts.append(_spread(found, printed1))
    return parts


def _verdict(numbers: dict[str, Any]) -> str:
    """Return how many cells of Table 2 are at or below the paper."""
    return (
        f"Super-packets, reused connections: {numbers['cells_at_or_below_paper']} of {numbers['cells']} measured cells"
        f" (of {numbers['cells_of']})\nare at or below the paper, rounded as it rounds.\n\n"
        "![Medians over latency, beside the paper's](results/table2.png)\n"
    )


def _means(numbers: dict[str, Any]) -> str:
    """Return how many cells of Table 1 are at or below the paper."""
    counts = [
        f"the {connection.replace('_', ' ')}, {one['cells_at_or_below_paper']} by the median and"
        f" {one['cells_at_or_below_paper_by_mean']} by the mean, of {one['cells']}"
        for connection, one in numbers.items()
        if one["cells"]
    ]
    return "New connections, super-packets, cells at or below the paper:\n" + ";\n".join(counts) + ".\n"


def _worst(found: dict[str, Result], numbers: dict[str, Any]) -> str:
    """Return how far the worst cells of both tables are above the limit and the ideal, where packets are lost."""
    parts = {"reused connections (Table 2)": numbers["table2"]}
    parts |= {f"the {who.replace('_', ' ')} (Table 1)": one for who, one in (numbers["table1"] or {}).items()}
    rows = [
        [
            name,
            f"{one['cells_with_round_trip']} of {one['cells_per_packet']}",
            *(
                "-" if (rtts := one[f"worst_{what}_over_{bound}_rtts"]) is None else f"{rtts:.2f}"
                for bound in ("limit", "ideal")
                for what in ("median", "p95")
            ),
            *(str(one[key]) for key in ("cells_within_aims", "cells_within_aims_at_best")),
        ]
        for name, one in parts.items()
        if one and one["cells_per_packet"]
    ]
    counts = [len(one.times_s) for connection in CONNECTIONS for one in grid(found, connection, SEGMENTS).values()]
    median, p95 = (f"{most:g}" for most in AIMS_RTTS)
    text = (
        "Packets: how far the worst median and the worst 95% are above the limit and the ideal, in round trips, and\n"
        f"how many cells have the median within {median} and 95% within {p95} of the limit. Cells at 0 ms have no round"
        " trip to count by.\n"
        "95% is the smallest time that so many of a cell's transfers have not exceeded: the largest if they are fewer\n"
        f"than 20, as in {sum(n < 20 for n in counts)} of {len(counts)} cells, and the only one in {counts.count(1)}."
        " The ideal's is a true quantile.\n\n"
    )
    over = [f"{what} above the {bound}" for bound in ("limit", "ideal") for what in ("median", "95%")]
    head = ["connections", "cells with a round trip", *over, "within", "an ideal sender's"]
    return text + table(head, rows) if rows else ""


def _not_noted(some: Sequence[Result]) -> str:
    """Return of how many transfers nobody knows whether they fell back, and which look as if they had."""
    times_s = [s for one in some for s in one.not_noted_s]
    if not times_s:
        return ""
    count = sum(len(one.times_s) for one in some)
    text = (
        f"Of {len(times_s)} of {count} transfers it was not noted whether the connection was given back to the host's\n"
        "own congestion control, after catastrophic loss (the fallback)."
    )
    if long_s := [s for s in times_s if s > HOLD_S]:
        text += (
            f" {len(long_s)} of them took longer than the {HOLD_S:g} s for which\nthat lasts at least,"
            f" {min(long_s):.3f} to {max(long_s):.3f} s: they look like it, which nothing that was kept can prove.\n"
            "They count here as all others do."
        )
    return f"{text}\n"


def _grid(cells: dict[tuple[int, float], Result], shown: Any) -> str:
    rows = []
    for rtt_ms in LATENCIES_MS:
        some = [cells.get((rtt_ms, loss)) for loss in LOSSES_PERCENT]
        if any(some):
            keys = [(rtt_ms, loss) for loss in LOSSES_PERCENT]
            rows.append([f"{rtt_ms} ms", *(shown(k, one) if one else "-" for k, one in zip(keys, some, strict=True))])
    return table(["", *(f"{loss:g}%" for loss in LOSSES_PERCENT)], rows) if rows else "Not measured.\n"


def _beside(one: Result, printed: Sequence[Decimal]) -> str:
    """Return a cell's median and mean beside the median, and the mean where there is one, that the paper prints."""
    ours = [rounded(s) for s in (one.median_s, one.mean_s)]
    above = [s > theirs for s, theirs in zip_longest(ours, printed, fillvalue=printed[0])]
    shown = ", ".join(f"**{s}**" if more else str(s) for s, more in zip(ours, above, strict=True))
    return f"{shown} ({', '.join(map(str, printed))})"


def _over(one: Result) -> str:
    if not one.cell["rtt_ms"]:
        return f"{one.median_s:.3f}"
    values = [one.over_limit_rtts(s) for s in (one.median_s, one.p95_s)]
    over = [f"**{v:.2f}**" if v > most else f"{v:.2f}" for v, most in zip(values, AIMS_RTTS, strict=True)]
    if not one.cell["loss_percent"]:
        return f"{one.median_s:.3f} ({', '.join(over)})"
    ideal = [f"{one.over_limit_rtts(one.ideal_s(share)):.2f}" for share in (0.5, 0.95)]
    return f"{one.median_s:.3f} ({', '.join(over)} / {', '.join(ideal)})"


def _spread(found: dict[str, Result], printed: dict[tuple[int, float], Printed]) -> str:
    """Return mean, median and deviation of all lossy cells, as Table 1 prints them."""
    rows = [
        [
            *(f"{rtt_ms} ms", f"{loss:g}%", connection, model),
            *(f"{s:.3f}" for s in (one.mean_s, one.median_s, one.deviation_s, min(one.times_s), max(one.times_s))),
            *(str(len(one.times_s)), f"{one.again_share:.4%}"),
        ]
        for connection in CONNECTIONS
        for model in (SUPER_PACKETS, SEGMENTS)
        for (rtt_ms, loss), one in sorted(grid(found, connection, model).items())
        if loss
    ]
    head = ["latency", "loss", "connection", "loses", "mean", "median", "deviation", "least", "most", "transfers"]
    paper = ", ".join(f"{loss:g}%: {printed[180, loss].mean}/{printed[180, loss].median}" for loss in LOSSES_PERCENT)
    text = f"### In full\n\nThe paper at 180 ms, new connections, mean/median: {paper}.\n\n"
    whole = table([*head, "sent again"], rows) if rows else "Not measured.\n"
    return f"{text}<details><summary>Every cell with loss</summary>\n\n{whole}\n</details>\n"
