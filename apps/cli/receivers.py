"""``headway receivers``: what receivers take, which flows they hold, and who has the rest."""

import json
from typing import TYPE_CHECKING

import typer

from apps.cli import base, options, printed
from topology.units import shown_rate, shown_size

if TYPE_CHECKING:
    from headway.network_views import ChangedFlowOut, ReceiverOut, ReceiversOut

app = typer.Typer()


@app.command()
def receivers(url: options.Url = options.DEFAULT_URL, as_json: options.AsJson = False) -> None:
    """Show what receivers take for good and at once, which flows are held to that, and who has the rest.

    Every store is shown that an agent tells of, and every flow whose receiver takes less than it could be sent.

    headway receivers
    """
    with base.client_of(url) as controller:
        found = controller.list_receivers()
    if as_json:
        typer.echo(json.dumps(found))
    else:
        _show(found)


def _show(found: "ReceiversOut") -> None:
    """Print a line for each receiver; below the table, the flows that are held and those that gain."""
    table = printed.new_table()
    for column in ("host", "for", "drains", "room", "unread", "waits", "why", "since"):
        table.add_column(column, justify="right" if column in {"drains", "room", "unread"} else "left")
    for one in found["receivers"]:
        table.add_row(*_cells(one))
    printed.show(table if found["receivers"] else "no receiver is slow, and no agent tells of a store")
    for one in found["receivers"]:
        for flow in one["holds"]:
            typer.echo(f"{_named(one)} holds {_changed(flow)}")
    for flow in found["gained"]:
        typer.echo(f"{_changed(flow)}: it has what others are held from")


def _cells(one: "ReceiverOut") -> tuple[str, ...]:
    drains = "what it is sent" if one["drains_bps"] is None else shown_rate(one["drains_bps"])
    sizes = ("" if size is None else shown_size(size) for size in (one["room_bytes"], one["unread_bytes"]))
    waits = "" if one["waiting"] is None else "yes" if one["waiting"] else "no"
    return (one["host"], _of(one), drains, *sizes, waits, one["why"] or "", one["since"])


def _of(one: "ReceiverOut") -> str:
    return f"store {one['store']}" if one["store"] else f"flow {one['flow']}"


def _named(one: "ReceiverOut") -> str:
    return f"{one['host']}, {_of(one)},"


def _changed(flow: "ChangedFlowOut") -> str:
    return f"{flow['flow']} at {shown_rate(flow['planned_bps'])} instead of {shown_rate(flow['without_bps'])}"
