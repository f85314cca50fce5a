"""The command line of the lab: arguments in, exit code out. Standard library only: it runs before any venv exists."""

from __future__ import annotations

import argparse
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from mininet_tests.lab import image, machine, qemu

EXIT_OK = 0
EXIT_NO_ROOT = 1
EXIT_BAD_INPUT = 2
EXIT_LAB_BROKEN = 125
"""As ``docker run``: the lab itself failed, not the command in it."""

AGENTS_PROGRAM = "bpf_prog_"
"""How the kernel names a BPF program in a trace."""
MAX_DILATION = 64
MIN_MEMORY_MIB = 512

_DESCRIPTION = """\
Run CMD on a real Linux kernel in virtual time. A small virtual machine boots Debian's kernel (Open vSwitch, netem,
HTB, BPF) over a copy-on-write view of this machine's files; its clock counts executed instructions, so that what is
measured in it does not depend on how fast or busy this machine is. The exit code is CMD's own.
Needs: Debian 12 or newer, x86-64, root. What is missing is installed (apt) or downloaded into the cache at first use.
"""

_EPILOG = """\
examples:
  mininet-tests/lab/boot -- uname -r
  mininet-tests/lab/boot --dilation 4 --out results -- python3 some_scenario.py --out results
  mininet-tests/lab/boot --setup-only                 only install and download, as in the building of an image

exit codes: CMD's own; 1 not root; 2 bad arguments; 124 --timeout passed; 125 the lab itself failed.
  A guest whose kernel dies is begun once more, unless a program of the agent is in the kernel's trace.
files: the guest sees all files of this machine, and may write anywhere, but only --out DIR outlives it.
  /tmp, /run, /var/log are empty in it, but for the checkout, or the folder you start in.
  Cache: $XDG_CACHE_HOME/headway/lab; delete it to renew the kernel.
"""


@dataclass(frozen=True, slots=True)
class LabRequest:
    """What the user asked for, checked."""

    job: machine.Job
    setup_only: bool
    kernel: str


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        """Say what is wrong in one line, and leave with 2."""
        sys.stderr.write(f"lab: {message} (see --help)\n")
        raise SystemExit(EXIT_BAD_INPUT)


def dilation(text: str) -> int:
    """Return the number of guest CPU cycles, in 1e9 a second, that ``text`` asks for."""
    if not text.isdecimal() or not 1 <= int(text) <= MAX_DILATION:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {MAX_DILATION}; try 1, 2 or 4")
    return int(text)


def memory_mib(text: str) -> int:
    """Return the MiB in a size such as ``6G`` or ``2048M``."""
    match = re.fullmatch(r"([0-9]+)([MG])", text)
    mib = int(match[1]) * (1024 if match[2] == "G" else 1) if match else 0
    if mib < MIN_MEMORY_MIB:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size of at least {MIN_MEMORY_MIB}M; try 6G")
    return mib


def timeout_s(text: str) -> int:
    """Return the seconds of wall time after which the machine is stopped."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of seconds above 0; try 600")
    return int(text)


def out_dir(text: str) -> Path:
    """Return the absolute path of the shared folder."""
    path = Path(text).resolve()
    if path == Path("/"):
        raise argparse.ArgumentTypeError("the root folder cannot be shared; name a folder for the results")
    if path.exists() and not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is a file; name a folder (it is made if it does not exist)")
    return path


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="lab",
        usage="%(prog)s [--dilation K] [--out DIR] [--memory 6G] [--kernel SERIES] [--timeout S] -- CMD [ARG ...]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--dilation",
        type=dilation,
        default=1,
        metavar="K",
        help="the guest's CPU does K * 1e9 instructions a second of its own time (default 1); "
        "a run then takes up to K times longer here",
    )
    parser.add_argument(
        "--out",
        type=out_dir,
        metavar="DIR",
        help="folder that the guest shares read-write, at the same path; made if missing",
    )
    parser.add_argument(
        "--memory",
        type=memory_mib,
        default=memory_mib("6G"),
        metavar="SIZE",
        help="the guest's memory, its written files included (default 6G; used only as it fills)",
    )
    parser.add_argument(
        "--timeout",
        type=timeout_s,
        metavar="SECONDS",
        help="stop after this many seconds of wall time, exit code 124 (default: never)",
    )
    parser.add_argument(
        "--kernel",
        default="",
        metavar="SERIES",
        help="Debian's kernel of this series, such as 6.1 (default: 6.12, else 6.1)",
    )
    parser.add_argument("--setup-only", action="store_true", help="install and download what is needed, run nothing")
    return parser


def request(arguments: list[str], cwd: Path, environment: dict[str, str]) -> LabRequest:
    """Return the checked request; the command is all that follows the first ``--``.

    Raises:
        SystemExit: with 2 and one line on stderr, if an argument is wrong; with 0 after ``--help``.
    """
    options, command = _split(arguments)
    parser = _parser()
    known = parser.parse_args(options)
    if not command and not known.setup_only:
        parser.error("no command; write it after --, as in: lab -- uname -r")
    if command and known.setup_only:
        parser.error("--setup-only runs no command; leave one of the two out")
    job = machine.Job(
        command=tuple(command),
        cwd=cwd,
        environment=machine.guest_environment(environment, known.dilation),
        dilation=known.dilation,
        memory_mib=known.memory,
        out_dir=known.out,
        timeout_s=known.timeout,
    )
    return LabRequest(job=job, setup_only=known.setup_only, kernel=known.kernel)


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def main(arguments: list[str]) -> int:
    """Return the exit code of the command, or one of the lab's own."""
    asked = request(arguments, Path.cwd(), dict(os.environ))
    if os.geteuid() != 0:
        sys.stderr.write(
            "lab: needs root (the guest reads this machine's files as root); try: sudo mininet-tests/lab/boot ...\n"
        )
        return EXIT_NO_ROOT
    try:
        booted = image.prepared(image.cache_dir(dict(os.environ)), _say, asked.kernel)
        if asked.setup_only:
            _say(f"ready: Linux {booted.version} in {booted.folder}")
            return EXIT_OK
        return run(asked.job, booted)
    except (image.SetupError, qemu.MachineError) as error:
        _say(str(error))
        return EXIT_LAB_BROKEN


def run(job: machine.Job, booted: image.Image) -> int:
    """Return the exit code of the command; one whose kernel died is run once more in a new machine.

    The kernel has been seen to die of the lab itself (``docs/lab.md``). With a program of the agent in the trace the
    agent may be at fault, and a second run would hide it.

    Raises:
        MachineError: the machine stopped before the command did.
    """
    try:
        return machine.run(job, booted, _say)
    except qemu.KernelDiedError as error:
        if AGENTS_PROGRAM in str(error):
            raise
        _say(str(error))
    _say("no program of the agent is in the trace: once more, from the beginning")
    return machine.run(job, booted, _say)


def _say(line: str) -> None:
    sys.stderr.write(f"lab: {line}\n")
    sys.stderr.flush()
