"""The work of ``headway what-if``: every variant run as often as is said; what was run before is taken as it is."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from controller.live_site import LiveSite
from controller.whatif.file import ScenarioFile, Variant
from controller.whatif.live import continuing, horizon_us
from controller.whatif.outcomes import CircuitUse, RunOutcome
from controller.whatif.results import plain, run_of
from controller.whatif.simulation import Simulation
from controller.whatif.summary import ItemSummary, broken, broken_count, strangers_us, summary_of
from controller.whatif.supposed import CircuitDeath
from topology import __version__
from topology.network_text import section_of
from topology.units import shown_time

Told = Callable[[float], None]  # which part of all is done, from 0 to 1


@dataclass(frozen=True, slots=True)
class VariantResult:
    """A variant, and what its runs have shown."""

    variant: Variant
    runs: tuple[RunOutcome, ...]

    @property
    def rows(self) -> tuple[ItemSummary, ...]:
        """A row for each item of the workload."""
        return summary_of(self.runs, self.variant.within_us)

    @property
    def use(self) -> CircuitUse:
        """What circuits carried, in the mean of all runs."""
        first = self.runs[0].use
        slices = {name: zip(*(run.use.bit_us[name] for run in self.runs), strict=True) for name in first.bit_us}
        means = {name: [sum(bit_us) // len(self.runs) for bit_us in of_name] for name, of_name in slices.items()}
        return CircuitUse(first.from_us, first.slice_us, means)

    @property
    def broken_count(self) -> int:
        """How many promises break, with what was refused."""
        return broken_count(self.runs)


def going_on(live: LiveSite, at_us: int | None, until_us: int | None) -> ScenarioFile:
    """Return the scenario that goes on from a running controller's site.

    Args:
        live: the site.
        at_us: when something is to happen, Unix time; None for at once.
        until_us: how far to look; as far as something is promised, a week at most, if None.

    Raises:
        ValueError: it is no site that this version knows.
    """
    found_us = horizon_us(live, at_us or live.at_us) if until_us is None else until_us
    return ScenarioFile((Variant({}, continuing(live, max(found_us, live.at_us + 1)), {}),), runs=1, seed=1)


def with_deaths(
    file: ScenarioFile, together: Sequence[Sequence[str]], at_us: int | None, down_for_us: int | None
) -> ScenarioFile:
    """Return a scenario in which, in turn, circuits die, one or several at once; as it is comes first.

    Args:
        file: the scenario.
        together: the circuits that die at once, of each variant.
        at_us: when; in the middle of the time if None.
        down_for_us: for how long; until the end if None.
    """
    found = []
    for variant in file.variants:
        found.append(variant)
        supposed = variant.supposed
        when_us = (supposed.from_us + supposed.until_us) // 2 if at_us is None else at_us
        lasts_us = max(1, supposed.until_us - when_us) if down_for_us is None else down_for_us
        from_us, ends_us = max(when_us, supposed.from_us), when_us + lasts_us
        known = {circuit.name for circuit in supposed.site.network.circuits}
        for circuits in together:
            if not (from_us < min(ends_us, supposed.until_us) and known.issuperset(circuits)):
                continue  # what comes in some variants is left out of the others
            deaths = (CircuitDeath(circuit, from_us, ends_us - from_us) for circuit in circuits)
            dead = replace(supposed, deaths=(*supposed.deaths, *deaths))
            said = dict.fromkeys(circuits, f"dies {shown_time(when_us)}")
            found.append(replace(variant, said={**variant.said, **said}, supposed=dead))
    return replace(file, variants=tuple(found))


def worked(file: ScenarioFile, seed: int, kept: Path | None, tell: Told) -> Iterator[VariantResult]:
    """Yield what each variant shows.

    Args:
        file: the scenario.
        seed: of the first run.
        kept: the file with what was run before, which is written on; None to keep nothing.
        tell: is told how much of all is done.

    Raises:
        OSError: the file cannot be read or written.
        UnicodeDecodeError: it is no text.
    """
    before = {} if kept is None else _before(kept)
    if kept is not None and kept.exists() and not f"\n{kept.read_text(encoding='utf-8')}".endswith("\n"):
        with kept.open("a", encoding="utf-8") as lines:
            lines.write("\n")  # after a line that was cut off
    count = len(file.variants) * file.runs
    for number, variant in enumerate(file.variants):
        runs = []
        for turn in range(file.runs):
            done, key = number * file.runs + turn, digest(variant, seed + turn)
            if key not in before:
                run = Simulation(variant.supposed, seed + turn, tell=_telling(variant, done, count, tell)).run()
                if kept is not None:
                    with kept.open("a", encoding="utf-8") as lines:
                        lines.write(json.dumps({"of": key, "run": plain(run)}) + "\n")
                runs.append(run)
            else:
                runs.append(before[key])
            tell((done + 1) / count)
        yield VariantResult(variant, tuple(runs))


def _telling(variant: Variant, done: int, count: int, tell: Told) -> Callable[[int], None]:
    supposed = variant.supposed
    lasts_us = max(1, supposed.until_us - supposed.from_us)
    return lambda now_us: tell((done + (now_us - supposed.from_us) / lasts_us) / count)


def digest(variant: Variant, seed: int) -> str:
    """Return what a run is known by: another scenario, network, seed or version has another."""
    supposed = variant.supposed
    said = {name: getattr(supposed, name) for name in supposed.__dataclass_fields__ if name != "site"}
    site = supposed.site
    of_site = (site.policy, site.standing, site.lease_ms, sorted(site.schedules.items()), site.return_after_us)
    text = repr((__version__, seed, section_of(site.network), of_site, said))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _before(kept: Path) -> dict[str, RunOutcome]:
    """Return the runs that a file has; a last line that was cut off is not one."""
    found = {}
    if kept.exists():
        for line in kept.read_text(encoding="utf-8").splitlines():
            try:
                said = json.loads(line)
                found[str(said["of"])] = run_of(said["run"])
            except (ValueError, KeyError, TypeError):
                continue
    return found


def as_json(results: Sequence[VariantResult], seed: int) -> dict[str, Any]:
    """Return everything, as ``--json`` prints it; times are RFC 3339, durations microseconds."""
    return {"seed": seed, "variants": [_variant_json(result) for result in results]}


def _variant_json(result: VariantResult) -> dict[str, Any]:
    supposed = result.variant.supposed
    return {
        "variant": {place: str(value) for place, value in result.variant.said.items()},
        "runs": len(result.runs),
        "items": [
            {name: value for name, value in asdict(row).items() if name != "done_by_us"}
            | {"done_by": None if row.done_by_us is None else shown_time(row.done_by_us)}
            for row in result.rows
        ],
        "broken_count": result.broken_count,
        "broken": broken(result.runs),
        "others": {name: list(span) for name, span in strangers_us(supposed).items()},
        "deaths": [
            {"seed": run.seed, "circuit": circuit, "times": times, "down_us": down_us}
            for run in result.runs
            for circuit, (times, down_us) in sorted(run.deaths.items())
        ],
        "standing_bytes": [{"seed": run.seed, **run.standing_bytes} for run in result.runs],
        "use": _use_json(result),
    }


def _use_json(result: VariantResult) -> dict[str, Any]:
    """Return the mean rate on each direction of each circuit over time, in the mean of all runs."""
    use = result.use
    rates = {name: [bit_us // use.slice_us for bit_us in slices] for name, slices in use.bit_us.items()}
    return {"from": shown_time(use.from_us), "slice_us": use.slice_us, "wire_bps": rates}
