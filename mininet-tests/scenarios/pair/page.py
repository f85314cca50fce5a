"""What ``docs/pair.md`` says of a run. Pure."""

import re
from collections.abc import Mapping
from typing import Any

BEGIN, END = "<!-- mininet-tests/run pair --publish writes this -->", "<!-- as far as here -->"
OBEYED = "until all agents obey the new leader, s, worst"
KINDS = {
    "killed": "is killed",
    "restarted": "is killed when ovs-vswitchd has just been started anew",
    "stopped": "stands still for 2 s",
    "silent": "its machine is silent for 5 s",
    "moved": "lets the other lead (`headway leader move`)",
    "cut": "has its sessions at the database cut",
    "database": "goes on while the database's machine is silent for 5 s; from when that is back",
}
TEXT = """\
Of {count:,} rounds with each controller and PostgreSQL on a machine of its own (a network namespace), two userspace
switches and {agents} agents, all on one machine of two cores for which {load:.1f} processes waited or worked
meanwhile (median; at most {most:.1f}; [pair.json](results/pair.json), `mininet-tests/run pair --rounds {count}`, of
commit {commit}):

| the leader | rounds | until a request is answered, s: median | 99 of 100 | worst |
|---|---|---|---|---|
{rows}

A script asks both controllers by `headway.Client`; of a planned hand-over it is the time from the last answer of one
to the first of the other, of a script that asks all the while. {steps}Until half a second later a script waited
{slow:.2f} s at most for an answer (median; worst {slowest:.2f}): switches are read back then. 99 of 100 of those
killed, stopped and silent are to take 1 s, half of the planned hand-overs 50 ms. {missed}

Lost of {answers:,} answers: {lost}. Done twice: {done_twice}, of {asked_twice} that were sent more than once. Hosts
that fell back: {fallbacks}. Rules put again: {put}. Rounds after which a layer let through more than the next:
{violations}. All agents obeyed the new leader within {obeyed:.2f} s; their process was late by {late:.2f} s at
most. While the database was silent, what only reads was answered, what changes something was refused, and hosts kept
what they had."""
STEPS = """\
The row was taken {taken:.0f} ms (median of {count}) after the leader began to end, and
the other one led {leads:.0f} ms after that. """


def said(report: Mapping[str, Any], commit: str) -> str:
    """Return table and text of a report of every kind of round.

    Args:
        report: of such a run.
        commit: of the code that ran.
    """
    rounds, times = report["rounds"], report["times"]
    rows = (
        "| {} | {rounds} | {median_s:.2f} | {p99_s:.2f} | {worst_s:.2f} |".format(what, **times[kind])
        for kind, what in KINDS.items()
    )
    seen = {name: one["seen"] for name, one in report["aims"].items()}
    missed = "; ".join(f"{name} ({seen[name]})" for name in report["falls_short"])
    return TEXT.format(
        count=len(rounds),
        agents=report["agents"],
        load=report["load"]["median"],
        most=report["load"]["most"],
        commit=commit[:7],
        rows="\n".join(rows),
        steps=_steps(report["steps"]),
        slow=report["slowest_when_moved_s"]["median"],
        slowest=report["slowest_when_moved_s"]["worst"],
        missed=f"Short of the aims fell: {missed}." if missed else "All aims held.",
        put=sum(one["rules_put_again"] for one in rounds),
        violations=sum(one["violations"] > 0 for one in rounds),
        obeyed=seen[OBEYED],
        late=max(one["agents_late_s"] for one in rounds),
        **{name: report[name] for name in ("answers", "lost", "done_twice", "asked_twice", "fallbacks")},
    )


def _steps(steps: Mapping[str, Mapping[str, float]]) -> str:
    """Return what a planned hand-over is made of; nothing if none was found in the logs."""
    if not steps:
        return ""
    taken, leads = steps.values()
    return STEPS.format(taken=taken["median"], count=taken["count"], leads=leads["median"])


def published(page: str, report: Mapping[str, Any], commit: str) -> str:
    """Return docs/pair.md with what a report has."""
    text = f"{BEGIN}\n{said(report, commit)}\n{END}"
    return re.sub(f"(?s){re.escape(BEGIN)}.*{re.escape(END)}", lambda _: text, page)
