"""The command ``headway``."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from typer.models import CommandInfo, TyperInfo

from apps.cli import advise, agent, clean, client, database, leader, login, network, pki, token, trust, webhook, what_if
from apps.loading import loading
from topology import __version__

EXIT_FAILED, EXIT_CONFIG = 1, 2
CONTROLLER_NEEDS = "a controller's machine needs the package headway-controller, or pip install 'headway[controller]'"

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


def _failed(message: str, code: int) -> typer.Exit:
    """Say what is wrong on standard error; return the exit to raise."""
    for line in message.splitlines():
        typer.echo(f"headway: {line}", err=True)
    return typer.Exit(code)


@app.command()
def controller(
    config: Config,
    check: Annotated[bool, typer.Option("--check", help="Only say whether it could start.")] = False,
    trust_clock: Annotated[
        bool, typer.Option("--trust-clock", help="The wall clock is right: what is over by it is over.")
    ] = False,
) -> None:
    """Run the controller: plan, switches, agents and the REST API.

    Switches connect by OpenFlow 1.3, agents by WebSocket over TLS.

    Example: headway controller --config /etc/headway/controller.yaml
    """
    # os-ken chooses its hub when it is imported, so this comes before the imports.
    os.environ["OSKEN_HUB_TYPE"] = "native"
    from controller.absent import FOR_TERMINALS, FOR_URIS, absent, put_off

    put_off(FOR_URIS)

    with loading(), absent(*FOR_TERMINALS):
        from apps.configuration import load
        from apps.start_check import hindrances, hindrances_beside
        from controller.errors import ConfigError

    try:
        settings = load(config)
    except ConfigError as error:
        also = hindrances_beside(config) if check else ()
        raise _failed("\n".join((str(error), *(f"{config}: {each}" for each in also))), EXIT_CONFIG) from error
    if check:
        if found := hindrances(settings):
            raise _failed("\n".join(f"{config}: {each}" for each in found), EXIT_FAILED)
        from apps.cli.network_text import not_ours

        typer.echo(f"{config}: right; {settings.site.network.name}, {len(settings.site.standing)} standing flows")
        for line in not_ours(settings.site.network):
            typer.echo(f"{config}: {line}")
        return
    with loading(), absent(*FOR_TERMINALS):
        from apps import logs
        from apps.controller import run
        from controller.database import DatabaseError
        from controller.security.token_file import TokensUnusable
        from controller.southbound.errors import SouthboundError

    logs.configure()
    os.umask(0o027)  # whatever is made is for nobody else on this machine
    try:
        code = run(settings, trusts_wall=trust_clock)
    except (OSError, SouthboundError, DatabaseError, TokensUnusable) as error:
        raise _failed(str(error), EXIT_FAILED) from error
    raise typer.Exit(code)


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


def main() -> None:
    """Run the command."""
    try:
        app(prog_name="headway" if sys.argv[0].endswith("headway") else None)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] in {"apps", "controller", "hostagent", "topology"}:
            raise
        typer.echo(f"headway: {error.name} is not installed; {CONTROLLER_NEEDS}", err=True)
        sys.exit(EXIT_FAILED)
