"""The commands that show how things stand: plan, circuits, hosts, switches, drift."""

import json
from collections.abc import Callable
from typing import Annotated, Any

import typer

from apps.cli import base, options, tables
from apps.cli.explain import show_transitions

app = typer.Typer()

Explain = Annotated[
    bool, typer.Option("--explain", help="Draw the steps by which it came about, with their times, instead.")
]
Last = Annotated[int | None, typer.Option("--last", min=1, help="With --explain: so many transitions; else one.")]


@app.command()
def plan(
    url: options.Url = options.DEFAULT_URL, explain: Explain = False, last: Last = None, as_json: options.AsJson = False
) -> None:
    """Show the plan: who may send how much, and what each layer lets through now.

    headway plan
    headway plan --explain --last 3
    """
    if last is not None and not explain:
        base.stop("--last goes with --explain", base.EXIT_USAGE)
    with base.client_of(url) as controller:
        if explain:
            _show(controller.list_transitions(), as_json, lambda steps: show_transitions(steps, last or 1))
        else:
            _show(controller.get_plan(), as_json, tables.show_plan)


@app.command()
def circuits(url: options.Url = options.DEFAULT_URL, as_json: options.AsJson = False) -> None:
    """Show every circuit: how its line is, and the plan that is ready for the case that it dies.

    headway circuits
    """
    with base.client_of(url) as controller:
        _show(controller.list_circuits(), as_json, tables.show_circuits)


@app.command()
def hosts(url: options.Url = options.DEFAULT_URL, as_json: options.AsJson = False) -> None:
    """Show every host's agent: connected or not, which epoch it holds, what its kernel has moved.

    headway hosts
    """
    with base.client_of(url) as controller:
        _show(controller.list_hosts(), as_json, tables.show_hosts)


@app.command()
def switches(url: options.Url = options.DEFAULT_URL, as_json: options.AsJson = False) -> None:
    """Show every switch: connected or not.

    headway switches
    """
    with base.client_of(url) as controller:
        _show(controller.list_switches(), as_json, tables.show_switches)


@app.command()
def drift(url: options.Url = options.DEFAULT_URL, as_json: options.AsJson = False) -> None:
    """Show what the latest audits of switches and hosts have found, and what was done about it.

    headway drift
    """
    with base.client_of(url) as controller:
        _show(controller.get_drift(), as_json, tables.show_drift)


def _show(answer: Any, as_json: bool, table: Callable[[Any], None]) -> None:
    """Print an answer, for scripts or for people."""
    if as_json:
        typer.echo(json.dumps(answer))
    else:
        table(answer)
