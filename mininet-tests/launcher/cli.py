"""The command line of ``mininet-tests/run``: one launcher for every experiment and bench."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mininet_tests.lab import commands
from mininet_tests.lab.commit import CHANGED, commit
from mininet_tests.launcher.children import followed
from mininet_tests.launcher.experiment import Experiment, Place
from mininet_tests.launcher.progress import Shown, clock
from mininet_tests.launcher.published import publish
from mininet_tests.launcher.registry import EXPERIMENTS, by_name, listed, where
from mininet_tests.testing.progress import MARK

INSTALL_S = 60.0  # packages of Python; those of Debian, where they are missing, take longer
EXIT_OK, EXIT_FAILED, EXIT_BAD_INPUT, EXIT_FALLS_SHORT, EXIT_INTERRUPTED = 0, 1, 2, 3, 130
VENV = commands.ROOT / ".venv"
TOOK = "took.json"

_EPILOG = f"""\
NAME is one of: {", ".join(one.name for one in EXPERIMENTS)} (--list says what they are)

after NAME, beside the experiment's own arguments (NAME --help shows them):
  --out DIR      folder for report.json, figure and logs (default: out/NAME)
  --dilation K   of the lab, where the launcher boots it
  --publish      copy the report's aims and key figures to docs/results/NAME.json, with commit, date and
                 dilation; left_out there names what is too long for it, and stays in report.json;
                 nothing outside docs may be changed since that commit

report.json has two keys in every folder: aims (name -> aim, seen, ok) and falls_short (the names that miss).
exit codes: 0 all aims hold, 3 some fall short, 1 the run failed, 2 bad arguments, 130 interrupted.
tab completion in bash: eval "$(mininet-tests/run --completion)"
"""
_COMPLETION = """\
_headway_run() {{
    if [ "$COMP_CWORD" = 1 ]; then COMPREPLY=($(compgen -W "{names} --list --help" -- "${{COMP_WORDS[1]}}"))
    else COMPREPLY=($(compgen -W "--out --dilation --publish --help" -- "${{COMP_WORDS[COMP_CWORD]}}")); fi
}}
complete -o default -F _headway_run mininet-tests/run ./mininet-tests/run"""


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """One run: of what, with which arguments, and where to; the dilation is of the lab, if the launcher boots it."""

    experiment: Experiment
    arguments: tuple[str, ...]
    out: Path
    dilation: int | None
    publish: bool
    install: str = ""

    @property
    def help(self) -> bool:
        """Whether only the experiment's own help is asked for."""
        return "--help" in self.arguments or "-h" in self.arguments


def main(argv: list[str]) -> int:
    """Do what the command line says; return the exit code."""
    asked = request(argv)
    if asked is None:
        return EXIT_OK
    if asked.install and (code := installed(asked)):
        return code
    if not (VENV / "bin" / "python").exists():
        print("run: there is no .venv here yet: make install", file=sys.stderr)
        return EXIT_FAILED
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that what was started is ended
    try:
        return launched(asked)
    except KeyboardInterrupt:
        print(f"run: {asked.experiment.name}: interrupted; nothing is left running", file=sys.stderr)
        return EXIT_INTERRUPTED


def request(argv: list[str]) -> LaunchRequest | None:
    """Return what is to be run; None if the answer was only to be printed, and is.

    Raises:
        SystemExit: with 2 if an argument is wrong, with 0 after ``--help``.
    """
    values = [n + 1 for n, word in enumerate(argv) if word == "--install"]
    named = (n + 1 for n, word in enumerate(argv) if not word.startswith("-") and n not in values)
    head = next(named, len(argv))
    parser = _parser()
    known = parser.parse_args(argv[:head])
    if known.completion:
        print(_COMPLETION.format(names=" ".join(by_name())))
        return None
    if known.list or known.name is None:
        print(listed())
        return None
    if known.name not in by_name():
        near = difflib.get_close_matches(known.name, by_name(), cutoff=0.5)
        parser.error(f"there is no {known.name!r}; {'is it ' + ' or '.join(near) if near else 'see --list'}?")
    return replace(_asked(by_name()[known.name], argv[head:]), install=known.install or "")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="run",
        usage="mininet-tests/run [--list | --completion | --install TARGET] NAME [ARG ...]",
        description="Run an experiment or a bench: where it needs to, isolated, and with its progress shown.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="which one; without it they are listed")
    parser.add_argument("--list", action="store_true", help="list them all")
    parser.add_argument("--install", metavar="TARGET", help="first let make bring TARGET up to date, if it is not")
    parser.add_argument("--completion", action="store_true", help="print what bash needs to complete NAME")
    return parser


def _asked(experiment: Experiment, words: list[str]) -> LaunchRequest:
    """Return the run that the words after the name ask for; those that are not ours are the experiment's."""
    ours = argparse.ArgumentParser(prog=f"run {experiment.name}", add_help=False, allow_abbrev=False)
    ours.add_argument("--out", type=Path, default=commands.ROOT / "out" / experiment.name)
    ours.add_argument("--publish", action="store_true")
    if experiment.place is Place.LAB:
        ours.add_argument("--dilation", type=int, default=experiment.dilation)
    known, theirs = ours.parse_known_args(words)
    if known.publish and experiment.publishes:
        theirs.append("--publish")
    arguments, dilation = (*experiment.arguments, *theirs), getattr(known, "dilation", None)
    return LaunchRequest(experiment, arguments, known.out.absolute(), dilation, known.publish)


def installed(asked: LaunchRequest) -> int:
    """Let make bring up to date what the run needs; return the exit code. A new venv's Python then goes on."""
    make = ["make", "-C", str(commands.ROOT), "--no-print-directory", asked.install]
    if not subprocess.run([*make, "-q"], check=False, capture_output=True).returncode:
        return EXIT_OK
    shown = Shown(asked.experiment.name, INSTALL_S + _expected_s(asked), sys.stdout)
    shown.line(f"{MARK}0 installing\n")
    if not followed(make, shown):
        again = sys.argv[sys.argv.index(asked.experiment.name) :]
        os.execv(sys.argv[0], [sys.argv[0], *again])  # noqa: S606 (ourselves, by the Python that is there now)
    print(f"run: make {asked.install} failed after {clock(shown.elapsed_s)}", file=sys.stderr)
    return EXIT_FAILED


def launched(asked: LaunchRequest) -> int:
    """Run an experiment, draw its figure, say what falls short; return the exit code."""
    name = asked.experiment.name
    if asked.help:
        return subprocess.run(commands.module(asked.experiment.module, "--help"), check=False).returncode
    measured = commit()
    if asked.publish and measured.endswith(CHANGED):
        print(
            f"run: {name}: what is published is of a commit, and this is {measured}: commit what is changed first, or"
            " leave --publish out",
            file=sys.stderr,
        )
        return EXIT_BAD_INPUT
    asked.out.mkdir(parents=True, exist_ok=True)
    report = asked.out / "report.json"
    before = report.stat().st_mtime_ns if report.exists() else None
    shown = Shown(name, _expected_s(asked), sys.stdout)
    shown.line(f"run: {name}: {asked.experiment.line}; {where(asked.experiment, asked.dilation)}, into {asked.out}\n")
    code = followed(command(asked), shown)
    took_s = shown.elapsed_s
    if code:
        print(f"run: {name}: ended with {code} after {clock(took_s)}; what it left is in {asked.out}", file=sys.stderr)
        return code if code in (EXIT_BAD_INPUT, EXIT_INTERRUPTED) else EXIT_FAILED
    if (
        asked.experiment.figure
        and subprocess.run(commands.module(asked.experiment.figure, str(asked.out)), check=False).returncode
    ):
        return EXIT_FAILED
    if not report.exists() or report.stat().st_mtime_ns == before:
        return EXIT_OK  # such as after the experiment's own --list
    (asked.out / TOOK).write_text(json.dumps({**_what(asked), "seconds": round(took_s)}) + "\n")
    return _judged(asked, json.loads(report.read_text()), took_s, measured)


def _judged(asked: LaunchRequest, report: dict[str, Any], took_s: float, measured: str) -> int:
    """Say what has come of a run of a commit; return the exit code."""
    name = asked.experiment.name
    print(f"run: {name}: {clock(took_s)}, {asked.out / 'report.json'}")
    if asked.publish:
        try:
            target = publish(name, measured, list(asked.arguments), report, commands.ROOT, asked.dilation)
        except ValueError as error:
            print(f"run: {error}; not published", file=sys.stderr)
            return EXIT_FAILED
        print(f"run: {name}: published in {target}")
        shown_by = asked.experiment.shown_by
        if shown_by and subprocess.run(commands.module(shown_by), check=False).returncode:
            print(f"run: {name}: {shown_by} did not write its page again; it shows the former figures", file=sys.stderr)
            return EXIT_FAILED
    missed = report.get("falls_short", [])
    for aim in missed:
        one = report["aims"][aim]
        print(f"run: {name}: falls short: {aim}: {one['seen']}, aim: {one['aim']}", file=sys.stderr)
    return EXIT_FALLS_SHORT if missed else EXIT_OK


def command(asked: LaunchRequest) -> list[str]:
    """Return the command that runs an experiment where it belongs."""
    experiment, out = asked.experiment, str(asked.out.absolute())  # a database's path is absolute
    module = commands.module(experiment.module, "--out", out, *asked.arguments)
    if experiment.place is Place.LAB:
        return commands.in_lab("--dilation", str(asked.dilation), "--out", out, command=module)
    return commands.isolated(*module) if experiment.place is Place.ISOLATED else module


def _expected_s(asked: LaunchRequest) -> float:
    """Return how long it will take: as long as the last time if that was the same, else what is known of it."""
    try:
        last = json.loads((asked.out / TOOK).read_text())
    except (OSError, ValueError):
        last = {}
    seconds = last.pop("seconds", None)
    return float(seconds) if last == _what(asked) else 60 * asked.experiment.minutes


def _what(asked: LaunchRequest) -> dict[str, Any]:
    """Return by what a run is known to be the same as another one."""
    return {"arguments": list(asked.arguments), "dilation": asked.dilation}
