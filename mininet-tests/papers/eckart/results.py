"""From cells to tables: when files were across and on the disk, what others got meanwhile; and the aims. Pure."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from controller.plan.policy import DEFAULT_POLICY
from controller.plan.receivers import ReceiverBucket
from mininet_tests.lab.cells import Cell
from mininet_tests.lab.saturation import LEAST_IDLE_SHARE
from mininet_tests.papers.eckart.cells import (
    FREE,
    HELD,
    OVERRUN_BPS,
    PREDICTABLE_PPM,
    RATE_BPS,
    RIVALS,
    SLOWED_BPS,
    slower,
)
from mininet_tests.testing.aims import Aim, at_least, at_most, none_of
from topology.protocol import FlowClass
from topology.wire import PPM, Framing, Layer, converted_bps

LINE_BPS = converted_bps(RATE_BPS, Layer.WIRE, Layer.PAYLOAD, Framing())
GUARANTEES_PPM = {c: p.guarantee_ppm for c, p in DEFAULT_POLICY.classes.items()} | {
    FlowClass.PREDICTABLE: PREDICTABLE_PPM
}
FILE_BPS = LINE_BPS * (PPM - sum(GUARANTEES_PPM.values()) + GUARANTEES_PPM[FlowClass.URGENT]) // PPM
"""The most that any plan gives a file of the line: what is guaranteed to the other classes is theirs."""
BULK = 0.1, 0.9  # of what arrives: the part over which a rate is taken, as the paper's are without beginnings
LEAST_SHARE, OTHERS_GET, KEPT_SHARE = 0.99, 0.95, 1.0
HELD_SHARE = 1.01  # of the time that it takes while others have what is over: 1%, as of the prediction
LATER_S = 0.02  # two round trips: when a file is stored is seen to a few milliseconds
REACTION_S, LAPSES_WITHIN_S, CHANGES = 2.0, 6.0, 8
NOISY_CHANGES, NOISY_WRITTEN = 4, 0.98  # in ten minutes, the first hold with them; of what the disk could write
LEAST_OVERRUN_MBPS = 0.9 * OVERRUN_BPS / 1e6
SLOW_PLAN = 1.5  # times what the slowed disk takes: below, the plan has followed it


def report(seen: Sequence[Cell], asked: Sequence[Cell]) -> dict[str, Any]:
    """Return the tables, the other cells, and what is missing of what there should be."""
    good = [one for one in seen if "failed" not in one]
    names = {one["name"] for one in good}
    return {
        "transfers": {one["name"]: transferred(one) for one in good if one["experiment"] == "transfer"},
        "table_3": table_3([one for one in good if one["experiment"] == "transfer" and one["who"] == HELD]),
        "several": {one["name"]: several(one) for one in good if one["experiment"] == "several"},
        "slows": next((slowed(one) for one in good if one["experiment"] == "slows"), None),
        "noisy": next((noisy(one) for one in good if one["experiment"] == "noisy"), None),
        "killed": next((lapsed(one) for one in good if one["experiment"] == "killed"), None),
        "overrun": next((overrun(one) for one in good if one["experiment"] == "overrun"), None),
        "saturated": sorted(one["name"] for one in good if one["idle_share"] < LEAST_IDLE_SHARE),
        "not_measured": sorted({one["name"] for one in asked} - names),
        "commits": sorted({one["commit"] for one in good}),
    }


def transferred(cell: Cell) -> dict[str, Any]:
    """Return a row of tables 1 and 2."""
    (file,) = cell["files"]
    size_bits = cell["size_bytes"] * 8
    return {
        "who": cell["who"],
        "size_mb": cell["size_bytes"] / 1e6,
        "across_s": file["across_s"],
        "stored_s": file["stored_s"],
        "each_stored_s": cell.get("each_stored_s"),
        "across_mbps": size_bits / file["across_s"] / 1e6,
        "again_segments": file["again_segments"],
        "cpu_s_per_gbit": file["cpu_s"] / (size_bits / 1e9) or None,  # 0: of a program that had ended it was not seen
        "background_mb": cell["background_bytes"] / 1e6,
        "background_of_the_rest": of_the_rest(cell, size_bits),
        "of_the_promise": of_the_promise(cell),
    }


def of_the_promise(cell: Cell) -> float | None:
    """Return when files were on the disk, of when that was promised: the latest by its own; None without a promise.

    Both count from the announcement, a moment before the file began.
    """
    shares = [
        (one["stored_s"] + one["announced_before_s"]) / promised_s
        for one in cell["files"]
        if (promised_s := one.get("promised_stored_s"))
    ]
    return max(shares, default=None)


TABLE_3 = "m_mb", "d_mbps", "predicted_mbps", "measured_mbps", "share"
COLUMNS = "across, s", "stored, s", "others got, of the rest", "segments sent again", "CPU of the receiver, s a Gbit"


def columns(found: dict[str, Any]) -> dict[str, Any]:
    """Return tables 1 and 2 of a report as columns, a table for each contestant: what is published of them."""
    rows = sorted(found["transfers"].values(), key=lambda row: (row["who"], row["size_mb"]))
    tables: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        of_it = tables.setdefault(f"files by {row['who']}", {})
        of_it[f"{row['size_mb']:g} MB"] = [
            round(row["across_s"], 3), round(row["stored_s"], 3), round(row["background_of_the_rest"], 3),
            row["again_segments"], row["cpu_s_per_gbit"] and round(row["cpu_s_per_gbit"], 3),
        ]  # fmt: skip
    table = {
        f"{row['size_mb']:g} MB": [row[name] and round(row[name], 4) for name in TABLE_3] for row in found["table_3"]
    }
    turns = {name: {"stored, s": _rounded(one["each_stored_s"]), "promised, s": _rounded(one["promised_stored_s"])}
             for name, one in found["several"].items()}  # fmt: skip
    return {"columns": COLUMNS, **tables, "table 3 has": TABLE_3, "table 3": table, **turns}


def _rounded(seconds: Sequence[float]) -> list[float]:
    return [round(one, 3) for one in seconds]


def of_the_rest(cell: Cell, size_bits: int) -> float:
    """Return what background got until all was stored, of what the line could carry beside the files."""
    return float(cell["background_bytes"] * 8 / (LINE_BPS * cell["seconds_seen"] - size_bits))


def table_3(held: Sequence[Cell]) -> list[dict[str, Any]]:
    """Return the rows of table 3: the measured rate beside eq. (4) of its own m and d, as told before it began.

    The paper has the line to itself. Here a file that could come faster than it carries has what no other class is
    guaranteed.
    """
    rows = []
    for cell in sorted(held, key=lambda one: one["size_bytes"]):
        if (store := cell["store"]) is None:
            continue
        bucket = ReceiverBucket(store["room_bytes"], store["drains_bps"])
        predicted_bps = bucket.rate_bps(cell["size_bytes"])
        least_bps = min(predicted_bps or FILE_BPS, FILE_BPS)
        bps = bulk_bps(cell["arrived"])
        rows.append(
            {"size_mb": cell["size_bytes"] / 1e6, "m_mb": bucket.room_bytes / 1e6, "d_mbps": bucket.drain_bps / 1e6,
             "predicted_mbps": None if predicted_bps is None else predicted_bps / 1e6, "measured_mbps": bps / 1e6,
             "share": bps / least_bps}
        )  # fmt: skip
    return rows


def bulk_bps(arrived: Sequence[Sequence[float]]) -> float:
    """Return the rate at which the bulk of a file arrived: the rows are seconds, its bytes, others' bytes so far.

    >>> bulk_bps([(0.0, 0, 0), (1.0, 10, 0), (2.0, 50, 0), (3.0, 90, 0), (9.0, 100, 0)])
    320.0
    """
    last = arrived[-1][1]
    begun, ended = (next(row for row in arrived if row[1] >= part * last) for part in BULK)
    return (ended[1] - begun[1]) * 8 / (ended[0] - begun[0]) if ended[0] > begun[0] else 0.0


def several(cell: Cell) -> dict[str, Any]:
    """Return what several files to one disk came to."""
    last_s = max(one["stored_s"] for one in cell["files"])
    size_bits = cell["size_bytes"] * 8 * len(cell["files"])
    return {
        "files": len(cell["files"]),
        "across_s": [one["across_s"] for one in cell["files"]],
        "each_stored_s": [one["stored_s"] + one["announced_before_s"] for one in cell["files"]],
        "stored_s": last_s,
        "promised_stored_s": [one["promised_stored_s"] for one in cell["files"]],
        "of_the_promise": of_the_promise(cell),
        "of_the_disk": size_bits / last_s / cell["measured"]["drain_bps"],
        "again_segments": sum(one["again_segments"] for one in cell["files"]),
        "background_of_the_rest": of_the_rest(cell, size_bits),
    }


def planned(cell: Cell, name: str) -> list[tuple[float, int]]:
    """Return what a flow was planned for, bit/s, and from when, seconds; one row a change."""
    looks = [(look["s"], look["planned_bps"].get(name, 0)) for look in cell["looks"]]
    return [looks[0], *(after for before, after in pairwise(looks) if before[1] != after[1])]


def slowed(cell: Cell) -> dict[str, Any]:
    """Return how soon the plan followed a disk that became slow and fast again."""
    course = planned(cell, "archive")
    _, slow_s, fast_s = cell["changes_s"]
    low_bps = SLOW_PLAN * SLOWED_BPS
    below = next((at for at, bps in course if at > slow_s and bps < low_bps), None)
    above = next((at for at, bps in course if at > fast_s and bps > low_bps), None)
    return {
        "slower_after_s": None if below is None else below - slow_s,
        "faster_after_s": None if above is None else above - fast_s,
        "changes": len(course) - 1,
        "again_segments": cell["again_segments"],
    }


def noisy(cell: Cell) -> dict[str, Any]:
    """Return how often the plan changed for a disk whose rate does all the time, and what was made of both.

    An even epoch is a plan, an odd one the way from one to the next.
    """
    begun, ended = cell["arrived"][0], cell["arrived"][-1]
    seconds, written_bits = ended[0] - begun[0], cell["written_bytes"] * 8
    return {
        "minutes": seconds / 60,
        "changes": (cell["looks"][-1]["epoch"] - cell["looks"][0]["epoch"]) // 2,
        "held_to_mbps": [round(bps / 1e6, 1) for _, bps in planned(cell, "archive")],
        "could_write_mbps": cell["could_bytes"] * 8e-6 / seconds,
        "written_of_that": cell["written_bytes"] / cell["could_bytes"],
        "background_of_the_rest": (ended[2] - begun[2]) * 8 / (LINE_BPS / slower(cell) * seconds - written_bits),
        "again_segments": cell["again_segments"],
    }


def lapsed(cell: Cell) -> dict[str, Any]:
    """Return when the ceiling of a store whose agent was killed lapsed."""
    held_bps = next(bps for at, bps in reversed(planned(cell, "archive")) if at < cell["killed_s"])
    free = next((at for at, bps in planned(cell, "archive") if at > cell["killed_s"] and bps > held_bps * 5 // 4), None)
    return {"held_mbps": held_bps / 1e6, "lapsed_after_s": None if free is None else free - cell["killed_s"]}


def overrun(cell: Cell) -> dict[str, Any]:
    """Return what became of a file while datagrams were sent to its receiver, and of those."""
    (file,) = cell["files"]
    sent = cell["udp"]
    return {"across_s": file["across_s"], "stored_s": file["stored_s"], "again_segments": file["again_segments"],
            "udp_sent_mbps": sent["bits_per_second"] / 1e6, "udp_lost_percent": sent["lost_percent"]}  # fmt: skip


def aims(found: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of a report."""
    stated = {"CPU full": none_of(found["saturated"]), "not measured": none_of(found["not_measured"])}
    for row in found["table_3"]:
        if row["predicted_mbps"] is not None:
            stated[f"table 3, {row['size_mb']:g} MB: of the prediction"] = at_least(row["share"], LEAST_SHARE)
    rows = found["transfers"].values()
    for row in (one for one in rows if one["who"] == HELD):
        size = f"{row['size_mb']:g} MB"
        stated[f"{size}: sent again"] = none_of(row["again_segments"])
        stored_s = {one["who"]: one["stored_s"] for one in rows if one["size_mb"] == row["size_mb"]}
        if rivals_s := [stored_s[who] for who in RIVALS if who in stored_s]:
            later_s = row["stored_s"] - min(rivals_s)
            stated[f"{size}: on the disk later than the first rival, s"] = at_most(round(later_s, 3), LATER_S)
        if FREE in stored_s:
            share = row["stored_s"] / stored_s[FREE]
            stated[f"{size}: on the disk, of the time it takes not held"] = at_most(round(share, 4), HELD_SHARE)
        if any(one["size_mb"] == row["size_mb"] and one["predicted_mbps"] is not None for one in found["table_3"]):
            stated[f"{size}: others got, of the rest"] = at_least(row["background_of_the_rest"], OTHERS_GET)
    for name, one in (*found["transfers"].items(), *found["several"].items()):
        if one["of_the_promise"] is not None:
            stated[f"{name}: on the disk, of what was promised"] = at_most(one["of_the_promise"], KEPT_SHARE)
    for name, one in found["several"].items():
        stated[f"{name}: others got, of the rest"] = at_least(one["background_of_the_rest"], OTHERS_GET)
    return stated | _aims_of_others(found)


def _aims_of_others(found: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of what the paper's tables have not."""
    stated: dict[str, Aim] = {}
    if (slow := found["slows"]) is not None:
        stated["a disk that slows: followed after, s"] = at_most(slow["slower_after_s"], REACTION_S)
        stated["a disk that slows: changes of the plan"] = at_most(slow["changes"], CHANGES)
    if (noise := found["noisy"]) is not None:
        stated["a noisy disk: changes of the plan in ten minutes"] = at_most(noise["changes"], NOISY_CHANGES)
        stated["a noisy disk: written, of what it could write"] = at_least(noise["written_of_that"], NOISY_WRITTEN)
        stated["a noisy disk: others got, of the rest"] = at_least(noise["background_of_the_rest"], OTHERS_GET)
    if (killed := found["killed"]) is not None:
        stated["agent killed: its ceiling lapses after, s"] = at_most(killed["lapsed_after_s"], LAPSES_WITHIN_S)
    if (over := found["overrun"]) is not None:
        stated["overrun: sent again"] = none_of(over["again_segments"])
        stated["overrun: datagrams sent, Mbit/s"] = at_least(over["udp_sent_mbps"], LEAST_OVERRUN_MBPS)
    return stated
