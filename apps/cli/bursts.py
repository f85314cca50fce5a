"""``headway bursts``: what each port needs when all start at once, and what keeps that small."""

import json
from typing import TYPE_CHECKING

import typer

from apps.cli import base, options, printed
from topology.units import shown_size

if TYPE_CHECKING:
    from headway.network_views import BurstOut

app = typer.Typer()


@app.command()
def bursts(url: options.Url = options.DEFAULT_URL, as_json: options.AsJson = False) -> None:
    """Show what each port needs when all its senders start at once, and what they do about it.

    headway bursts
    """
    with base.client_of(url) as controller:
        ports = controller.list_bursts()
    if as_json:
        typer.echo(json.dumps(ports))
    else:
        _show(ports)


def _show(ports: "list[BurstOut]") -> None:
    """Print a line for each port; below the table, why, and what does not fit."""
    table = printed.new_table()
    for column in ("port", "senders", "window", "unpaced", "as chosen", "buffer", "choice"):
        table.add_column(column, justify="right" if column in {"window", "unpaced", "as chosen", "buffer"} else "left")
    for port in ports:
        counts = (port["window_bytes"], port["unpaced_bytes"], port["chosen_bytes"], port["buffer_bytes"])
        sizes = map(shown_size, counts)
        choices = ", ".join(one["choice"] for one in port["choices"])
        fits = "" if port["fits"] else " [red]too large[/red]"
        table.add_row(port["link"], str(len(port["senders"])), *sizes, choices + fits)
    printed.show(table if ports else "no senders")
    for port in ports:
        for one in port["choices"]:
            typer.echo(f"{port['link']}: {one['choice']}: {one['reason']}")
        if not port["fits"]:
            needs = f"needs {shown_size(port['chosen_bytes'])}, holds {shown_size(port['buffer_bytes'])}"
            printed.show(f"[red]warning: {port['link']} {needs}: a start at once loses packets[/red]")
