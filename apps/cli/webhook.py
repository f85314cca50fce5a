"""``headway webhook``: secrets of webhooks, and a try of those that are configured, on the controller's machine."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    help="""Make secrets for webhooks, and try webhooks out.

    On the controller's machine, whose configuration says in its section webhooks who is told of alarms.""",
)
USUAL = Path("/etc/headway/controller.yaml")


@app.command()
def secret(file: Annotated[Path, typer.Argument(metavar="FILE", help="Where; it must not be there yet.")]) -> None:
    """Make a secret, in a file that only its owner can read; the receiver needs it too.

    Example: headway webhook secret /etc/headway/webhook.secret
    """
    from apps.cli import webhook_work

    webhook_work.make_secret(file)


@app.command(name="test")
def try_out(
    config: Annotated[Path, typer.Option("--config", "-c", help="The controller's YAML file.")] = USUAL,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")] = False,
) -> None:
    """Send webhook.test to each webhook of a configuration, once, and print what it answers; 1 if one does not take it.

    The controller need not run.

    Example: headway webhook test
    """
    from apps.cli import webhook_work

    webhook_work.try_out(config, as_json=as_json)
