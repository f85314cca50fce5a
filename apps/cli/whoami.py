"""``headway whoami``: by what name, role and groups a controller knows its user, and what is left of the quotas."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from apps.cli import base, options, printed
from topology import units

if TYPE_CHECKING:
    from headway.records import OwnerOut, QuotaOut

app = typer.Typer()
_NONE: "QuotaOut" = {"rate_bps": None, "bytes": None, "ahead_s": None, "entries": None}


@app.command()
def whoami(url: options.Url = options.DEFAULT_URL, as_json: options.AsJson = False) -> None:
    """Show who you are to the controller, what you may, and what is left of your quotas.

    headway whoami
    """
    with base.client_of(url) as controller:
        said = controller.get_whoami()
    if as_json:
        typer.echo(json.dumps(said))
        return
    inside = f", in {', '.join(said['groups'])}" if said["groups"] else ""
    typer.echo(f"{said['name']}: {said['role']}{inside}")
    table = printed.new_table("owner", "of", "has", "may have", "left")
    for owner in said["owners"]:
        for cells in _rows(owner):
            table.add_row(owner["owner"], *cells)
    printed.show(table)


def _rows(owner: "OwnerOut") -> list[tuple[str, str, str, str]]:
    """Return a row for each thing that there may be a quota of."""
    used, quota, left = owner["used"], owner["quota"] or _NONE, owner["left"] or _NONE
    rows = [
        _row("rate", used["rate_bps"], quota["rate_bps"], left["rate_bps"], units.shown_rate),
        _row("bytes", used["bytes"], quota["bytes"], left["bytes"], units.shown_size),
        _row("promises", used["entries"], quota["entries"], left["entries"], str),
    ]
    if quota["ahead_s"] is not None:
        rows.append(("ahead", "", f"{quota['ahead_s'] / 86_400:.6g} days", ""))
    return rows


def _row(
    what: str, has: int, most: int | None, left: int | None, shown: Callable[[int], str]
) -> tuple[str, str, str, str]:
    return what, shown(has), "any" if most is None else shown(most), "" if left is None else shown(left)
