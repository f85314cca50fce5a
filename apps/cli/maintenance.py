"""``headway maintenance``: when a circuit is worked on, and what that breaks."""

import json
from datetime import tzinfo
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apps.cli import base, completion, options, printed, shown
from headway.errors import ApiProblem
from topology import units

if TYPE_CHECKING:
    from headway.records import BrokenOut, MaintenanceOut

app = typer.Typer()


@app.command()
def maintenance(
    context: typer.Context,
    circuit: Annotated[
        str | None,
        typer.Argument(help="The circuit that is worked on; without it, list.", autocompletion=completion.circuits),
    ] = None,
    start: Annotated[str | None, typer.Option(help="22:00, tomorrow 06:30, RFC 3339, now.")] = None,
    duration: Annotated[str | None, typer.Option("--for", help="How long, e.g. 2h; this or --until.")] = None,
    until: Annotated[str | None, typer.Option(help="The end, written as --start is.")] = None,
    description: Annotated[str, typer.Option(help="Your own words.")] = "",
    only_look: Annotated[bool, typer.Option("--dry-run", help="Only say what it would break.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Though it breaks reservations.")] = False,
    cancel: Annotated[
        str | None,
        typer.Option(help="Take the one of this id back.", autocompletion=completion.planned_maintenance),
    ] = None,
    key: options.Key = None,
    zone: options.Zone = None,
    url: options.Url = options.DEFAULT_URL,
    as_json: options.AsJson = False,
) -> None:
    """Plan the maintenance of a circuit, list what is planned, or take one back.

    Exit 3: it would break reservations, and is not planned; --force plans it all the same.

    headway maintenance chile-illinois --start "tomorrow 10:00" --for 2h --dry-run
    """
    where, key = base.zone_option(zone), base.request_key(key)
    if cancel is not None or circuit is None:
        if cancel is not None and circuit is not None:
            base.stop("name a circuit, or --cancel ID", base.EXIT_USAGE)
        times = {"--start": start, "--for": duration, "--until": until}
        _need_none_of({**times, "--description": description or None, "--dry-run": only_look, "--force": force})
        with base.client_of(url) as controller:
            found = controller.list_maintenance() if cancel is None else [controller.cancel_maintenance(cancel)]
        _show(found, where, as_json=as_json, none="no maintenance is planned")
        return
    if (duration is None) == (until is None):
        base.stop('say how long, either --for 2h or --until "tomorrow 12:00"', base.EXIT_USAGE)
    body: Any = {"circuit": circuit, "description": description, "only_look": only_look, "force": force}
    if start not in {None, "now"}:
        body["start"] = base.instant(start, where, "--start")
    if duration is not None:
        body["duration_s"] = shown.seconds(base.quantity(duration, units.duration_us, "--for") or 0)
    else:
        body["end"] = base.instant(until, where, "--until", body.get("start"))
    with base.repeatable(key), base.client_of(url, typed=options.typed(context)) as controller:
        try:
            planned = controller.plan_maintenance(body, idempotency_key=key)
        except ApiProblem as problem:
            if problem.kind != "/problems/would-break":
                raise
            typer.echo(json.dumps(problem.problem) if as_json else f"headway: {problem}", err=not as_json)
            if not as_json:
                _show_broken(problem.problem["breaks"], stderr=True)
            raise typer.Exit(base.EXIT_REFUSED) from None
    if not planned["planned"] and not only_look:
        why = f"{planned['maintenance']['id']} was planned with this key, and is over or taken back"
        base.stop(f"{why}; to plan anew, use another --key or none", base.EXIT_FAILED)
    if as_json:
        typer.echo(json.dumps(planned))
        return
    _show([planned["maintenance"]], where)
    typer.echo("it is planned" if planned["planned"] else "nothing is planned: you only looked")
    _show_broken(planned["breaks"])
    for other in planned["beside"]:
        said = f"{other['start']} to {other['end']}, {other['description'] or other['id']}"
        typer.echo(f"beside another: {said}; nothing goes by {other['circuit']} until both are over")


def _need_none_of(planning: dict[str, str | bool | None]) -> None:
    """End with 2 if something is said that plans a circuit's maintenance, where no circuit is named."""
    for option, value in planning.items():
        if value not in {None, False}:
            base.stop(f"{option} goes with a circuit: say which one is worked on", base.EXIT_USAGE)


def _show(rows: "list[MaintenanceOut]", where: tzinfo, *, as_json: bool = False, none: str = "") -> None:
    if as_json:
        typer.echo(json.dumps(rows))
        return
    from rich.markup import escape

    table = printed.new_table("id", "circuit", "from", "until", "words", "by")
    for one in rows:
        begin, end = shown.short(one["start"], where), shown.short(one["end"], where)
        table.add_row(one["id"], one["circuit"], begin, end, escape(one["description"]), escape(one["creator"] or ""))
    printed.show(table if rows else none)


def _show_broken(rows: "list[BrokenOut]", *, stderr: bool = False) -> None:
    for one in rows:
        instead = f"; instead: {one['instead']}" if one["instead"] else ""
        breaks = "breaks" if one["until"] is None else "interrupts"
        shown.say(f"{breaks} {one['id']}: {one['why']}{instead}", stderr=stderr)
