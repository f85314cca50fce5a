"""All that the command ``headway`` can be told."""

import os
from pathlib import Path
from typing import Annotated

import typer
from typer.models import CommandInfo, TyperInfo

from apps.cli import advise, agent, clean, client, database, leader, login, network, pki, token, trust, webhook, what_if
from topology import __version__

app = typer.Typer(
    name="headway",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(agent.app, name="agent")
app.add_typer(leader.app, name="leader")
app.add_typer(network.app, name="network")
app.add_typer(pki.app, name="pki")
app.add_typer(token.app, name="token")
app.add_typer(webhook.app, name="webhook")
PANELS = {
    "Promises": (
        *("reserve", "commit", "renew", "change", "cancel", "reservation", "reservations", "availability"),
        *("announce", "release", "announcements", "history", "export"),
    ),
    "State": (*("top", "plan", "circuits", "hosts", "switches", "receivers", "bursts", "drift", "events", "leader"),),
    "Planning ahead": ("what-if", "advise", "network"),
    "Who you are": ("whoami", "login", "logout"),
    "Operation": (
        *("controller", "agent", "maintenance", "pki", "token", "webhook", "backup", "restore", "clean", "version"),
    ),
}
"""Which commands ``--help`` shows together, and in which order."""
Config = Annotated[Path, typer.Option("--config", "-c", help="YAML file; see docs/configuration.md.")]


@app.command()
def controller(
    config: Config,
    check: Annotated[
        bool, typer.Option("--check", help="Only say whether it could start, and keep all promises.")
    ] = False,
    trust_clock: Annotated[
        bool, typer.Option("--trust-clock", help="The wall clock is right: what is over by it is over.")
    ] = False,
) -> None:
    """Run the controller: plan, switches, agents and the REST API.

    Switches connect by OpenFlow 1.3, agents by WebSocket over TLS.

    Example: headway controller --config /etc/headway/controller.yaml
    """
    from apps.main import daemon  # which starts without us, too

    raise typer.Exit(daemon(config, check=check, trusts_wall=trust_clock))


@app.callback()
def headway(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=lambda asked: _show_version(asked=asked), is_eager=True, help="Print the version."
        ),
    ] = False,
    ca: Annotated[
        Path | None, typer.Option(envvar=trust.CA_ENV, help="The authority of an https controller's certificate.")
    ] = None,
) -> None:
    """One bandwidth plan for the circuit, the switches and the sending hosts of a site."""
    if ca is not None:
        os.environ[trust.CA_ENV] = str(ca)


def _show_version(*, asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


for _part in (client, login, database, clean, what_if, advise):
    app.registered_commands += _part.app.registered_commands


def _arranged() -> None:
    """Arrange the commands as ``PANELS`` says."""
    panel_of = {name: panel for panel, names in PANELS.items() for name in names}
    commands: list[CommandInfo | TyperInfo] = [*app.registered_commands, *app.registered_groups]
    for command in commands:
        command.rich_help_panel = panel_of[_name_of(command)]
    app.registered_commands.sort(key=lambda command: list(panel_of).index(_name_of(command)))


def _name_of(command: CommandInfo | TyperInfo) -> str:
    return str(command.name or getattr(command.callback, "__name__", ""))


_arranged()
