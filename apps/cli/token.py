"""``headway token``: who may do what by REST, on the controller's machine."""

from pathlib import Path
from typing import Annotated, Literal

import typer

LONGEST_NAME, DAYS = 64, 90

app = typer.Typer(
    no_args_is_help=True,
    help="""Make, list and revoke the tokens by which the controller knows who asks.

    On the controller's machine, in the file that access.tokens of its configuration names; no restart is needed.""",
)
File = Annotated[Path, typer.Option("--file", help="The file of the tokens, as access.tokens names it.")]
USUAL = Path("/etc/headway/tokens")


@app.command()
def make(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who or what it is for, e.g. ana or night-script.")],
    role: Annotated[Literal["read", "reserve", "operate", "admin"], typer.Option(help="What that may do.")],
    days: Annotated[int, typer.Option(min=1, max=400, help="How long it is good for.")] = DAYS,
    group: Annotated[list[str] | None, typer.Option(help="That it is in, and may own things; repeatable.")] = None,
    file: File = USUAL,
) -> None:
    """Make a token, and print it: it is not kept, so this is the only time that it is seen.

    Example: headway token make ana --role reserve --group lsst --days 30
    """
    from apps.cli import token_work

    token_work.make(file, name, role, days, tuple(group or ()))


@app.command(name="list")
def list_tokens(
    file: File = USUAL, as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")] = False
) -> None:
    """List the tokens there are, and until when; not what they are, which nobody knows but their holders.

    Example: headway token list
    """
    from apps.cli import token_work

    token_work.show(file, as_json=as_json)


@app.command()
def revoke(
    which: Annotated[str, typer.Argument(metavar="NAME|ID", help="All of this name, or one by its id.")],
    file: File = USUAL,
) -> None:
    """Take a token's worth away, from the next request on.

    Example: headway token revoke ana
    """
    from apps.cli import token_work

    token_work.revoke(file, which)
