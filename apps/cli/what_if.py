"""``headway what-if``: what would become of the promises, by the controller's own decisions on a virtual clock."""

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from apps.cli import base, options, printed, shown, times
from topology import __version__, units

if TYPE_CHECKING:
    from apps.cli.what_if_work import VariantResult
    from controller.whatif.file import ScenarioFile

app = typer.Typer()
SHOWN_BROKEN = 20
DRAWING_NEEDS = "a figure needs matplotlib: pip install 'headway[emulation]'"


@app.command(name="what-if")
def what_if(
    scenario: Annotated[
        Path | None, typer.Argument(metavar="[SCENARIO]", help="YAML file; see docs/what-if.md.")
    ] = None,
    live: Annotated[
        str | None, typer.Option(metavar="URL", help="Go on from a running controller instead of a file.")
    ] = None,
    kill: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CIRCUIT",
            help="Try the death of this circuit too; again for another; all for each; north,south for both at once.",
        ),
    ] = None,
    at: Annotated[
        str | None, typer.Option(help="When it dies: 14:00, RFC 3339; in the middle if absent, of --live now.")
    ] = None,
    lasts: Annotated[str | None, typer.Option("--for", help="How long it is down; until the end if absent.")] = None,
    until: Annotated[
        str | None,
        typer.Option(help="With --live: how far to look; the last promise's end, a week at most, if absent."),
    ] = None,
    zone: options.Zone = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of what is drawn; the scenario's if absent.")] = None,
    figure: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the use of circuits over time.")] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep each whole run in this file; what it has is not run again, one that was stopped is.",
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Say what would become of a workload: what is promised, what breaks, how circuits are used.

    Ends with 4 if a promise breaks, with 3 if something is refused.

    headway what-if night.yaml --kill north --at 2026-12-01T02:00:00Z --for 1h

    headway what-if --live http://127.0.0.1:8080 --kill north --at 14:00
    """
    file = _wanted(scenario, live, at, until, base.zone_option(zone))
    file = _with_kills(file, kill or [], at, lasts, base.zone_option(zone), now=live is not None)
    first_seed = file.seed if seed is None else seed
    results = _worked(file, first_seed, keep)
    if as_json:
        from apps.cli.what_if_work import as_json as all_of_it

        typer.echo(json.dumps(all_of_it(results, first_seed)))
    else:
        _show(results, file.runs, first_seed)
    if figure is not None:
        _draw(results, figure)
    refused = any(row.refused for result in results for row in result.rows)
    if any(row.late for result in results for row in result.rows):
        raise typer.Exit(base.EXIT_NOT_CARRIED)
    if refused:
        raise typer.Exit(base.EXIT_REFUSED)


def _wanted(
    scenario: Path | None, live: str | None, at: str | None, until: str | None, where: tzinfo
) -> "ScenarioFile":
    """Return the scenario of a file, or the one that goes on from a running controller."""
    if (scenario is None) is (live is None):
        base.stop("name a scenario's file, or --live URL", base.EXIT_USAGE)
    if scenario is not None:
        if until is not None:
            base.stop("--until is of --live: a scenario's file says its own", base.EXIT_USAGE)
        return _loaded(scenario)
    from apps.cli.what_if_work import going_on
    from controller.live_site import live_site_of

    with base.client_of(live or "", said_by="--live") as controller:
        said = controller.get_scenario()
    if said["version"] != __version__:
        typer.echo(f"headway: the controller is {said['version']}, this command {__version__}", err=True)
    try:
        site = live_site_of(said["site"])
        at_us, until_us = (_instant(text, where, site.at_us, name) for text, name in ((at, "--at"), (until, "--until")))
        file = going_on(site, at_us, until_us)
    except ValueError as error:
        base.stop(f"what {live} says is not known here: use headway {said['version']}; {error}", base.EXIT_FAILED)
    if until_us is not None and until_us <= site.at_us:
        base.stop(f"--until: {until} is over", base.EXIT_USAGE)
    for line in said["unlike"]:
        shown.say(f"headway: {line}", stderr=True)
    return file


def _instant(text: str | None, where: tzinfo, after_us: int, option: str) -> int | None:
    """Return a time as Unix microseconds; one without a date is the next after another."""
    return base.quantity(text, lambda written: times.local_instant_us(written, where, after_us), option)


def _loaded(scenario: Path) -> "ScenarioFile":
    from controller.errors import ConfigError
    from controller.whatif.file import loaded_scenario

    try:
        return loaded_scenario(scenario)
    except ConfigError as error:
        base.stop(str(error), base.EXIT_USAGE)


def _with_kills(
    file: "ScenarioFile", kill: list[str], at: str | None, lasts: str | None, where: tzinfo, *, now: bool
) -> "ScenarioFile":
    """Return a scenario in which, in turn, circuits die; without a time at once where ``now`` is said."""
    from apps.cli.what_if_work import with_deaths

    each = [variant.supposed for variant in file.variants]
    from_us, until_us = min(one.from_us for one in each), max(one.until_us for one in each)
    at_us = _instant(at, where, from_us, "--at") or (from_us if now else None)
    lasts_us = base.quantity(lasts, units.duration_us, "--for")
    if not kill:
        if at is not None or lasts is not None:
            base.stop("--at and --for are of --kill: say which circuit dies", base.EXIT_USAGE)
        return file
    together = _deaths_together(kill, [[circuit.name for circuit in one.site.network.circuits] for one in each])
    if at_us is not None and not from_us <= at_us < until_us:
        span = f"{units.shown_time(from_us)} to {units.shown_time(until_us)}"
        meant = f"{at}, which is {units.shown_time(at_us)}," if at != units.shown_time(at_us) else at
        base.stop(f"--at: {meant} is not within the scenario, {span}", base.EXIT_USAGE)
    if lasts_us is not None and lasts_us <= 0:
        base.stop("--for: need more than nothing", base.EXIT_USAGE)
    return with_deaths(file, together, at_us, lasts_us)


def _deaths_together(kill: list[str], by_variant: list[list[str]]) -> list[tuple[str, ...]]:
    """Return which circuits die at once, of each ``--kill``: names with commas between them; all is each alone."""
    known = list(dict.fromkeys(name for names in by_variant for name in names))
    found = dict[tuple[str, ...], None]()  # each is tried once
    for said in kill:
        names = tuple(dict.fromkeys(base.names_in(said)))
        found |= dict.fromkeys(((name,) for name in known) if said == "all" else [names])
    if wrong := [name for names in found for name in names if name not in known]:
        base.stop(f'--kill: there is no circuit "{wrong[0]}"; there are {", ".join(known)}', base.EXIT_USAGE)
    if apart := [names for names in found if not any(set(names) <= set(of_one) for of_one in by_variant)]:
        base.stop(f"--kill: {','.join(apart[0])}: no network here has them together", base.EXIT_USAGE)
    return list(found)


def _worked(file: "ScenarioFile", seed: int, keep: Path | None) -> "list[VariantResult]":
    from apps.cli.what_if_work import worked

    try:
        with _progress() as tell:
            return list(worked(file, seed, keep, tell))
    except OSError as error:
        base.stop(f"{keep}: {error.strerror}", base.EXIT_FAILED)
    except UnicodeDecodeError:
        base.stop(f"--keep: {keep} is not UTF-8 text, so no file of runs", base.EXIT_USAGE)
    except KeyboardInterrupt:
        base.stop(
            "stopped" + (f"; what was run is in {keep}, and goes on from there" if keep else ""), base.EXIT_FAILED
        )


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[float], None]]:
    """Show on a terminal how much is done."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("what if", total=1.0)
        yield lambda share: progress.update(task, completed=share)


def _draw(results: "Sequence[VariantResult]", figure: Path) -> None:
    try:
        from apps.cli.what_if_figure import drawn

        drawn(results, figure)
    except ModuleNotFoundError as error:
        base.stop(f"{error.name} is not installed; {DRAWING_NEEDS}", base.EXIT_FAILED)
    except (OSError, ValueError) as error:
        base.stop(f"{figure}: {getattr(error, 'strerror', None) or error}", base.EXIT_FAILED)


def shown_us(duration_us: int | None) -> str:
    """Return a duration for people; nothing for none.

    >>> shown_us(2_622_437), shown_us(447_978_792), shown_us(90_061_000_000), shown_us(None)
    ('2.622 s', '7m28s', '25h1m', '')
    """
    if duration_us is None:
        return ""
    seconds = duration_us / 1e6
    if seconds < 120:
        return f"{seconds:.3f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest}s" if minutes < 120 else f"{minutes // 60}h{minutes % 60}m"


def _show(results: "Sequence[VariantResult]", runs: int, seed: int) -> None:
    """Print a table for each variant, and which promises break, and why."""
    from rich.markup import escape
    from rich.text import Text

    for result in results:
        table = printed.new_table(title=Text(result.variant.name))
        within = bool(result.variant.within_us)
        heads = ["workload", "asked", "refused", "late", *(["over"] if within else []), "done by", "worst", "median"]
        for head in (*heads, "5%", "95%"):
            table.add_column(head, justify="left" if head in {"workload", "done by"} else "right")
        for row in result.rows:
            over = [] if not within else ["" if row.over is None else str(row.over)]
            done_by = "" if row.done_by_us is None else units.shown_time(row.done_by_us)[:19] + "Z"
            late = f"[red]{row.late}[/red]" if row.late else "0"
            counts = (str(row.asked), str(row.refused), late, *over, done_by)
            times = map(shown_us, (row.worst_us, row.median_us, row.low_us, row.high_us))
            table.add_row(escape(row.item), *counts, *times)
        printed.show(table)
        _show_rest(result)
    drawn = f", {runs} runs each" if runs > 1 else ""
    typer.echo(f"seed {seed}{drawn}")


def _show_rest(result: "VariantResult") -> None:
    from rich.markup import escape

    from controller.whatif.summary import broken, strangers_us

    until_us = result.variant.supposed.until_us
    for one in broken(result.runs, SHOWN_BROKEN):
        if one["refused"]:
            said = f"refused {one['begun']}"
        elif one["lacked_us"]:
            said = f"reserved from {one['begun']}, has less for {shown_us(one['lacked_us'])}"
        else:
            done = f"done {one['done']}" if one["done"] else f"not done by {units.shown_time(until_us)}"
            said = f"promised by {one['promised']}, {done}"
        printed.show(escape(f"{one['item']} {one['name'] or one['number'] + 1}: {said}: {one['why']}"))
    if result.broken_count > SHOWN_BROKEN:
        typer.echo(f"... and {result.broken_count - SHOWN_BROKEN} more: --json")
    for name, (least_us, most_us) in strangers_us(result.variant.supposed).items():
        typer.echo(f"{name}: not held by the plan, {shown_us(least_us)} to {shown_us(most_us)}")
