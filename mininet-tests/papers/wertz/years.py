"""The observatory's year (``contrib/what-if/year*.yaml``) run for many seeds: how many images are later than 5 s.

A circuit's deaths follow from the seed and its name, so all variants of a seed have the same of each circuit.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from controller.settings.file import read_file
from controller.whatif.file import ScenarioFile, scenario_of
from controller.whatif.simulation import Simulation
from controller.whatif.summary import share_us, summary_of
from mininet_tests.testing.networks import FOLDER

SCENARIOS = Path(__file__).parents[3] / "contrib" / "what-if"
YEARS = {"year": ("one circuit", "two circuits"), "year-lanes": ("lanes", "lanes, south 2% faster")}
"""By scenario's file, what its variants are called here."""
IMAGE = "image"


@dataclass(frozen=True, slots=True)
class Year:
    """What one run of one variant has shown of the images.

    Attributes:
        called: the variant.
        seed: of the run.
        asked: how many there were.
        over: how many took longer than 5 s, or never arrived.
        never: how many of those never arrived.
        broken: how many promises broke.
        median_us: half took no longer.
        down_us: by circuit, for how long it was down.
    """

    called: str
    seed: int
    asked: int
    over: int
    never: int
    broken: int
    median_us: int | None
    down_us: Mapping[str, int]


def scenario(name: str) -> ScenarioFile:
    """Return what a file of contrib/what-if says, with the networks of the experiments."""
    file = SCENARIOS / f"{name}.yaml"
    return scenario_of(read_file(file).values, str(file), FOLDER)


def year(name: str, number: int, seed: int) -> Year:
    """Run one variant of a file with a seed."""
    variant = scenario(name).variants[number]
    run = Simulation(variant.supposed, seed).run()
    row = next(one for one in summary_of([run], variant.within_us) if one.item == IMAGE)
    never = sum(one.item == IMAGE and one.done_us is None for one in run.transfers)
    down_us = {circuit: lasted_us for circuit, (_, lasted_us) in sorted(run.deaths.items())}
    return Year(YEARS[name][number], seed, row.asked, row.over or 0, never, row.late, row.median_us, down_us)


def years(runs: int, done: Callable[[float, str], None]) -> dict[str, Any]:
    """Return what so many runs of each variant come to, as the report has it: the mean, and 5 to 95%.

    ``done`` is called before the first and after each, with which part of them has been run, and how many that is.
    """
    asked = [
        (name, number, seed)
        for seed in range(1, runs + 1)
        for name, variants in YEARS.items()
        for number in range(len(variants))
    ]
    found: list[Year] = []
    with ProcessPoolExecutor(2) as pool:
        done(0.0, f"0 of {len(asked)} years")
        for one in pool.map(year, *zip(*asked, strict=True)):
            found.append(one)
            done(len(found) / len(asked), f"{len(found)} of {len(asked)} years")
    return of_years(found)


def of_years(found: Sequence[Year]) -> dict[str, Any]:
    """Return what runs come to, by what their variants are called.

    >>> two = [Year("one", seed, 100, over, 0, 0, 2, {"north": 3_600_000_000}) for seed, over in ((1, 4), (2, 8))]
    >>> of_years(two)["one"]["later_than_5_s"], of_years(two)["one"]["north_down_h"]["mean"]
    ({'mean': 6, 'low': 4, 'high': 8}, 1)
    """
    report = {}
    for called in dict.fromkeys(one.called for one in found):
        of_one = [one for one in found if one.called == called]
        circuits = dict.fromkeys(name for one in of_one for name in one.down_us)
        report[called] = {
            "runs": len(of_one),
            "images": round(mean(one.asked for one in of_one)),
            "later_than_5_s": _span(one.over for one in of_one),
            "never_arrived": _span(one.never for one in of_one),
            "promises_broken": _span(one.broken for one in of_one),
            "median_s": round(mean(one.median_us or 0 for one in of_one) / 1e6, 3),
        } | {f"{name}_down_h": _span(one.down_us.get(name, 0) / 3.6e9 for one in of_one) for name in circuits}
    return report


def _span(values: Iterable[float]) -> dict[str, int]:
    """Return the mean, and what 5% and 95% do not exceed."""
    found = sorted(round(value) for value in values)
    return {"mean": round(mean(found)), "low": share_us(found, 5) or 0, "high": share_us(found, 95) or 0}


def table(report: Mapping[str, Any]) -> str:
    """Return what docs/what-if.md has of a year, from the report."""

    def shown(one: Mapping[str, int]) -> str:
        return f"{one['mean']:,} ({one['low']:,} to {one['high']:,})"

    lines = ["| a year with | images later than 5 s | of them never sent | promises broken | an image takes |"]
    lines.append("|---|---|---|---|---|")
    for called, one in report.items():
        counts = (shown(one[key]) for key in ("later_than_5_s", "never_arrived", "promises_broken"))
        lines.append(f"| {called} | {' | '.join(counts)} | {one['median_s']} s |")
    return "\n".join(lines)
