"""``headway availability``: what is free between two ends, as a chart, and when something fits, in words."""

import json
from datetime import tzinfo
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from apps.cli import base, options, printed, shown
from topology import units

if TYPE_CHECKING:
    from rich.table import Table

    from headway.promises import AvailabilityOut, RateStep, VolumeOut, WayOut

app = typer.Typer()
ROWS = 24  # of a chart; more pieces than that are put together, with the least that is free in each


@app.command()
def availability(
    context: typer.Context,
    a_end: options.Sender,
    z_end: options.Receiver,
    flow_class: Annotated[options.Class, typer.Option("--class", help="Whose share of the circuit.")] = "urgent",
    start: Annotated[str | None, typer.Option(help="22:00, tomorrow 06:30, RFC 3339; now if absent.")] = None,
    end: Annotated[str | None, typer.Option(help="Written as --start is; a day later if absent.")] = None,
    rate: Annotated[str | None, typer.Option(help="When does this rate fit first? With --for.")] = None,
    duration: Annotated[str | None, typer.Option("--for", help="For how long it must fit, e.g. 10h.")] = None,
    size: Annotated[str | None, typer.Option("--bytes", help="When can so many bytes be moved? e.g. 2TB.")] = None,
    zone: options.Zone = None,
    url: options.Url = options.DEFAULT_URL,
    as_json: options.AsJson = False,
) -> None:
    """Show what is free between two ends, along each path.

    headway availability --from la-serena --to champaign --start 22:00 --end "tomorrow 08:00"

    headway availability --from la-serena --to champaign --rate 5Gbps --for 2h --bytes 4TB
    """
    where = base.zone_option(zone)
    if (rate is None) != (duration is None):
        base.stop("--rate and --for go together: when does this rate fit first, for so long?", base.EXIT_USAGE)
    duration_us = base.quantity(duration, units.duration_us, "--for")
    started = base.instant(start, where, "--start")
    ended = base.instant(end, where, "--end", started)
    size_bytes = base.quantity(size, units.size_bytes, "--bytes")
    rate_bps = base.quantity(rate, units.rate_bps, "--rate")
    with base.client_of(url, typed=options.typed(context)) as controller:
        ask = partial(controller.get_availability, from_=a_end, to=z_end, class_=flow_class)
        said = ask(
            start=started,
            end=ended,
            rate_bps=rate_bps,
            duration_s=None if duration_us is None else shown.seconds(duration_us),
            bytes_=size_bytes,
        )
        while (at := said["next"]) is not None:
            with_page(said, ask(start=at, end=said["end"]))
    if as_json:
        typer.echo(json.dumps(said))
        return
    if not said["paths"]:
        typer.echo(f"no path joins {a_end} and {z_end}")
    for way in said["paths"]:
        _show(way, f"{rate} for {duration}" if rate else "", where)


def with_page(said: "AvailabilityOut", page: "AvailabilityOut") -> None:
    """Put another page behind what was said."""
    rates = {tuple(way["path"]): way["rates"] for way in page["paths"]}
    for way in said["paths"]:
        way["rates"] += rates.get(tuple(way["path"]), [])
    said["next"] = page["next"]


def _show(way: "WayOut", wanted: str, where: tzinfo) -> None:
    """Print one path: its chart, and the answers in words."""
    printed.show(_chart(way, where))
    say = [f"over the whole time: {units.shown_rate(way['most_bps'])}"]
    if wanted:
        start = way["earliest_start"]
        say.append(f"{wanted}: " + (f"first from {shown.long(start, where)}" if start else "never"))
    if way["volume"] is not None:
        say += _volume(way["volume"], where)
    for line in say:
        typer.echo(f"  {line}")


def _chart(way: "WayOut", where: tzinfo) -> "Table":
    """Return the free rate over time as horizontal bars."""
    title = f"{' - '.join(way['path'])} ({', '.join(way['circuits']) or 'no circuit'}), RTT {way['rtt_ms']:g} ms"
    table = printed.new_table("from", "free", "", title=title, title_justify="left")
    from rich.progress_bar import ProgressBar

    pieces = coarse(way["rates"])
    most_bps = max((piece["rate_bps"] for piece in pieces), default=0) or 1
    for piece in pieces:
        bar = ProgressBar(total=most_bps, completed=piece["rate_bps"], width=40)
        table.add_row(shown.short(piece["from"], where), units.shown_rate(piece["rate_bps"]), bar)
    return table


def coarse(pieces: "list[RateStep]", rows: int = ROWS) -> "list[RateStep]":
    """Return at most so many pieces: neighbours become one, with the least that is free in them."""
    size = -(-len(pieces) // rows)
    groups = [pieces[at : at + size] for at in range(0, len(pieces), size)] if size else []
    return [
        {"from": group[0]["from"], "until": group[-1]["until"], "rate_bps": min(piece["rate_bps"] for piece in group)}
        for group in groups
    ]


def _volume(volume: "VolumeOut", where: tzinfo) -> list[str]:
    """Return when so many bytes can be moved, in words."""
    size, lowest = f"{volume['bytes']:,} bytes", volume["lowest_constant"]
    if volume["soonest"] is None:
        return [f"{size}: cannot be moved in this time"]
    last = volume["soonest"][-1]
    said = [f"{size}: moved by {shown.long(last['until'], where)}, with all that is free"]
    if lowest is None:
        return said
    rate = units.shown_rate(lowest["rate_bps"])
    start, until = shown.short(lowest["from"], where), shown.long(lowest["until"], where)
    return [*said, f"{size}: or at a constant {rate} from {start} until {until}"]
