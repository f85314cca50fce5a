"""The commands that show how things stand: plan, hosts, switches."""

import json
from collections.abc import Callable
from typing import Any

import typer

from apps import base, options, tables

app = typer.Typer()


@app.command()
def plan(url: options.Url = options.DEFAULT_URL, as_json: options.AsJson = False) -> None:
    """Show the plan: who may send how much, and what each layer lets through now.

    headway plan
    """
    _show(base.call(url, "GET /v1/plan"), as_json, tables.show_plan)


@app.command()
def hosts(url: options.Url = options.DEFAULT_URL, as_json: options.AsJson = False) -> None:
    """Show every host's agent: connected or not, which epoch it holds, what its kernel has moved.

    headway hosts
    """
    _show(base.call(url, "GET /v1/hosts"), as_json, tables.show_hosts)


@app.command()
def switches(url: options.Url = options.DEFAULT_URL, as_json: options.AsJson = False) -> None:
    """Show every switch: connected or not.

    headway switches
    """
    _show(base.call(url, "GET /v1/switches"), as_json, tables.show_switches)


def _show(answer: Any, as_json: bool, table: Callable[[Any], None]) -> None:
    """Print an answer, for scripts or for people."""
    if as_json:
        typer.echo(json.dumps(answer))
    else:
        table(answer)
