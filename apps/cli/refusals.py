"""What a refusal looks like: what lacks where, and each offer with the command that takes it. Exit 3."""

import json
from collections.abc import Callable
from datetime import tzinfo
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from apps.cli import base, offers, printed, shown
from headway.errors import ApiRefusal
from topology import units

if TYPE_CHECKING:
    from rich.table import Table

    from headway.promises import OfferOut


def refuse(
    refused: ApiRefusal, command: "Callable[[OfferOut], list[str] | str]", where: tzinfo, as_json: bool
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
    shown.say(f"headway: {problem['detail']}", stderr=True)
    if problem["resource"]:
        printed.show(_lacks(problem, where), stderr=True)
    if problem["offers"]:
        printed.show(_table(problem["offers"], where), stderr=True)
        typer.echo("to take one:", err=True)
        for number, offer in enumerate(problem["offers"], start=1):
            taken = command(offer)
            typer.echo(f"{number}  {taken if isinstance(taken, str) else offers.typed(taken)}", err=True)
    raise typer.Exit(base.EXIT_REFUSED)


def _lacks(problem: dict[str, Any], where: tzinfo) -> "Table":
    table = printed.new_table("resource", "asked", "free", "since")
    rates = (units.shown_rate(problem[name]) for name in ("asked_bps", "free_bps"))
    table.add_row(problem["resource"], *rates, shown.short(problem["at"], where))
    return table


def _table(found: "list[OfferOut]", where: tzinfo) -> "Table":
    table = printed.new_table("no", "offer", "class", "rate", "start", "end", "circuit")
    for number, offer in enumerate(found, start=1):
        start, end = (shown.short(offer[name], where) for name in ("start", "end"))
        kind = offer["kind"].replace("-", " ")
        table.add_row(
            str(number),
            kind,
            offer["class"],
            units.shown_rate(offer["rate_bps"]),
            start,
            end,
            ", ".join(offer["circuits"]),
        )
    return table
