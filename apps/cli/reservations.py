"""What is done with reservations once they are there: look, commit, renew, change, cancel."""

import json
from typing import Annotated, Any

import typer

from apps.cli import base, completion, options, shown, tables
from controller.plan.lifecycle import ReservationState
from topology import units

app = typer.Typer()


@app.command()
def reservations(
    state: Annotated[list[ReservationState] | None, typer.Option(help="In this state; may be repeated.")] = None,
    flow_class: Annotated[
        list[options.AnyClass] | None, typer.Option("--class", help="Of this class; repeatable.")
    ] = None,
    a_end: Annotated[str | None, typer.Option("--from", help="From it.", autocompletion=completion.ends)] = None,
    z_end: Annotated[str | None, typer.Option("--to", help="To it.", autocompletion=completion.ends)] = None,
    after: Annotated[str | None, typer.Option(help="Its time goes on after this, e.g. 22:00 or now.")] = None,
    before: Annotated[str | None, typer.Option(help="Its time begins before this.")] = None,
    zone: options.Zone = None,
    url: options.Url = options.DEFAULT_URL,
    as_json: options.AsJson = False,
) -> None:
    """List reservations in order of creation.

    headway reservations --state active --state committed

    headway reservations --from la-serena --after now --before "tomorrow 06:30"
    """
    where = base.zone(zone)
    query = {"limit": 1000, "state": state, "class": flow_class, "from": a_end, "to": z_end}
    query |= {"after": base.instant(after, where, "--after"), "before": base.instant(before, where, "--before")}
    found: list[dict[str, Any]] = []
    cursor = lacks = None
    while True:
        page = base.call(url, "GET /v1/reservations", params=query | {"cursor": cursor}, waits_s=base.WAITS_S)
        found += page["reservations"]
        cursor, lacks = page["next"], lacks or page["lacks"]
        if cursor is None:
            break
    if lacks:
        typer.echo(f"those that have ended are not all here, for the database cannot be read: {lacks}", err=True)
    if as_json:
        typer.echo(json.dumps(found))
    else:
        tables.show_reservations(found, where)


@app.command()
def reservation(
    name: options.Id, zone: options.Zone = None, url: options.Url = options.DEFAULT_URL, as_json: options.AsJson = False
) -> None:
    """Show a reservation.

    headway reservation 9f86d081884c7d65
    """
    _done(url, f"GET {_at(name)}", zone, as_json)


@app.command()
def commit(
    name: options.Id, zone: options.Zone = None, url: options.Url = options.DEFAULT_URL, as_json: options.AsJson = False
) -> None:
    """Make a hold a promise. One that is a promise already stays so.

    headway commit 9f86d081884c7d65
    """
    _done(url, f"POST {_at(name)}/commit", zone, as_json)


@app.command()
def renew(
    name: options.Id,
    duration: Annotated[str, typer.Option("--for", help="From now, at most 1h.")] = "60s",
    zone: options.Zone = None,
    url: options.Url = options.DEFAULT_URL,
    as_json: options.AsJson = False,
) -> None:
    """Keep a hold for longer, from now.

    headway renew 9f86d081884c7d65 --for 10min
    """
    held_s = shown.seconds(base.quantity(duration, units.duration_us, "--for") or 0)
    _done(url, f"POST {_at(name)}/renew", zone, as_json, {"hold_s": held_s})


@app.command()
def cancel(
    name: options.Id, zone: options.Zone = None, url: options.Url = options.DEFAULT_URL, as_json: options.AsJson = False
) -> None:
    """Give a reservation back, held or committed, begun or not.

    headway cancel 9f86d081884c7d65
    """
    _done(url, f"DELETE {_at(name)}", zone, as_json)


def _at(name: str) -> str:
    return f"/v1/reservations/{base.segment(name)}"


def _done(url: str, operation: str, zone: str | None, as_json: bool, body: dict[str, Any] | None = None) -> None:
    """Do something that may be repeated, and show what became of the reservation."""
    where = base.zone(zone)
    tables.show_reservation(base.call(url, operation, body, waits_s=base.WAITS_S), where, as_json)
