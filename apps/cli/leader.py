"""``headway leader``: which of a pair of controllers leads, and letting the other one."""

import json
from typing import TYPE_CHECKING

import typer

from apps.cli import base, options

if TYPE_CHECKING:
    from headway.records import LeaderOut

app = typer.Typer()


@app.callback(invoke_without_command=True)
def leader(context: typer.Context, url: options.Url = options.DEFAULT_URL, as_json: options.AsJson = False) -> None:
    """Show which controller leads, since when, and who stands by.

    Example: headway leader
    """
    if context.invoked_subcommand is not None:
        return
    with base.client_of(url) as controller:
        said = controller.get_leader()
    typer.echo(json.dumps(said) if as_json else "\n".join(_lines(said)))


@app.command()
def move(context: typer.Context, url: options.Url = options.DEFAULT_URL, as_json: options.AsJson = False) -> None:
    """Let a controller that stands by lead; the one that is asked must be the leader, and begins anew.

    Example: headway leader move --url https://ctl-a.example.org:8080
    """
    url, as_json = options.nearest(context, "url"), options.nearest(context, "as_json")
    with base.client_of(url) as controller:
        said = controller.move_leader()
    typer.echo(json.dumps(said) if as_json else f"{said['leader']} lets {' or '.join(said['standbys'])} lead")


def _lines(said: "LeaderOut") -> list[str]:
    """Return what people read."""
    if said["standing"] == "alone":
        return ["this controller is alone: it leads, and nobody stands by"]
    who = f"{said['leader']}, at {said['address']}, since {said['since']} (term {said['term']})"
    lines = [f"leads      {who if said['leader'] else 'nobody, at this moment'}"]
    if said["standing"] == "standby":
        return [*lines, f"you ask    one that stands by; what it shows is {said['lag_s']:.1f} s old at most"]
    if said["standing"] == "unsure":
        lines.append("decides    nothing: the database does not answer it")
    return [*lines, f"stands by  {', '.join(said['standbys']) or 'nobody: if it dies, no other takes over'}"]
