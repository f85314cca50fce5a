"""``headway clean``: takes what is ours out of a switch that Headway is to leave."""

from typing import Annotated

import typer

from apps.cli import base

app = typer.Typer()


@app.command()
def clean(
    bridge: Annotated[str, typer.Argument(metavar="SWITCH", help="The bridge's name, as ovs-vsctl list-br has it.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be taken out, and leave it.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Even while a controller is connected.")] = False,
) -> None:
    """Take our rules, meters, groups and queues out of a switch, on the switch's machine; all else stays.

    What is ours is known as the controller knows it: rules by their cookie, meters and groups by their numbers, queues
    by their mark. While a controller is connected nothing is done: it would put all of it back.

    headway clean br0 --dry-run
    """
    from apps.cli import clean_work

    try:
        parts = clean_work.our_parts(bridge)
        if parts.controllers and not (force or dry_run):
            who = ", ".join(parts.controllers)
            again = f"end it, or ovs-vsctl del-controller {bridge}; --force does it nevertheless"
            base.stop(f"{bridge}: a controller is connected, {who}: {again}", base.EXIT_FAILED)
        if not dry_run:
            clean_work.taken_out(bridge, parts)
    except clean_work.NotCleaned as error:
        base.stop(str(error), base.EXIT_FAILED)
    if dry_run:
        for rule in parts.rules:
            typer.echo(f"  {rule}")
    counts = {"rules": parts.rules, "meters": parts.meters, "groups": parts.groups}
    counts |= {"QoS": parts.qos, "queues": parts.queues}
    said = ", ".join(f"{len(those):,} {what}" for what, those in counts.items())
    did = "nothing is ours" if parts.nothing else f"{said} {'would be' if dry_run else ''} taken out".replace("  ", " ")
    typer.echo(f"{bridge}: {did}")
    if parts.kept:
        typer.echo(f"headway: {bridge}: rules of others use {', '.join(parts.kept)}: left", err=True)
