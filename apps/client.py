"""The commands that talk to a running controller: announce, release, plan, hosts."""

import json
from typing import Annotated, Any

import typer

from apps import base, reserve, tables
from topology import units

app = typer.Typer()
app.registered_commands += reserve.app.registered_commands


def _quantity(text: str, parse: Any) -> int:
    """Return a quantity from the command line."""
    try:
        return int(parse(text))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


@app.command()
def announce(
    senders: Annotated[str, typer.Option("--from", help="Sending hosts, separated by commas.")],
    target: Annotated[str, typer.Option("--to", help="Receiving host.")],
    size: Annotated[str, typer.Option("--bytes", help="Payload of all senders together, e.g. 2.7GB.")],
    deadline: Annotated[str | None, typer.Option(help="By when, e.g. 30s; refused if it cannot be met.")] = None,
    flow_class: Annotated[str, typer.Option("--class", help="urgent or background.")] = "urgent",
    name: Annotated[str | None, typer.Option("--id", help="A name for it; made up if absent.")] = None,
    url: base.Url = base.DEFAULT_URL,
    as_json: base.AsJson = False,
) -> None:
    """Announce bytes that are coming; the answer is a promise, or a refusal with the numbers.

    Example: headway announce --from base20,base21 --to arch --bytes 2.7GB --deadline 30s
    """
    body: dict[str, Any] = {
        "class": flow_class,
        "bytes": _quantity(size, units.size_bytes),
        "from": senders.split(","),
        "to": target,
    }
    if deadline is not None:
        body["deadline_s"] = _quantity(deadline, units.duration_us) / 1e6
    if name is not None:
        body["id"] = name
    try:
        promise = base.call(url, "POST /v1/announcements", body)
    except base.Refused as refused:
        base.stop(str(refused), base.EXIT_REFUSED)
    typer.echo(
        json.dumps(promise)
        if as_json
        else f"{promise['id']}: promised in {promise['promised_in_s']:.3f} s, by {promise['promised']}"
    )


@app.command()
def release(
    name: Annotated[str, typer.Argument(help="The announcement's name.")], url: base.Url = base.DEFAULT_URL
) -> None:
    """Release an announcement: its bytes have arrived, its share goes back to the others."""
    base.call(url, f"DELETE /v1/announcements/{name}")
    typer.echo(f"{name}: released")


@app.command()
def plan(url: base.Url = base.DEFAULT_URL, as_json: base.AsJson = False) -> None:
    """Show the plan: who may send how much, and what each layer lets through now."""
    view = base.call(url, "GET /v1/plan")
    if as_json:
        typer.echo(json.dumps(view))
        return
    tables.show_plan(view)


@app.command()
def hosts(url: base.Url = base.DEFAULT_URL, as_json: base.AsJson = False) -> None:
    """Show every host's agent: connected or not, which epoch it holds, what its kernel has moved."""
    rows = base.call(url, "GET /v1/hosts")
    if as_json:
        typer.echo(json.dumps(rows))
        return
    tables.show_hosts(rows)
