"""Every parser that a stranger reaches, fuzzed: libFuzzer, led by what of our code each input runs (atheris).

A process for each parser, forked from one that has imported them all; what it may raise stands in ``targets.py``.
Anything else ends the process, as does what takes more of a processor than ``SLOWEST_S`` or more memory than
``MOST_MB``, or has no end; the input is kept in the folder. A machine that stands still for 5 s is no parser's fault.
"""

import argparse
import logging
import os
import re
import sys
import tempfile
import time
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

from mininet_tests.testing.aims import Aim, at_least, none_of, stated
from mininet_tests.testing.progress import tell
from mininet_tests.testing.reports import print_aims, write_report

INPUTS = 1_000_000
SLOWEST_S, MOST_MB, LONGEST_BYTES = 5, 1_024, 4_096
ENDLESS_S = 120  # by the clock
PATIENCE_S = 3_600
_RUNS = re.compile(r"stat::number_of_executed_units: (\d+)")
_PEAK = re.compile(r"stat::peak_rss_mb: +(\d+)")


class TooSlow(Exception):
    """An input that a parser takes too long for."""


def child(name: str, arguments: list[str], said: Path) -> None:
    """Fuzz one parser in this process, which ends with what is found; what it says is in a file."""
    with said.open("wb") as log:
        for descriptor in (sys.stdout.fileno(), sys.stderr.fileno()):
            os.dup2(log.fileno(), descriptor)
    import atheris  # type: ignore[import-untyped]
    import structlog

    from mininet_tests.scenarios.fuzz.instrumented import TARGETS, taken

    logging.disable(logging.CRITICAL)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    target = TARGETS[name]
    take, _ = target.make()

    def take_one(data: bytes) -> None:
        began_s = time.process_time()
        taken(target, take, data)
        if (took_s := time.process_time() - began_s) > SLOWEST_S:
            raise TooSlow(f"{took_s:.1f} s of a processor")

    atheris.Setup([sys.argv[0], *arguments], take_one)
    atheris.Fuzz()


def fuzzed(name: str, runs: int, seed: int, folder: Path) -> dict[str, Any]:
    """Return what became of one parser: inputs, what was found, seconds, memory."""
    from mininet_tests.scenarios.fuzz.targets import TARGETS

    with tempfile.TemporaryDirectory() as examples:
        for at, one in enumerate(TARGETS[name].make()[1]):
            (Path(examples) / str(at)).write_bytes(one)
        kept = folder / re.sub(r"\W+", "-", name)
        kept.mkdir(parents=True, exist_ok=True)
        options = {
            "runs": runs,
            "seed": seed,
            "timeout": ENDLESS_S,
            "rss_limit_mb": MOST_MB,
            "max_len": LONGEST_BYTES,
            "print_final_stats": 1,
            "artifact_prefix": f"{kept}/",
        }
        said = Path(examples).with_suffix(".log")
        arguments = [*(f"-{key}={value}" for key, value in options.items()), examples]
        began_s = time.monotonic()
        process = _forking().Process(target=child, args=(name, arguments, said))
        process.start()
        process.join(PATIENCE_S)
        process.kill()
        process.join()
    text = said.read_text(errors="replace")
    said.unlink()
    count, peak = _RUNS.search(text), _PEAK.search(text)
    return {
        "inputs": int(count[1]) if count else 0,
        "found": [] if process.exitcode == 0 else [*_found(text), f"its process ended with {process.exitcode}"],
        "seconds": round(time.monotonic() - began_s, 1),
        "peak_mb": int(peak[1]) if peak else None,
        "kept": sorted(str(one) for one in kept.iterdir()),
    }


def _forking() -> ForkServerContext:
    """Return where processes are forked from one that has the parsers: to import them instrumented takes seconds."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["mininet_tests.scenarios.fuzz.instrumented"])
    return context


def _found(text: str) -> list[str]:
    """Return what ended a process, in a few lines: the end of the traceback."""
    said = text.partition("=== Uncaught Python exception: ===")[2].partition("==")[0] or text
    return [line for line in said.splitlines() if line.strip()][-12:]


def measured(inputs: int, seed: int, folder: Path) -> dict[str, Any]:
    """Return what became of all of them; each has its part of the inputs."""
    from mininet_tests.scenarios.fuzz.targets import TARGETS

    found: dict[str, Any] = {}
    parts = sum(target.part for target in TARGETS.values())
    for name, target in TARGETS.items():
        tell(sum(TARGETS[done].part for done in found) / parts, name)
        found[name] = {"who": target.who, **fuzzed(name, max(1, inputs * target.part // 1_000), seed, folder)}
    return {"seed": seed, "inputs": sum(one["inputs"] for one in found.values()), "parsers": found}


def aims(seen: dict[str, Any], inputs: int) -> dict[str, Aim]:
    """Return the aims: all inputs were tried, and nothing was found."""
    wrong = {name: one["found"] for name, one in seen["parsers"].items() if one["found"]}
    return {"inputs": at_least(seen["inputs"], inputs), "what else was raised, hung, or took too much": none_of(wrong)}


def main() -> None:
    """Fuzz them all, and write the report; or one, as its child."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"), help="folder (default: %(default)s)")
    parser.add_argument("--inputs", type=int, default=INPUTS, help="of all parsers together (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn (default: %(default)s)")
    asked = parser.parse_args()
    seen = measured(asked.inputs, asked.seed, asked.out)
    report = {**seen, **stated(aims(seen, asked.inputs))}
    write_report(asked.out, report)
    print_aims(asked.out, report)


if __name__ == "__main__":
    main()
