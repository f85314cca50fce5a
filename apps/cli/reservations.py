"""What is done with reservations once they are there: look, commit, renew, change, cancel."""

import json
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apps.cli import base, completion, options, owners, shown, tables
from controller.plan.lifecycle import ReservationState
from topology import units

if TYPE_CHECKING:
    from headway.client import Client
    from headway.promises import ReservationOut

app = typer.Typer()


@app.command()
def reservations(
    context: typer.Context,
    state: Annotated[list[ReservationState] | None, typer.Option(help="In this state; may be repeated.")] = None,
    flow_class: Annotated[
        list[options.AnyClass] | None, typer.Option("--class", help="Of this class; repeatable.")
    ] = None,
    a_end: Annotated[str | None, typer.Option("--from", help="From it.", autocompletion=completion.end_names)] = None,
    z_end: Annotated[str | None, typer.Option("--to", help="To it.", autocompletion=completion.end_names)] = None,
    after: Annotated[str | None, typer.Option(help="Its time goes on after this, e.g. 22:00 or now.")] = None,
    before: Annotated[str | None, typer.Option(help="Its time begins before this; 06:00: after --after.")] = None,
    owner: options.Owners = None,
    mine: options.Mine = False,
    zone: options.Zone = None,
    url: options.Url = options.DEFAULT_URL,
    as_json: options.AsJson = False,
) -> None:
    """List reservations in order of creation.

    headway reservations --mine --state active --state committed

    headway reservations --from la-serena --after now --before "tomorrow 06:30"
    """
    where = base.zone_option(zone)
    after = base.instant(after, where, "--after")
    before = base.instant(before, where, "--before", after)
    found: list[ReservationOut] = []
    cursor = lacks = None
    with base.client_of(url, typed=options.typed(context)) as controller:
        while True:
            page = controller.list_reservations(
                limit=1000,
                cursor=cursor,
                state=options.words(state),
                class_=options.words(flow_class),
                from_=a_end,
                to=z_end,
                after=after,
                before=before,
                owner=owners.owners(owner),
                mine=mine or None,
            )
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
    _done(url, lambda controller: controller.get_reservation(name), zone, as_json)


@app.command()
def commit(
    name: options.Id, zone: options.Zone = None, url: options.Url = options.DEFAULT_URL, as_json: options.AsJson = False
) -> None:
    """Make a hold a promise. One that is a promise already stays so.

    headway commit 9f86d081884c7d65
    """
    committed = _done(url, lambda controller: controller.commit_reservation(name), zone, as_json)
    base.end_carried(committed)


@app.command()
def renew(
    context: typer.Context,
    name: options.Id,
    duration: Annotated[str, typer.Option("--for", help="From now, at most 1h.")] = "60s",
    zone: options.Zone = None,
    url: options.Url = options.DEFAULT_URL,
    as_json: options.AsJson = False,
) -> None:
    """Keep a hold for longer, from now.

    headway renew 9f86d081884c7d65 --for 10min
    """
    held_s: Any = shown.seconds(
        base.quantity(duration, units.duration_us, "--for") or 0
    )  # the controller says no to 0.5
    typed = options.typed(context)
    _done(url, lambda controller: controller.renew_reservation(name, {"hold_s": held_s}), zone, as_json, typed=typed)


@app.command()
def cancel(
    name: options.Id, zone: options.Zone = None, url: options.Url = options.DEFAULT_URL, as_json: options.AsJson = False
) -> None:
    """Give a reservation back, held or committed, begun or not.

    headway cancel 9f86d081884c7d65
    """
    _done(url, lambda controller: controller.release_reservation(name), zone, as_json)


def _done(
    url: str,
    ask: "Callable[[Client], ReservationOut]",
    zone: str | None,
    as_json: bool,
    *,
    typed: Collection[str] = (),
) -> "ReservationOut":
    """Do something that may be repeated, show what became of the reservation, and return it."""
    where = base.zone_option(zone)
    with base.client_of(url, typed=typed) as controller:
        one = ask(controller)
    tables.show_reservation(one, where, as_json)
    return one
