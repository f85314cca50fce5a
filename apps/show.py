"""The commands that show how things stand: plan, hosts, switches."""

import json

import typer

from apps import base, options, tables

app = typer.Typer()


@app.command()
def plan(url: options.Url = options.DEFAULT_URL, as_json: options.AsJson = False) -> None:
    """Show the plan: who may send how much, and what each layer lets through now.

    headway plan
    """
    view = base.call(url, "GET /v1/plan")
    if as_json:
        typer.echo(json.dumps(view))
        return
    tables.show_plan(view)


@app.command()
def hosts(url: options.Url = options.DEFAULT_URL, as_json: options.AsJson = False) -> None:
    """Show every host's agent: connected or not, which epoch it holds, what its kernel has moved.

    headway hosts
    """
    rows = base.call(url, "GET /v1/hosts")
    if as_json:
        typer.echo(json.dumps(rows))
        return
    tables.show_hosts(rows)


@app.command()
def switches(url: options.Url = options.DEFAULT_URL, as_json: options.AsJson = False) -> None:
    """Show every switch: connected or not.

    headway switches
    """
    rows = base.call(url, "GET /v1/switches")
    if as_json:
        typer.echo(json.dumps(rows))
        return
    tables.show_switches(rows)
