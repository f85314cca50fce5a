"""What a refusal looks like: what lacks where, and each offer with the command that takes it. Exit 3."""

import json
import os
import shlex
from collections.abc import Callable
from datetime import tzinfo
from decimal import Decimal
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from apps import base, times
from topology import units

Offer = dict[str, Any]


def refuse(
    refused: base.Refused, command: Callable[[Offer], list[str] | str], where: tzinfo, as_json: bool
) -> NoReturn:
    """Show a refusal, and end.

    Args:
        refused: it.
        command: makes of an offer the arguments that take it, or words that say how.
        where: the zone of local times.
        as_json: for scripts: the problem as it came, on standard output.
    """
    problem = refused.problem
    if as_json:
        typer.echo(json.dumps(problem))
        raise typer.Exit(base.EXIT_REFUSED)
    typer.echo(f"headway: {problem['detail']}", err=True)
    console = Console(stderr=True, highlight=False)
    if problem["resource"]:
        console.print(_lacks(problem, where))
    if problem["offers"]:
        console.print(_offers(problem["offers"], where))
        typer.echo("to take one:", err=True)
        for number, offer in enumerate(problem["offers"], start=1):
            taken = command(offer)
            typer.echo(f"{number}  {taken if isinstance(taken, str) else typed(taken)}", err=True)
    raise typer.Exit(base.EXIT_REFUSED)


def _lacks(problem: dict[str, Any], where: tzinfo) -> Table:
    table = Table("resource", "asked", "free", "since")
    rates = (units.shown_rate(problem[name]) for name in ("asked_bps", "free_bps"))
    table.add_row(problem["resource"], *rates, times.short(problem["at"], where))
    return table


def _offers(offers: list[Offer], where: tzinfo) -> Table:
    table = Table("", "offer", "class", "rate", "start", "end")
    for number, offer in enumerate(offers, start=1):
        start, end = (times.short(offer[name], where) for name in ("start", "end"))
        kind = offer["kind"].replace("-", " ")
        table.add_row(str(number), kind, offer["class"], units.shown_rate(offer["rate_bps"]), start, end)
    return table


def typed(arguments: list[str]) -> str:
    """Return a command as it is typed."""
    return shlex.join(["headway", *arguments])


def written_rate(rate_bps: int) -> str:
    """Return a rate as it can be typed again, exactly.

    >>> written_rate(338_800_000), written_rate(10_000_000_000), written_rate(1_234_567)
    ('338.8Mbps', '10Gbps', '1.234567Mbps')
    """
    for prefix, times_bps in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if rate_bps >= times_bps:
            return f"{(Decimal(rate_bps) / times_bps).normalize():f}{prefix}bps"
    return f"{rate_bps}bps"


def at(url: str) -> list[str]:
    """Return the arguments that name the controller, if the environment does not."""
    return [] if url == os.environ.get("HEADWAY_URL", base.DEFAULT_URL) else ["--url", url]
