"""``headway announcements``: what was announced, what was promised, and what was delivered of it."""

import json
from datetime import tzinfo
from typing import TYPE_CHECKING, Annotated

import typer

from apps.cli import base, completion, options, owners, printed, shown
from controller.plan.announcement_states import AnnouncementState
from topology import units

if TYPE_CHECKING:
    from headway.promises import AnnouncementOut

app = typer.Typer()


@app.command()
def announcements(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="One of them, in full.", autocompletion=completion.announcements)
    ] = None,
    state: Annotated[list[AnnouncementState] | None, typer.Option(help="In this state; may be repeated.")] = None,
    owner: options.Owners = None,
    mine: options.Mine = False,
    zone: options.Zone = None,
    url: options.Url = options.DEFAULT_URL,
    as_json: options.AsJson = False,
) -> None:
    """List announcements in the order they were made; those that have ended are kept for thirty days.

    headway announcements --state late --state lapsed

    headway announcements image-0042.fits
    """
    where = base.zone_option(zone)
    if name is not None:
        with base.client_of(url) as controller:
            one = controller.get_announcement(name)
        shown.say(json.dumps(one) if as_json else "\n".join(told(one, where)))
        return
    found: list[AnnouncementOut] = []
    cursor = lacks = None
    with base.client_of(url, typed=options.typed(context)) as controller:
        while True:
            page = controller.list_announcements(
                limit=1000,
                state=options.words(state),
                owner=owners.owners(owner),
                mine=mine or None,
                cursor=cursor,
            )
            found += page["announcements"]
            cursor, lacks = page["next"], lacks or page["lacks"]
            if cursor is None:
                break
    if as_json:
        typer.echo(json.dumps(found))
    else:
        show(found, where)
    if lacks:
        typer.echo(f"those that have ended are not all here, for the database cannot be read: {lacks}", err=True)


def show(rows: "list[AnnouncementOut]", where: tzinfo) -> None:
    """Print a line for each announcement; 80 columns are enough for names of 12 letters."""
    table = printed.new_table("id", "state", "delivered", "promised", "finished")
    for one in rows:
        promised = shown.at(units.instant_us(one["promised"]), where)
        bad = one["state"] in {"late", "lapsed"} or (one["late_s"] or 0) > 0
        finish = f"[red]{_finish(one)}[/red]" if bad else _finish(one)
        table.add_row(one["id"], one["state"], _delivered(one), f"{promised:%d %b %H:%M:%S}", finish)
    table.columns[0].overflow = "fold"
    printed.show(table if rows else "no announcements")


def told(one: "AnnouncementOut", where: tzinfo) -> list[str]:
    """Return the lines on one announcement."""
    finish = _finish(one)
    rows = {
        "ends": f"{', '.join(one['from'])} to {one['to']}",
        "class": one["class"],
        "promised": f"{one['bytes']:,} bytes by {shown.long(one['promised'], where)}",
        "delivered": ("" if one["exact"] else "at least ") + f"{one['delivered_bytes']:,} bytes",
        "finished": f"{shown.long(one['finished'], where)}: {finish}" if one["finished"] else "",
        "owner": one["owner"] or "",
        "ended": shown.long(one["ended"], where) if one["ended"] else "",
    }
    lines = [f"{one['id']}: {one['state']}", *(f"  {name:<10}  {value}" for name, value in rows.items() if value)]
    for sender in one["senders"]:
        since = shown.short(sender["since"], where) if sender["since"] else ""
        hindered = f"; {sender['hindrance']} since {since}" if sender["hindrance"] else ""
        lines.append(f"  {sender['host']:<10}  {sender['delivered_bytes']:,} bytes{hindered}")
    return lines


def _delivered(one: "AnnouncementOut") -> str:
    """Return how much of what was announced has arrived; never 100% of what has not.

    >>> _delivered({"delivered_bytes": 2_699_999_999, "bytes": 2_700_000_000, "exact": False})
    '>= 99% of 2.7 GB'
    """
    percent = min(100, one["delivered_bytes"] * 100 // one["bytes"])
    return f"{'' if one['exact'] else '>= '}{percent}% of {units.shown_size(one['bytes'])}"


def _finish(one: "AnnouncementOut") -> str:
    """Return how long before or after the promise all had arrived.

    >>> _finish({"late_s": -1.26}), _finish({"late_s": 0.5}), _finish({"late_s": None})
    ('1.3 s early', '0.5 s late', '')
    """
    if one["late_s"] is None:
        return ""
    return f"{abs(one['late_s']):.1f} s {'late' if one['late_s'] > 0 else 'early'}"
