"""Any network of a file under the plan, before it is deployed: emulated here or in the lab, with real TCP.

The play says who sends what, and when; without one, every host of the largest site sends background to another site,
and one of them announces an image beside it. What was planned and what was delivered is printed, and drawn.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from mininet_tests.lab import commands
from mininet_tests.lab.capability import native_problem
from mininet_tests.lab.placed import EXIT_FAILED, add_places, dilation_for, played_where_it_can_be
from mininet_tests.scenarios.emulate.emulable import CircuitChanges, emulable, problems
from mininet_tests.scenarios.emulate.figure import drawn, printed
from mininet_tests.scenarios.emulate.play import Play, made_up, play_of
from mininet_tests.scenarios.emulate.run import NETWORK, PLAY
from topology.network import Network
from topology.network_file import network_of
from topology.network_text import file_text
from topology.problems import Problems
from topology.units import duration_us, fraction_ppm, rate_bps
from topology.yaml_text import NotYaml, read

EXIT_BAD_INPUT = 2


def arguments(argv: list[str]) -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(
        prog="emulate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="docs/emulate.md has an example of a play, and how to write one.",
    )
    add_places(parser)
    parser.add_argument("--network", type=Path, required=True, metavar="FILE", help="what is emulated")
    parser.add_argument("--play", type=Path, metavar="FILE", help="who sends what, and when")
    parser.add_argument("--check", action="store_true", help="only say what is wrong with both")
    for option, unit, reader, what in (
        ("--rate", "RATE", rate_bps, "another rate each way, as north='400 Mbit/s'"),
        ("--delay", "TIME", duration_us, "another one-way delay, as north='60 ms'"),
        ("--loss", "PERCENT", fraction_ppm, "packets that are lost each way, as north=0.01%%"),
    ):
        parser.add_argument(
            option, action="append", default=[], type=_of_a_circuit(reader), metavar=f"CIRCUIT={unit}", help=what
        )
    parser.add_argument("--exact", action="store_true", help="every packet on its own: slower, exact for loss")
    parser.add_argument("--dilation", type=int, help="the lab's; default: what the rates need, at least 6")
    parser.add_argument("--seed", type=int, default=1, help="of the lines' losses (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("out/emulate"), help="folder (default: %(default)s)")
    args = parser.parse_args(argv)
    if args.dilation is not None and args.dilation < 1:
        parser.error("--dilation must be above 0")
    return args


def _of_a_circuit(reader: Callable[[str], int]) -> Callable[[str], tuple[str, int]]:
    """Return what reads ``CIRCUIT=VALUE``."""

    def read_both(text: str) -> tuple[str, int]:
        name, equals, value = text.partition("=")
        if not equals:
            raise argparse.ArgumentTypeError(f'"{text}": need CIRCUIT=VALUE')
        try:
            return name, reader(value)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return read_both


def asked_for(args: argparse.Namespace) -> tuple[Network, Play]:
    """Return the network as it is emulated, and the play on it.

    Raises:
        ValueError: something is wrong with them; all of it, a line each.
        OSError: a file cannot be read.
    """
    network = _network(args.network)
    named = {f"--{key} {name}": name for key in ("rate", "delay", "loss") for name, _ in getattr(args, key)}
    if found := problems(network, named):
        raise ValueError("\n".join(f"{args.network}: {problem}" for problem in found))
    play = made_up(network) if args.play is None else _play(args.play, network)
    return emulable(network, CircuitChanges(dict(args.rate), dict(args.delay))), play


def _network(file: Path) -> Network:
    text = read(file.read_text(encoding="utf-8"))
    found = Problems(values=text.values)
    network = network_of(text.values, found)
    if network is None or text.repeated or found.found:
        raise ValueError("\n".join(f"{file}: {problem}" for problem in (*text.repeated, *found.found)))
    return network


def _play(file: Path, network: Network) -> Play:
    text = read(file.read_text(encoding="utf-8"))
    found = Problems(values=text.values)
    play = play_of(text.values, network, found)
    if text.repeated or found.found:
        raise ValueError("\n".join(f"{file}: {problem}" for problem in (*text.repeated, *found.found)))
    return play


def text_of_play(play: Play) -> str:
    """Return a play as YAML."""
    transfers = []
    for one in play.transfers:
        values: dict[str, Any] = {"name": one.name, "from": one.sender, "to": one.receiver, "at": f"{one.at_s:g} s"}
        if one.lasts_s is not None:
            values["for"] = f"{one.lasts_s:g} s"
        if one.size_bytes is not None:
            values["size"] = f"{one.size_bytes} B"
        if one.announced:
            values["announce"] = str(one.announced)
        if one.is_ipv6:
            values["ipv6"] = True
        if one.reserved:
            values["reserve"] = {"class": str(one.reserved[0]), "rate": f"{one.reserved[1]} bit/s"}
        transfers.append(values)
    return yaml.safe_dump({"flows": list(play.flows), "transfers": transfers}, sort_keys=False)


def main(argv: list[str]) -> int:
    """Run, report; return the exit code: 0, 1 if the run failed or was invalid, 2 for bad input."""
    args = arguments(argv)
    try:
        network, play = asked_for(args)
    except (NotYaml, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_INPUT
    if args.check:
        print(f"{network.name}: {len(network.hosts)} hosts, {len(play.transfers)} transfers: can be emulated")
        return 0
    out = args.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    (out / NETWORK).write_text(file_text(network))
    (out / PLAY).write_text(text_of_play(play))
    rate_sum_bps = sum(circuit.rate_bps for circuit in network.circuits)
    dilation = args.dilation or dilation_for(rate_sum_bps, single_packets=args.exact)
    code, _ = played_where_it_can_be(_scenario(args, out), args, dilation, out, native_problem)
    if code:
        return code
    report = json.loads((out / "report.json").read_text())
    drawn(report, out / "figure.png")
    printed(report)
    print(f"report: {out / 'report.json'}\nfigure: {out / 'figure.png'}\nlogs:   {out / 'logs'}")
    if "CPU idle" in report["falls_short"]:
        print(f"emulate: invalid: the CPU was full; try a --dilation above {dilation}", file=sys.stderr)
        return EXIT_FAILED
    return 0


def _scenario(args: argparse.Namespace, out: Path) -> list[str]:
    losses = [word for circuit, ppm in args.loss for word in ("--loss", f"{circuit}={ppm}")]
    exact = ["--exact"] if args.exact else []
    return commands.module("scenarios.emulate.run", "--out", str(out), "--seed", str(args.seed), *exact, *losses)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
