"""All transfers of docs/lanes.md, in sets: each of one rate, in a lab of its own with the dilation that it needs.

A transfer that was seen of this commit is not run again, so a run that was ended, or failed in one of them, goes on
with those that are left. Which transfers are asked for by name (``--program``, ``--case``, ``--rate``, ``--size``) are
one set, in one lab, and their figure is drawn.
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from mininet_tests.lab import commands
from mininet_tests.lab.commit import CHANGED, commit
from mininet_tests.scenarios.lanes.aims import aims
from mininet_tests.scenarios.lanes.figure import drawn, printed
from mininet_tests.scenarios.lanes.programs import INTERFACE_DIES, NORTH_DIES, SOUTH_DIES, UNDISTURBED, absent
from mininet_tests.scenarios.lanes.report import report
from mininet_tests.scenarios.lanes.run import asked_parser, cases_of
from mininet_tests.testing.aims import stated
from mininet_tests.testing.progress import placed, tell
from mininet_tests.testing.reports import write_report

DILATION = 6
KEPT = "set.json"  # what a set's report is of
SEEN, MEASURED = "lanes.json", "measured.json"  # what a lab has shown; and all that labs of one commit have, of a set
IDLE = "CPU idle"
Part = tuple[float, float]  # of the whole time, from and until which share


@dataclass(frozen=True, slots=True)
class LaneSet:
    """Transfers of one rate, in one lab.

    Attributes:
        name: of its folder.
        at: which share of the paper's rates, as reports name it; empty for all of them.
        rate: of north.
        dilation: of the lab.
        minutes: that it takes on two idle cores, about.
        cases: by name.
        picture: in ``docs/``, of those in ``shown``; none if it is empty.
        shown: the cases that are drawn; all if it is empty.
        is_ipv6: whether all addresses are of IPv6.
    """

    name: str
    at: str
    rate: str
    dilation: int
    minutes: float
    cases: tuple[str, ...]
    picture: str = ""
    shown: tuple[str, ...] = ()
    is_ipv6: bool = False

    @property
    def words(self) -> list[str]:
        """What is asked of a run."""
        return self.asking(self.cases)

    def asking(self, cases: Sequence[str]) -> list[str]:
        """Return what is asked of a run of some of them."""
        family = ["--ipv6"] if self.is_ipv6 else []
        return ["--rate", self.rate, *family, *(word for case in cases for word in ("--case", case))]

    def named(self, case: str) -> str:
        """Return the name of a case of it among all."""
        return f"{self.at}: {case}" if self.at else case


def _of(program: str, *what: str) -> tuple[str, ...]:
    return tuple(f"{program}, {each}" for each in what)


DEATHS = NORTH_DIES, SOUTH_DIES
SETS = (
    LaneSet("full", "", "1 Gbit/s", 6, 14, _of("curl", UNDISTURBED, *DEATHS), "lanes.png"),
    LaneSet(
        "deaths",
        "at a fifth",
        "200 Mbit/s",
        6,
        10,
        _of("gridftp", *DEATHS) + _of("aria2", *DEATHS),
        "lanes-programs.png",
    ),
    LaneSet("mptcp", "at a fifth", "200 Mbit/s", 2, 4, _of("mptcp", UNDISTURBED, *DEATHS), "lanes-mptcp.png"),
    LaneSet(
        "programs",
        "at a tenth",
        "100 Mbit/s",
        6,
        5,
        _of("curl", UNDISTURBED) + _of("rclone", UNDISTURBED) + _of("aria2-parts", UNDISTURBED),
    ),
    LaneSet(
        "one-file",
        "at a tenth",
        "100 Mbit/s",
        2,
        4,
        _of("gridftp", UNDISTURBED) + _of("mptcp", UNDISTURBED) + _of("aria2", UNDISTURBED),
    ),
    LaneSet(
        "ipv6",
        "at a tenth, IPv6",
        "100 Mbit/s",
        6,
        9,
        _of("curl", UNDISTURBED, NORTH_DIES)
        + _of("gridftp", UNDISTURBED)
        + _of("rclone", UNDISTURBED)
        + _of("aria2-parts", UNDISTURBED),
        is_ipv6=True,
    ),
    LaneSet(
        "protocols",
        "at 40 Mbit/s",
        "40 Mbit/s",
        2,
        9,
        (
            *_of("sctp", UNDISTURBED, NORTH_DIES, INTERFACE_DIES),
            *_of("sctp-rfc4960", INTERFACE_DIES),
            *_of("mptcp", UNDISTURBED, INTERFACE_DIES),
            *_of("mptcp-stale1", INTERFACE_DIES),
        ),
        "lanes-sctp.png",
        _of("sctp", UNDISTURBED, INTERFACE_DIES) + _of("sctp-rfc4960", INTERFACE_DIES),
    ),
    LaneSet("cmt", "at 40 Mbit/s", "40 Mbit/s", 2, 2, _of("sctp-cmt", UNDISTURBED), "lanes-cmt.png"),
)
"""A program's host needs more of the lab's CPU than MPTCP's or SCTP's, so those have the lower dilation."""


def merged(seen: Mapping[LaneSet, dict[str, Any]]) -> dict[str, Any]:
    """Return one report of the sets', in which every transfer is named with the share of the rates that it had. Pure.

    >>> of_set = {"took_s": {"curl, undisturbed": 16.6}, "size_bytes": 1, "runs": {}, "falls_short": [],
    ...     "aims": {"CPU idle": {"ok": True}, "curl, undisturbed: lanes used": {"ok": False}}}
    >>> found = merged({LaneSet("programs", "at a tenth", "", 1, 1, ()): of_set})
    >>> found["took_s"], found["falls_short"]
    ({'at a tenth: curl, undisturbed': 16.6}, ['at a tenth: curl, undisturbed: lanes used'])
    """
    aims, figures = dict[str, Any](), dict[str, Any]()
    for one, of_set in seen.items():
        for name, aim in of_set["aims"].items():
            aims[f"{name}, {one.name}" if name == IDLE else one.named(name)] = aim
        for key, value in of_set.items():
            if key in {"aims", "falls_short", "runs"}:
                continue
            if isinstance(value, dict):
                figures.setdefault(key, {}).update({one.named(case): each for case, each in value.items()})
            else:
                figures.setdefault(key, value)  # of the first set, which has the paper's rates
    return figures | {"aims": aims, "falls_short": [name for name, aim in aims.items() if not aim["ok"]]}


def seen_before(folder: Path, one: LaneSet) -> str:
    """Return of which commit a folder has the report of a set; empty if it has none."""
    try:
        known = json.loads((folder / KEPT).read_text())
    except (OSError, ValueError):
        return ""
    return str(known["commit"]) if known["words"] == one.words and (folder / "report.json").exists() else ""


def in_a_lab(folder: Path, dilation: int, words: Sequence[str], part: Part = (0.0, 1.0)) -> int:
    """Run transfers in a lab of their own, a part of the whole time; return the exit code."""
    run = commands.module("scenarios.lanes.run", "--out", str(folder), *words)
    booted = commands.in_lab("--dilation", str(dilation), "--out", str(folder), command=run)
    with subprocess.Popen([*commands.DIES_WITH_US, *booted], stdout=subprocess.PIPE, text=True) as lab:
        assert lab.stdout is not None  # noqa: S101 it is a pipe
        for line in lab.stdout:
            print(placed(line, *part), end="", flush=True)
    return lab.returncode


def measured(folder: Path, one: LaneSet, now: str) -> dict[str, Any]:
    """Return what was seen of a set's transfers by a commit before it failed or was ended; nothing of a changed one."""
    try:
        known = json.loads((folder / MEASURED).read_text())
    except (OSError, ValueError):
        return {}
    is_same = known["commit"] == now and known["words"] == one.words and not now.endswith(CHANGED)
    return dict(known["seen"]) if is_same else {}


def joined(before: Mapping[str, Any], after: Mapping[str, Any], cases: Sequence[str]) -> dict[str, Any]:
    """Return what two runs of a set have shown, transfers in its order. Pure.

    >>> one, other = ({"runs": {name: {}}, "idle_shares": [share]} for name, share in (("b", 0.5), ("a", 0.7)))
    >>> joined(one, other, ["a", "b"])
    {'runs': {'a': {}, 'b': {}}, 'idle_shares': [0.5, 0.7]}
    >>> joined({}, {}, ["a"])
    {}
    """
    if not (before and after):
        return {**before, **after}
    runs = before["runs"] | after["runs"]
    idle_shares = before["idle_shares"] + after["idle_shares"]
    return {**after, "runs": {case: runs[case] for case in cases if case in runs}, "idle_shares": idle_shares}


def _run_set(folder: Path, one: LaneSet, now: str, part: Part) -> int:
    """Run those transfers of a set that have not been seen of a commit, and keep what was; return the exit code."""
    before = measured(folder, one, now)
    left = [case for case in one.cases if case not in before.get("runs", {})]
    (folder / SEEN).unlink(missing_ok=True)
    code = in_a_lab(folder, one.dilation, one.asking(left), part) if left else 0
    after = json.loads((folder / SEEN).read_text()) if (folder / SEEN).exists() else {}
    seen = joined(before, after, one.cases)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SEEN).write_text(json.dumps(seen))
    (folder / MEASURED).write_text(json.dumps({"commit": now, "words": one.words, "seen": seen}))
    if not code and before:  # else the lab's own report is of all
        found = report(seen)
        write_report(folder, found | stated(aims(found)))
    return code


def _shown(folder: Path, path: Path, cases: Sequence[str] = ()) -> None:
    """Print what a folder has of a set, and draw these cases of it, or all."""
    seen, found = (json.loads((folder / name).read_text()) for name in (SEEN, "report.json"))
    drawn(seen | {"runs": {case: seen["runs"][case] for case in cases or seen["runs"]}}, found, path)
    printed(found)


def _missing(out: Path, now: str) -> Iterator[tuple[LaneSet, Part]]:
    """Yield the sets to be run, each when it is its turn, with its part of the time; of a changed checkout all."""
    left = [one for one in SETS if now.endswith(CHANGED) or seen_before(out / one.name, one) != now]
    ends = [*accumulate((one.minutes for one in left), initial=0.0)]
    for number, (one, part) in enumerate(zip(left, pairwise(ends), strict=True)):
        begin, end = (minutes / ends[-1] for minutes in part)
        tell(begin, f"{one.name}, set {number + 1} of {len(left)}")
        yield one, (begin, end)


def all_sets(out: Path, *, publish: bool) -> int:
    """Run the sets that have not been seen of this commit; write the report of all; return the exit code."""
    now = commit()
    for one, part in _missing(out, now):
        folder = out / one.name
        if code := _run_set(folder, one, now, part):
            return code
        (folder / KEPT).write_text(json.dumps({"commit": now, "words": one.words}) + "\n")
    reports = {one: json.loads((out / one.name / "report.json").read_text()) for one in SETS}
    write_report(out, merged(reports) | {"commit": now})
    for one in SETS:
        picture = out / (one.picture or f"{one.name}.png")
        _shown(out / one.name, picture, one.shown)
        if publish and one.picture:
            shutil.copyfile(picture, commands.ROOT / "docs" / one.picture)
    return 0


def main(argv: Sequence[str]) -> int:
    """Run what is asked for."""
    ours = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    ours.add_argument("--out", type=Path, required=True, help="folder of the sets, or of the one that is asked for")
    ours.add_argument("--dilation", type=int, default=DILATION, help="of the lab, if transfers are asked for by name")
    ours.add_argument("--publish", action="store_true", help="copy the pictures of all sets to docs/")
    parser = asked_parser(__doc__, ours)
    args, (_, words) = parser.parse_args(argv), ours.parse_known_args(argv)
    if args.publish and words:
        parser.error("--publish is of all sets: ask for none by name")
    if lacking := absent({case.program for case in cases_of(parser, args)}):
        parser.error(f"not installed: {', '.join(lacking)}; make paper RUN=lanes installs them, and runs this")
    if not words:
        return all_sets(args.out, publish=args.publish)
    code = in_a_lab(args.out, args.dilation, words)
    if not code:
        _shown(args.out, args.out / "lanes.png")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
