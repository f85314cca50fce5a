"""``headway change``: what is reserved becomes something else, or stays as it is."""

from datetime import tzinfo
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apps.cli import base, offers, options, owners, refusals, tables
from headway.errors import ApiRefusal
from topology import units

if TYPE_CHECKING:
    from headway.promises import ConstraintsOut

app = typer.Typer()


@app.command()
def change(
    context: typer.Context,
    name: options.Id,
    rate: Annotated[str | None, typer.Option(help="On the wire, e.g. 5Gbps.")] = None,
    start: Annotated[str | None, typer.Option(help="22:00, tomorrow 06:30, RFC 3339; not once it has begun.")] = None,
    end: Annotated[str | None, typer.Option(help="Written as --start is.")] = None,
    duration: Annotated[str | None, typer.Option("--for", help="From its start, e.g. 10h; this or --end.")] = None,
    flow_class: Annotated[options.Class | None, typer.Option("--class", help="Whose share of the circuit.")] = None,
    include: options.Include = None,
    exclude: options.Exclude = None,
    max_rtt: options.MaxRtt = None,
    backup: Annotated[bool | None, typer.Option(help="Whether a second path is kept; --no-backup gives it up.")] = None,
    any_path: Annotated[bool, typer.Option("--any-path", help="Of its path only what is said beside this.")] = False,
    description: Annotated[str | None, typer.Option(help="Your own words.")] = None,
    owner: options.Owner = None,
    zone: options.Zone = None,
    url: options.Url = options.DEFAULT_URL,
    as_json: options.AsJson = False,
) -> None:
    """Change a reservation, its own share counted as free; refused (exit 3), it stays as it was.

    What its path must satisfy stays, but for what is said anew: off a circuit that is dead, or back with --any-path.

    headway change 9f86d081884c7d65 --rate 5Gbps

    headway change 9f86d081884c7d65 --start "tomorrow 21:00" --for 12h

    headway change 9f86d081884c7d65 --exclude chile-illinois
    """
    where = base.zone_option(zone)
    if end is not None and duration is not None:
        base.stop("give either --end or --for", base.EXIT_USAGE)
    asked: dict[str, Any] = {
        "rate_bps": base.quantity(rate, units.rate_bps, "--rate"),
        "start": base.instant(start, where, "--start"),
    }
    duration_us = base.quantity(duration, units.duration_us, "--for")
    asked |= {"class": flow_class, "description": description, "owner": owners.owner(owner)}
    with base.client_of(url) as controller:
        known = controller.get_reservation(name)
    paths = {"include": include, "exclude": exclude, "backup": backup, **base.rtt_bound(max_rtt)}
    asked["constraints"] = _constraints(known["constraints"], paths, any_path)
    asked["end"] = _end(asked["start"] or known["start"], end, duration_us, where)
    body: Any = {field: value for field, value in asked.items() if value is not None}
    try:
        with base.client_of(url, typed=options.typed(context)) as controller:
            changed = controller.change_reservation(name, body, if_match=f'"{known["version"]}"')
    except ApiRefusal as refused:
        flags = [*(["--zone", zone] if zone else []), *offers.url_arguments(url)]
        refusals.refuse(refused, lambda offer: [*offers.changing(known, body, offer, where), *flags], where, as_json)
    tables.show_reservation(changed, where, as_json)
    base.end_carried(changed)


def _constraints(known: "ConstraintsOut", said: dict[str, Any], any_path: bool) -> dict[str, Any] | None:
    """Return what its path shall satisfy, all anew as the API takes it; None if that stays as it is."""
    said = {name: value for name, value in said.items() if value is not None}
    before = {"include": [], "exclude": [], "backup": False} if any_path else known
    return {**before, **said} if any_path or said else None


def _end(start: str, end: str | None, duration_us: int | None, where: tzinfo) -> str | None:
    """Return when it shall end; None if that stays as it is."""
    if duration_us is not None:
        try:
            return units.shown_time(units.instant_us(start) + duration_us)
        except OverflowError:
            base.stop("--for: it would end after the year 9999", base.EXIT_USAGE)
    return base.instant(end, where, "--end", start)
