"""What strangers did, in numbers: aims, and the table of docs/security.md. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mininet_tests.testing.aims import Aim, at_least, at_most

SLOWER_MS, GROWN_BYTES, LEFT_BYTES = 50.0, 50 * 10**6, 15 * 10**6
LOG_LINES = 200  # of one site: a few for each attack
LET_IN = ("in", "nowhere")  # how far strangers get, if they are no more than that
BEGIN, END = "<!-- mininet-tests/run hostile --publish writes this -->", "<!-- as far as here -->"
PORTS = {"rest": "REST", "agents": "agents", "openflow": "OpenFlow", "rest_socket": "REST's socket"}


@dataclass(frozen=True, slots=True)
class Crowd:
    """What the client that works has seen beside one.

    Attributes:
        times_ms: of each answer.
        failed: requests that were not answered as they should be.
        resident_bytes: memory of the controller, at most.
    """

    times_ms: tuple[float, ...]
    failed: int
    resident_bytes: int


def p99(times_ms: Sequence[float]) -> float | None:
    """Return the time that one in a hundred is above."""
    return round(sorted(times_ms)[len(times_ms) * 99 // 100], 1) if times_ms else None


def aims(seen: Mapping[str, Any]) -> dict[str, Aim]:
    """Return the aims of a run."""
    stated_ones: dict[str, Aim] = {}
    for site, found in seen["sites"].items():
        alone, attacks = found["alone"], found["attacks"]
        for name, one in attacks.items():
            slower = None if one["p99_ms"] is None else round(one["p99_ms"] - alone["p99_ms"], 1)
            stated_ones[f"{site}, {name}: p99 above undisturbed, ms"] = at_most(slower, SLOWER_MS)
            come = f"{site}, {name}: strangers {'let in' if one['gets'] in LET_IN else one['gets']}"
            stated_ones[come] = at_most(one["got"], 0) if one["gets"] == "nowhere" else at_least(one["got"], 1)
        most = max(one["resident_bytes"] for one in attacks.values())
        faults = sum(n for one in attacks.values() for code, n in one["statuses"].items() if code >= "500")
        missed = sum(one["not_answered"] for one in attacks.values())
        left = found["after"]["resident_bytes"] - alone["resident_bytes"]
        stated_ones[f"{site}: honest requests not answered"] = at_most(missed, 0)
        stated_ones[f"{site}: memory, most beside undisturbed, bytes"] = at_most(
            most - alone["resident_bytes"], GROWN_BYTES
        )
        stated_ones[f"{site}: memory, left of that afterwards, bytes"] = at_most(left, LEFT_BYTES)
        stated_ones[f"{site}: answers of 5xx"] = at_most(faults, 0)
        stated_ones[f"{site}: tracebacks in the log"] = at_most(found["tracebacks"], 0)
        stated_ones[f"{site}: lines in the log"] = at_most(found["log_lines"], LOG_LINES)
    return stated_ones


def rows(seen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of a run, one for each row of the table."""
    found: dict[str, Any] = {name: value for name, value in seen.items() if name != "sites"}
    for site, one in seen["sites"].items():
        found[f"{site}: nobody"] = one["alone"]
        found |= {f"{site}: {name}": row for name, row in one["attacks"].items()}
        found[f"{site}: nobody, afterwards"] = one["after"]
        found[f"{site}: log"] = {
            "lines": one["log_lines"],
            "tracebacks": one["tracebacks"],
            "said": one["said"],
            "first": one["traceback"],
        }
    return found


def table(report: Mapping[str, Any]) -> str:
    """Return the table: port, attack, outcome."""
    lines = ["| port | attack | strangers | p99 | memory | let in | cut off | answers |", f"|{8 * '---|'}"]
    for name, one in report.items():
        if not isinstance(one, dict) or "p99_ms" not in one:
            continue
        site, _, what = name.partition(": ")
        port, colon, attack = what.partition(": ")
        answers = ", ".join(f"{code}: {count}" for code, count in one.get("statuses", {}).items())
        where = f"{PORTS[port]}, {site}" if colon else site
        memory = f"{one['resident_bytes'] / 1e6:.0f} MB"
        cells = (
            where,
            attack or what,
            one.get("strangers", 0),
            f"{one['p99_ms']} ms",
            memory,
            one.get("opened", 0),
            one.get("cut", 0),
            answers,
        )
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def said(report: Mapping[str, Any]) -> str:
    """Return table, outcome and commit as docs/security.md has them."""
    short = report["falls_short"]
    what = "All aims held." if not short else "Short of the aims fell: " + "; ".join(short) + "."
    return f"{table(report)}\n\n{what} Measured at commit {report['commit']}."


def published(page: str, report: Mapping[str, Any]) -> str:
    """Return docs/security.md with the table of a report."""
    return re.sub(f"(?s){re.escape(BEGIN)}.*{re.escape(END)}", lambda _: f"{BEGIN}\n{said(report)}\n{END}", page)
