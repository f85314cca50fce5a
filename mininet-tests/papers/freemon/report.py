"""``results.md``, rendered from what was measured: every number in it is computed here, none is typed."""

import json
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mininet_tests.lab.cells import Cell, duration
from mininet_tests.papers.freemon.cells import MTUS_BYTES, PAPER_RTT_MS, TEN_BPS, TEN_BYTES
from mininet_tests.papers.freemon.limits import Way
from mininet_tests.papers.freemon.markdown import table
from mininet_tests.papers.freemon.programs import PROGRAMS
from mininet_tests.papers.freemon.prose import HEAD
from mininet_tests.papers.freemon.result import Result, results
from mininet_tests.papers.freemon.section5 import FIGURE3_TITLE, STARTS_TITLE, Table, figure3_table, starts_table
from mininet_tests.papers.freemon.several_circuits import section as several_circuits
from mininet_tests.papers.freemon.summary import (
    contestants,
    database_share_kept,
    ratio,
    summary,
)
from mininet_tests.papers.freemon.tables import tables
from mininet_tests.papers.freemon.transfers import WARM_BYTES


def written(seen: Sequence[Cell], wanted: Sequence[Cell], out: Path) -> dict[str, Any]:
    """Write the cells in one file, the summary, and the page; return the summary.

    Args:
        seen: the cells that were measured.
        wanted: all that were to be.
        out: folder.
    """
    numbers = summary(seen, wanted)
    (out / "cells.jsonl").write_text("".join(json.dumps(cell) + "\n" for cell in seen))
    (out / "summary.json").write_text(json.dumps(numbers, indent=1) + "\n")
    (out / "results.md").write_text(page(seen, wanted))
    return numbers


def page(seen: Sequence[Cell], wanted: Sequence[Cell] = ()) -> str:
    """Return the page for some cells of those that were to be measured."""
    found, numbers = results(seen), summary(seen, wanted)
    parts = [
        HEAD,
        *tables(found, numbers),
        _section(FIGURE3_TITLE, numbers["figure3"], figure3_table),
        _ten(numbers),
        _section(STARTS_TITLE, numbers["starts"], starts_table),
        _figure2(numbers),
        _rivals(found),
        _loaded(found),
        _sensitivity(found),
        _night(numbers),
        _tools(numbers),
        several_circuits(),
        _cost(numbers),
        _missing(numbers),
    ]
    return "\n".join(parts)


def _ten(numbers: dict[str, Any]) -> str:
    ten = numbers["ten_gbit"]
    text = "## 2.688 GB at 10 Gbit/s, 180 ms\n\n"
    text += (
        "Medians in seconds, of 2 and of 10 senders the longer one. Senders are warm connections here, each with an\n"
        "allocation of its own, all on one host. *Single packets* have no super-packet anywhere on the path: every\n"
        "packet is made, queued and delivered by itself, in one transfer from 2 senders.\n\n"
    )
    if not ten:
        return text + "Not measured.\n"
    rows = []
    for mtu_bytes in MTUS_BYTES:
        limit_s = Way(TEN_BPS, PAPER_RTT_MS, mtu_bytes).limit_s(TEN_BYTES)
        for single, what in (("", ""), ("_single", ", single packets")):
            times = (ten[f"mtu{mtu_bytes}{single}{loss}_s"] for loss in ("", "_loss"))
            shown = ("-" if s is None else f"{s:.3f}" for s in times)
            rows.append([f"MTU {mtu_bytes}{what}", f"{limit_s:.3f}", *shown])
    return text + table(["", "limit", "no loss", "0.01% of the packets"], rows)


def _section(title: str, numbers: dict[str, Any] | None, made: Callable[[dict[str, Any]], Table]) -> str:
    if not numbers:
        return f"{title}\n\nNot measured.\n"
    text, head, rows = made(numbers)
    return f"{title}\n\n{text}{table(head, rows)}"


def _figure2(numbers: dict[str, Any]) -> str:
    text = "## Figure 2: the image beside background and database, a whole site, 0.01% of super-packets\n\n"
    if not numbers["figure2"]:
        return text + "Not measured.\n"
    text += (
        "Controller, agents and Open vSwitch, as in `make demo`. *Limit* is of the image's share, on new connections.\n"
        "*Used* is the payload that arrived, of what the circuit can carry, while all flows ran; *above the plan* are\n"
        "moments at which hosts, meters, queues and circuit were not each within the next.\n\n"
    )
    rows = [
        [name, *(f"{one[key]:.3f}" for key in ("share_limit_s", "image_s")), f"{one['utilisation']:.2%}",
         str(one["violations"])]
        for name, one in numbers["figure2"].items()
    ]  # fmt: skip
    return text + table(["circuit", "limit s", "image s", "used", "above the plan"], rows)


def _rivals(found: dict[str, Result]) -> str:
    best = contestants(found)
    text = (
        "## Rivals: the image alone, 1 Gbit/s, 180 ms, 0.01% of the packets\n\n"
        "Each with send and receive buffers that never limit it, no slow start after a pause, and connections that\n"
        f"have carried a whole image before, Headway's {WARM_BYTES / 1e6:g} MB; by TCP's own pacing or by `fq`,\n"
        "whichever was better for it. *Pooled* is today's practice: each connection asks for its part of the rate\n"
        "(`SO_MAX_PACING_RATE`).\n\n"
        "Programs are timed from the first bytes of the file to the last, as they arrive, and one round trip; their\n"
        f"sessions are made before. {_tuning()}\n\n"
    )
    if not best:
        return text + "Not measured.\n"
    text += "![All contestants, alone and beside other flows](results/rivals.png)\n\n"
    rows = []
    for name, one in sorted(best.items(), key=lambda item: item[1].median_s):
        dropped = sum(run["queue_dropped"] for run in one.cell["runs_seen"]) / len(one.times_s)
        rows.append(
            [name, one.cell["qdisc"] or "-", *_times(one, best), f"{one.again_bytes / 1e6:.2f}", f"{dropped:.0f}"]
        )
    head = ["contestant", "qdisc", "median s", "least", "most", "ratio to ours", "MB sent again", "dropped at the port"]
    return text + table(head, rows)


def _times(one: Result, among: dict[str, Result]) -> list[str]:
    """Return a contestant's median, least and most, and its median over ours."""
    over = ratio(one, among)
    seconds = [f"{s:.3f}" for s in (one.median_s, min(one.times_s), max(one.times_s))]
    return [*seconds, "-" if over is None else f"{over:.2f}"]


def _tuning() -> str:
    return " ".join(f"`{name}`: {program.tuning}." for name, program in PROGRAMS.items())


def _loaded(found: dict[str, Result]) -> str:
    best, alone = contestants(found, "load"), contestants(found)
    unlike = [name for name in best if name in alone and alone[name].cell["qdisc"] != best[name].cell["qdisc"]]
    also = f", also those {len(unlike)} that were better without it alone: {', '.join(unlike)}" if unlike else ""
    text = (
        "## Rivals: the image while background and database run\n\n"
        "All flows of a row run by the same algorithm, beside UDT and SRT by cubic. The database asks for the 5% that\n"
        "the controller's policy keeps for it, the background has eight connections and always something to send, and\n"
        "both have run for five seconds. What the database kept of its rate is of the worst run; beside a program it\n"
        f"is taken over the program's whole session.\n\nEvery rival has `fq` here{also}.\n\n"
    )
    if not best:
        return text + "Not measured.\n"
    rows = []
    for name, one in sorted(best.items(), key=lambda item: item[1].median_s):
        background = statistics.fmean(run["background_bps"] for run in one.cell["runs_seen"]) / 1e6
        rows.append([name, *_times(one, best), f"{database_share_kept(one.cell):.1%}", f"{background:.0f} Mbit/s"])
    head = [
        "contestant",
        "median s",
        "least",
        "most",
        "ratio to ours",
        "the database kept, at worst",
        "background meanwhile",
    ]
    return text + table(head, rows)


def _sensitivity(found: dict[str, Result]) -> str:
    some = [one for one in found.values() if one.cell["experiment"] == "sensitivity"]
    text = (
        "## Sensitivity: what is not as planned, 1 Gbit/s, reused connections\n\n"
        "*Limit* is of the rate as it was promised and of the round trip as it is; *kept* is it over the median: the\n"
        "throughput that is left. What a provider polices below its promise it drops, again and again; the cure is to\n"
        "give the controller, as the circuit's `rate`, what the provider really lets through, as in the last rows.\n\n"
        "Freemon says of 360 ms (V.H) that images still come within 5 s, and of 10% of loss (V.D) that data arrived\n"
        "for 2.66 s, without the retransmissions after them; here the last confirmation ends the time.\n\n"
    )
    if not some:
        return text + "Not measured.\n"
    rows = [
        [
            one.cell["what"],
            *(f"{s:.3f}" for s in (one.limit_s, one.median_s, min(one.times_s), max(one.times_s))),
            f"{one.limit_s / one.median_s:.1%}",
            f"{one.again_share:.3%}",
            f"{statistics.fmean(run['reorderings'] for run in one.cell['runs_seen']):.0f}",
        ]
        for one in some
    ]
    return text + table(["what", "limit s", "median", "least", "most", "kept", "sent again", "seen out of order"], rows)


def _night(numbers: dict[str, Any]) -> str:
    night = numbers["night"]
    text = "## A night: an image every 17 seconds, background and database between, 1 Gbit/s, a whole site\n\n"
    if not night:
        return text + "Not measured.\n"
    return text + (
        f"{night['images']} images, {night['late']} of them later than 5 s; median {night['median_s']:.3f} s, longest "
        f"{night['longest_s']:.3f} s from the\nannouncement on. The background had "
        f"{night['background_share_of_leftover']:.2%} of what images and database left of the circuit.\n"
    )


def _tools(numbers: dict[str, Any]) -> str:
    text = (
        "## Unmodified tools over a whole site, 1 Gbit/s, 0.01% of super-packets\n\n"
        "An image is announced, carried by two senders with the tool, and released. Meanwhile a MariaDB primary\n"
        "replicates as the predictable flow and an iperf3 fills the background; neither is restarted. The time runs\n"
        "from the announcement until both programs have ended, their greetings and farewells included; the shares, of\n"
        "the circuit's payload, are taken while the middle four fifths of the image arrived. *Lag* is the age of the\n"
        "newest row at the replica, at worst; 90 ms of it are the way.\n\n"
    )
    if not numbers["tools"]:
        return text + "Not measured.\n"
    rows = [
        [
            name,
            f"{one['s']:.2f} s",
            f"{one['image_share']:.1%}",
            f"{one['all_share']:.1%}",
            *(f"{one[key] * 1000:.0f} ms" for key in ("replica_lag_before_s", "replica_lag_s")),
        ]
        for name, one in numbers["tools"].items()
    ]
    return text + table(["tool", "time", "the image's share", "of all flows", "lag before", "lag meanwhile"], rows)


def _cost(numbers: dict[str, Any]) -> str:
    rows = [
        (
            name,
            str(c["cells"]),
            str(c["transfers"]),
            duration(c["wall_s"]),
            str(c["dilation"]).strip("[]"),
            f"{c['memory_used_mib']} MiB",
            "-" if c["least_idle_share"] is None else f"{c['least_idle_share']:.0%}",
        )
        for name, c in numbers["cost"].items()
    ]
    head = ["experiment", "cells", "transfers", "wall time", "dilation", "memory in the guest", "least idle share"]
    commit = numbers["commit"] if isinstance(numbers["commit"], str) else ", ".join(numbers["commit"])
    versions = numbers["versions"] if isinstance(numbers["versions"], list) else [numbers["versions"]]
    shown = "; ".join(", ".join(f"{name} {text}" for name, text in one.items()) for one in versions)
    return f"## What it costs\n\n{table(head, rows)}\nCommit {commit}; {shown}.\n{_gone(numbers)}"


def _gone(numbers: dict[str, Any]) -> str:
    """Return which of the commits nobody can look up, and how many cells are theirs."""
    commits, counts = numbers["commits_gone"].values()
    if not commits:
        return ""
    all_of = {name: one["cells"] for name, one in numbers["cost"].items()}
    shares = ", ".join(f"{count} of {all_of[name]} of `{name}`" for name, count in counts.items())
    return (
        f"\n{sum(counts.values())} of the {sum(all_of.values())} cells ({shares}) were measured at commits of a\n"
        f"history that this repository does not have; nobody can look them up: {', '.join(commits)}.\n"
    )


def _missing(numbers: dict[str, Any]) -> str:
    lines = [f"- `{name}`: {reason}" for name, reason in numbers["reasons"].items()]
    lines += [
        f"- `{name}`: {count} cells have not been measured yet" for name, count in numbers["not_measured"].items()
    ]
    lines += [f"- `{name}` FAILED: {why}" for name, why in numbers["failed"].items()]
    lines += [f"- `{name}`: the virtual CPU was full, no result" for name in numbers["saturated"]]
    lines += [f"- `{name}`: a transfer was below the limit: do not believe it" for name in numbers["runs_below_limit"]]
    lines += [
        f"- `{name}`: {count} of its transfers ran by the host's own congestion control, after catastrophic loss"
        for name, count in numbers["on_fallback"].items()
    ]
    if count := numbers["fallback_not_noted"]:
        lines.append(
            f"- Of {count} of our transfers it was not noted whether they ran on the fallback; later ones say so"
        )
    return "\n".join(["## What is missing\n", *lines, ""])
