"""The LSST scenario with one command: run it here or in the lab, then print the table and draw the figure.

By default with a quarter of the paper's image: all rates and changes of hands are the same, it is only sooner over.

It runs right here if this machine's kernel has Open vSwitch and netem and we are root; otherwise in the lab, a real
kernel in virtual time, which gives exact figures on any machine.
"""

import argparse
import json
import sys
from pathlib import Path

from mininet_tests.lab import commands
from mininet_tests.lab.capability import native_problem
from mininet_tests.lab.placed import EXIT_FAILED, add_places, dilation_for, played_where_it_can_be
from mininet_tests.scenarios.figure2.aims import aims
from mininet_tests.scenarios.figure2.course import LOSS_PPM, PART_BYTES
from mininet_tests.scenarios.figure2.figure import drawn, printed
from mininet_tests.scenarios.figure2.report import report
from mininet_tests.site.lsst import IMAGE_HOSTS, RECEIVER
from mininet_tests.testing.aims import stated
from mininet_tests.testing.networks import chile_illinois
from mininet_tests.testing.reports import write_report
from topology.units import rate_bps, shown_rate

LONGEST_LEAD_S = 25  # nuttcp's server ends a connection that has been idle for 30 s


FULL = {"part_bytes": PART_BYTES, "lead": 5.0, "tail": 5.0}
SHORT = {"part_bytes": PART_BYTES // 4, "lead": 3.0, "tail": 3.0}  # the same rates, shares and changes of hands


def _defaults(name: str) -> str:
    """Return what an argument is unless it is given."""
    return f"default: {SHORT[name]:.12g}; with --full: {FULL[name]:.12g}"


def arguments(argv: list[str]) -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(
        prog="demo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_places(parser)
    parser.add_argument(
        "--rate", type=_rate, default="1 Gbit/s", metavar="RATE", help="the circuit (default: %(default)s)"
    )
    parser.add_argument("--full", action="store_true", help="the paper's whole image, and more before and after it")
    parser.add_argument("--part-bytes", type=int, help=f"what each of two senders sends ({_defaults('part_bytes')})")
    parser.add_argument(
        "--lead", type=float, metavar="S", help=f"seconds before the announcement ({_defaults('lead')})"
    )
    parser.add_argument("--tail", type=float, metavar="S", help=f"seconds after the release ({_defaults('tail')})")
    parser.add_argument(
        "--slow-disk",
        type=_rate,
        metavar="RATE",
        help="the image is written to a disk of this rate, in the lab",
    )
    parser.add_argument("--exact", action="store_true", help="every packet on its own: slower, exact for loss")
    parser.add_argument("--dilation", type=int, help="the lab's; default: what the rate needs, at least 6")
    parser.add_argument("--seed", type=int, default=1, help="of the line's losses (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("out/demo"), help="folder (default: %(default)s)")
    args = parser.parse_args(argv)
    if args.slow_disk is not None:
        if args.native:
            parser.error("--slow-disk changes limits of the whole machine: leave --native out to run in the lab")
        if not 0 < args.slow_disk < args.rate:
            parser.error(f"--slow-disk is {shown_rate(args.slow_disk)}, need less than --rate {shown_rate(args.rate)}")
        args.lab = True
    for name, value in (FULL if args.full else SHORT).items():
        setattr(args, name, value if getattr(args, name) is None else getattr(args, name))
    if not 0 < args.lead <= LONGEST_LEAD_S:
        parser.error(f"--lead is {args.lead:g} s, need more than 0 and at most {LONGEST_LEAD_S}: idle movers give up")
    if args.part_bytes <= 0 or args.tail <= 0 or (args.dilation is not None and args.dilation < 1):
        parser.error("--part-bytes, --tail and --dilation must be above 0")
    return args


def _rate(text: str) -> int:
    try:
        return rate_bps(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def main(argv: list[str]) -> int:
    """Run, report; return the exit code: 0, 1 if the run failed or was invalid, 2 for a wrong command line."""
    args = arguments(argv)
    dilation = args.dilation or dilation_for(args.rate, single_packets=args.exact)
    out = args.out.absolute()
    code, where = played_where_it_can_be(_scenario(args, out), args, dilation, out, native_problem)
    return code or _reported(args, out, where, dilation if where == "lab" else None)


def _scenario(args: argparse.Namespace, out: Path) -> list[str]:
    """Return the command that runs the scenario; the same here and in the lab."""
    out.mkdir(parents=True, exist_ok=True)
    return commands.module(
        "scenarios.figure2.run", "--rate", f"{args.rate} bit/s",
        "--part-bytes", str(args.part_bytes), "--lead", str(args.lead), "--tail", str(args.tail),
        "--seed", str(args.seed), *(["--exact"] if args.exact else []),
        *(["--slow-disk", f"{args.slow_disk} bit/s"] if args.slow_disk else []), "--out", str(out),
    )  # fmt: skip


def _reported(args: argparse.Namespace, out: Path, mode: str, dilation: int | None) -> int:
    """Write report and figure, print the table; a run in which the CPU was full is refused."""
    run = json.loads((out / "run.json").read_text())
    network = chile_illinois(rate_bps=args.rate)
    facts = {
        "mode": mode,
        "dilation": dilation,
        "seed": run["seed"],
        "rtt_ms": network.path_rtt_us(network.path(IMAGE_HOSTS[0], RECEIVER)) / 1000,
        "loss_set": LOSS_PPM / 1e6,
    }
    result = report(run, facts)
    result |= stated(aims(result))
    write_report(out, result)
    if not result["valid"]:
        cpu = result["cpu"]
        print(
            f"demo: invalid: the CPU was idle for only {cpu['least_idle_share']:.1%} of some second, so packets waited "
            f"for it and not for the line of {shown_rate(args.rate)}; try a larger --dilation",
            file=sys.stderr,
        )
        return EXIT_FAILED
    drawn(run, result, out / "figure.png")
    printed(result)
    print(f"report: {out / 'report.json'}\nfigure: {out / 'figure.png'}\nlogs:   {out / 'logs'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
